"""The dataset version on which the values of a benchmark are shown."""

from collections.abc import Iterable
from dataclasses import dataclass

from apps.benchmarks.measuring.rescoring import scored_versions
from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from benchbench.errors import BenchbenchError

MOST_SHOWN = 20  # characters of what was asked for


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
    """Return the version that `?version=` asks for, the benchmark's own by default; raise NoValuesError as below."""
    choices, own = scored_versions(benchmark), benchmark.dataset_version
    if not asked or asked == str(own.number):
        return VersionShown(own, own, choices)
    for choice in choices:
        if asked == str(choice.number):
            return VersionShown(choice, own, choices)
    raise _no_values(benchmark, asked[:MOST_SHOWN], choices)


def version_with_values(benchmark: Benchmark, number: int | None) -> DatasetVersion:
    """Return version `number` of the dataset, or the benchmark's own; raise NoValuesError where it has no values."""
    own = benchmark.dataset_version
    if number is None or number == own.number:
        return own
    scored = {version.number: version for version in scored_versions(benchmark)}
    if number not in scored:
        raise _no_values(benchmark, number, scored.values())
    return scored[number]


def _no_values(benchmark: Benchmark, asked: object, scored: Iterable[DatasetVersion]) -> NoValuesError:
    there = ", ".join(str(version.number) for version in scored) or "none"
    return NoValuesError(
        f'"{benchmark}" has no values on version {asked} of its dataset; versions with values: {there}. '
        "Re-score it (`manage.py rescore`) to have more.",
        field="version",
    )
