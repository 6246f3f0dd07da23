"""Admin classes of benchmarks, their runs, baselines and schedules.

The room of results adds the pages that show results. Only interfaces import it.
"""

from apps.benchmarks.admin import benchmarks, runs, schedules  # noqa: F401 (Django imports only this package)
