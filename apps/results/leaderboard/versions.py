"""The dataset version on which the values of a benchmark are shown."""

from dataclasses import dataclass

from apps.benchmarks.measuring.rescoring import scored_versions
from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from benchbench.errors import BenchbenchError


class NoValuesError(BenchbenchError):
    """A version that a benchmark has no values on."""

    code = "no_values"


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
    return VersionShown(next((choice for choice in choices if str(choice.number) == asked), own), own, choices)


def version_with_values(benchmark: Benchmark, number: int | None) -> DatasetVersion:
    """Return version `number` of the dataset, or the benchmark's own; raise NoValuesError where it has no values."""
    own = benchmark.dataset_version
    if number is None or number == own.number:
        return own
    scored = {version.number: version for version in scored_versions(benchmark)}
    if number not in scored:
        there = ", ".join(map(str, scored)) or "none"
        raise NoValuesError(
            f'"{benchmark}" has no values on version {number} of its dataset; versions with values: {there}. '
            "Re-score it (`manage.py rescore`) to have more.",
            field="version",
        )
    return scored[number]
