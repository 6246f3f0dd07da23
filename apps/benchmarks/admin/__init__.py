"""Admin classes of benchmarks, their runs and baselines.

The pages that show results are added by the room of results. Only interfaces import it.
"""

from apps.benchmarks.admin import benchmarks, runs  # noqa: F401 (Django imports this package alone)
