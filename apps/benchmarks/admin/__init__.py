"""Admin classes of benchmarks, their runs and baselines.

The room of results adds the pages that show results. Only interfaces import it.
"""

from apps.benchmarks.admin import benchmarks, runs  # noqa: F401 (Django imports only this package)
