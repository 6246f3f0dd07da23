"""The dataset versions on which a benchmark has values: the shown one, and its changes since the previous one."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.datasets.editing.differences import Changes, Difference
from apps.datasets.models import DatasetVersion
from apps.records.measuring.again import list_scored_versions
from apps.records.models import Benchmark, Evaluation, Run
from apps.verdicts.ranked_runs import Leaderboard, Row, load_leaderboard
from benchbench.access import AnyUser, viewable
from benchbench.errors import BenchbenchError

SHOWN_MOVES = 2  # benchmarks whose runs a page shows, about eight queries each
MOST_SHOWN = 20  # characters of the user's input


class NoValuesError(BenchbenchError):
    """The benchmark has no values on this version."""

    code = "no_values"


@dataclass(frozen=True, slots=True)
class VersionView:
    """The version of a page's values, the benchmark's own, and all versions with values, oldest first."""

    version: DatasetVersion
    original: DatasetVersion
    choices: list[DatasetVersion]

    @property
    def is_other(self) -> bool:
        return self.version != self.original

    @property
    def query_string(self) -> str:
        """The query string for links: `?version=2`, or "" for the benchmark's own."""
        return f"?version={self.version.number}" if self.is_other else ""


def choose_version(benchmark: Benchmark, number: str) -> VersionView:
    """Return the version with number `number`, by default the benchmark's own. Raises NoValuesError."""
    choices = list_scored_versions(benchmark)
    loaded = {version.pk: version for version in choices}  # with their dataset
    original = loaded.get(benchmark.dataset_version_id) or benchmark.dataset_version
    numbers = {str(version.number): version for version in (*choices, original)}
    if number and number not in numbers:
        available = ", ".join(str(version.number) for version in choices) or "none"
        raise NoValuesError(
            f'"{benchmark}" has no values on version {number[:MOST_SHOWN]} of its dataset; versions '
            f"with values: {available}. Re-score it with `manage.py rescore`.",
            field="version",
        )
    return VersionView(numbers[number] if number else original, original, choices)


def load_scored_version(benchmark: Benchmark, number: int | None) -> DatasetVersion:
    """Return version `number` of the dataset, by default the benchmark's own. Raises NoValuesError without values."""
    original = benchmark.dataset_version
    return original if number in (None, original.number) else choose_version(benchmark, str(number)).version


@dataclass(frozen=True, slots=True)
class RunChange:
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
    def rank_gain(self) -> int:
        """Number of ranks that it rose; below 0 if it fell."""
        return 0 if self.rank is None or self.rank_before is None else self.rank_before - self.rank


@dataclass(frozen=True, slots=True)
class VersionChange:
    """The runs in the order of the board with their values on `before`, and the changes between the two versions.

    `queries_before` and `queries` count the queries in the means of the first run.
    """

    before: DatasetVersion
    version: DatasetVersion
    changes: Changes
    runs: list[RunChange]
    queries_before: int
    queries: int

    @property
    def unmoved(self) -> bool:
        return all(run.change == 0 and run.rank_gain == 0 for run in self.runs)


def compare_versions(benchmark: Benchmark, board: Leaderboard, versions: list[DatasetVersion]) -> VersionChange | None:
    """Compare a board with that on the previous of `versions`, those with values, oldest first.

    Without an older one, compare with the benchmark's own version. None on that version itself, which was searched, not
    re-scored. Four queries.
    """
    original = benchmark.dataset_version
    if board.version == original or board.evaluation is None:
        return None
    before = next((earlier for earlier in reversed(versions) if earlier.number < board.version.number), original)
    old = load_leaderboard(benchmark, version=before)
    rows: dict[UUID, Row] = {row.run.pk: row for row in old.rows}
    changes = [_change(rows[row.run.pk], row, board.primary) for row in board.rows]
    first, last = sorted((before, board.version), key=lambda version: version.number)
    return VersionChange(
        before=before,
        version=board.version,
        changes=Difference(last, since=first.number).counts(),
        runs=[change for change in changes if change.before is not None or change.now is not None],
        queries_before=old.evaluation.query_count if old.evaluation else 0,
        queries=board.evaluation.query_count,
    )


def _change(old: Row, new: Row, primary: str) -> RunChange:
    return RunChange(new.run, old.values.get(primary), new.values.get(primary), old.rank, new.rank)


@dataclass(frozen=True, slots=True)
class Move:
    """A benchmark's leaderboard on a version, and its changes since the previous one."""

    benchmark: Benchmark
    board: Leaderboard
    moved: VersionChange | None


def load_moves(version: DatasetVersion, user: AnyUser) -> tuple[list[Move], list[Benchmark]]:
    """Return the newest benchmarks that were re-scored on a version with their changes, and the other such benchmarks.

    They are those that `user` may see.
    """
    scored = Evaluation.objects.filter(run__benchmark=OuterRef("pk"), dataset_version=version)
    older = Benchmark.objects.filter(dataset_version__dataset=version.dataset_id).exclude(dataset_version=version)
    benchmarks = list(
        viewable(older.filter(Exists(scored)), user)
        .select_related("dataset_version__dataset", "mapping", "operation")
        .order_by("-created_at")
    )
    moves = []
    for benchmark in benchmarks[:SHOWN_MOVES]:
        board = load_leaderboard(benchmark, version=version)
        moves.append(Move(benchmark, board, compare_versions(benchmark, board, list_scored_versions(benchmark))))
    return moves, benchmarks[SHOWN_MOVES:]
