"""The dataset versions on which a benchmark has values: the shown one, and its changes since the previous one."""

from dataclasses import dataclass

from apps.benchmarks.measuring.again import scored_versions
from apps.benchmarks.models import Benchmark, Run
from apps.datasets.editing.differences import Changes, Difference
from apps.datasets.models import DatasetVersion
from apps.results.leaderboard.runs import Leaderboard, Row, leaderboard
from benchbench.errors import BenchbenchError

MOST_SHOWN = 20  # characters of the user's input


class NoValuesError(BenchbenchError):
    """The benchmark has no values on this version."""

    code = "no_values"


@dataclass(frozen=True, slots=True)
class VersionShown:
    """The version of a page's values, the benchmark's own, and all versions with values, oldest first."""

    version: DatasetVersion
    own: DatasetVersion
    choices: list[DatasetVersion]

    @property
    def is_other(self) -> bool:
        return self.version != self.own

    @property
    def query_string(self) -> str:
        """The query string for links: `?version=2`, or "" for the benchmark's own."""
        return f"?version={self.version.number}" if self.is_other else ""


def version_shown(benchmark: Benchmark, asked: str) -> VersionShown:
    """Return the version with number `asked`, by default the benchmark's own. Raises NoValuesError."""
    choices, own = scored_versions(benchmark), benchmark.dataset_version
    numbers = {str(version.number): version for version in (*choices, own)}
    if asked and asked not in numbers:
        there = ", ".join(str(version.number) for version in choices) or "none"
        raise NoValuesError(
            f'"{benchmark}" has no values on version {asked[:MOST_SHOWN]} of its dataset; versions with values: '
            f"{there}. Re-score it (`manage.py rescore`) to have more.",
            field="version",
        )
    return VersionShown(numbers[asked] if asked else own, own, choices)


def version_with_values(benchmark: Benchmark, number: int | None) -> DatasetVersion:
    """Return version `number` of the dataset, by default the benchmark's own. Raises NoValuesError without values."""
    own = benchmark.dataset_version
    return own if number in (None, own.number) else version_shown(benchmark, str(number)).version


@dataclass(frozen=True, slots=True)
class MovedRun:
    """The primary measure of a run before and now, and its ranks; None without a value."""

    run: Run
    before: float | None
    now: float | None
    rank_before: int | None
    rank: int | None

    @property
    def change(self) -> float | None:
        return None if self.before is None or self.now is None else self.now - self.before

    @property
    def places(self) -> int:
        """Number of ranks that it rose; below 0 if it fell."""
        return 0 if self.rank is None or self.rank_before is None else self.rank_before - self.rank


@dataclass(frozen=True, slots=True)
class Moved:
    """The runs in the order of the board with their values on `before`, and the changes between the two versions.

    `queries_before` and `queries` count the queries in the means of the first run.
    """

    before: DatasetVersion
    version: DatasetVersion
    changes: Changes
    runs: list[MovedRun]
    queries_before: int
    queries: int

    @property
    def unmoved(self) -> bool:
        return all(run.change == 0 and run.places == 0 for run in self.runs)


def moved(benchmark: Benchmark, board: Leaderboard, versions: list[DatasetVersion]) -> Moved | None:
    """Compare a board with that on the previous of `versions`, those with values, oldest first.

    Without an older one, compare with the benchmark's own version. None on that version itself, which was searched, not
    re-scored. Four queries.
    """
    own = benchmark.dataset_version
    if board.version == own or board.evaluation is None:
        return None
    before = next((earlier for earlier in reversed(versions) if earlier.number < board.version.number), own)
    old = leaderboard(benchmark, version=before)
    rows: dict[object, Row] = {row.run.pk: row for row in old.rows}
    first, last = sorted((before, board.version), key=lambda version: version.number)
    return Moved(
        before=before,
        version=board.version,
        changes=Difference(last, since=first.number).counts(),
        runs=[_moved(rows[row.run.pk], row, board.primary) for row in board.rows if row.rank or rows[row.run.pk].rank],
        queries_before=old.evaluation.query_count if old.evaluation else 0,
        queries=board.evaluation.query_count,
    )


def _moved(old: Row, new: Row, primary: str) -> MovedRun:
    return MovedRun(new.run, old.values.get(primary), new.values.get(primary), old.rank, new.rank)
