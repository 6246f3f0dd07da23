"""On which version of its dataset the values of a benchmark are shown."""

from dataclasses import dataclass

from apps.benchmarks.models import Benchmark
from apps.benchmarks.rescoring import scored_versions
from apps.datasets.models import DatasetVersion


@dataclass(frozen=True, slots=True)
class VersionShown:
    """The version whose values a page shows, its benchmark's own and all that there are values on, oldest first."""

    version: DatasetVersion
    own: DatasetVersion
    choices: list[DatasetVersion]

    @property
    def is_other(self) -> bool:
        return self.version != self.own

    @property
    def query_string(self) -> str:
        """What links carry along: `?version=2`, or "" for the benchmark's own."""
        return f"?version={self.version.number}" if self.is_other else ""


def version_shown(benchmark: Benchmark, asked: str) -> VersionShown:
    """Return the version that `?version=` asks for; the benchmark's own where it has no values on that."""
    choices = scored_versions(benchmark)
    own = benchmark.dataset_version
    return VersionShown(next((one for one in choices if str(one.number) == asked), own), own, choices)
