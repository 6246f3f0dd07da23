"""Judgments that a judging round selected: the verdict with which it ended, and what plain means rest on then."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import permutations
from uuid import UUID

from apps.datasets.models import DatasetVersion
from apps.records.models import RoundVerdict
from benchbench.decimals import counted, figure, join_words, list_some
from benchbench.ir.judging.certainty import calibrate
from benchbench.ir.judging.judging import DRAWS
from benchbench.ir.judging.state import PairState, RunState
from benchbench.ir.statistics.verdict import Verdict, count_ranks

MOST_NAMED = 3  # runs in a verdict
MOST_LISTED = 8  # runs with their expected means


@dataclass(frozen=True, slots=True)
class Selection:
    """The judging round that selected the judgments of `version`, as it concerns the runs to be compared.

    `covers`: whether it compared all of them. `is_own`: whether its own grades made the version.
    """

    round: RoundVerdict
    version: DatasetVersion
    covers: bool

    @property
    def is_own(self) -> bool:
        return self.round.dataset_version_id == self.version.pk

    @property
    def caveat(self) -> str:
        """Return what plain means on the version rest on, and what to do about it."""
        state, name = self.round.state, f"“{self.round.name}”"
        pairs = state.judged + state.unjudged
        rests = (
            f"Plain means on {self.version} rest on selectively judged documents: {state.unjudged:,} of "
            f"{counted(pairs, 'pair')} of the judging round {name} have no grade and count as not relevant, so these "
            "means are too low and may order runs wrongly."
        )
        if not self.covers:
            return f"{rests} The round did not compare all of these runs: judge their unjudged results in a new round."
        if not self.is_own:
            number = self.round.dataset_version.number
            return f"{rests} Version {number} carries the round's verdict: later changes are not part of it."
        return rests

    def settles(self, measure: str) -> bool:
        """Return whether the version carries a verdict on all these runs by a measure; too few grades give none."""
        return self.covers and self.has_verdict_by(measure)

    def has_verdict_by(self, measure: str) -> bool:
        """Return whether the version carries a verdict by a measure on the runs of the round."""
        return self.is_own and self.round.measure == measure and self.round.state.reason is None

    def list_expected(self, run_ids: Sequence[UUID]) -> list[RunState]:
        """Return the expected mean of each run that it covers, with its interval."""
        return [self.round.state.runs[self.round.run_ids.index(run)] for run in run_ids]

    def judge(self, run_ids: Sequence[UUID], baseline: int | None = None) -> Verdict:
        """Return the round's verdict on runs that it covers, which are numbered by their order."""
        return self.round.state.judge([self.round.run_ids.index(run) for run in run_ids], baseline)

    def describe_means(self, run_ids: Sequence[UUID], labels: Sequence[str]) -> str:
        """Return the expected means of runs that it covers as a sentence, best first."""
        expected = sorted(zip(self.list_expected(run_ids), labels, strict=True), key=lambda row: -row[0].mean)
        means = [f"{label} {figure(run.mean)} [{figure(run.low)}, {figure(run.high)}]" for run, label in expected]
        opening = f"Expected {self.round.measure} once all documents are judged, with 95 % intervals"
        return f"{opening}: {list_some(means, MOST_LISTED)}. Based on {self.round.evidence}"

    def find_rank_ranges(self, run_ids: Sequence[UUID]) -> tuple[tuple[int, int], ...]:
        """Return the first and last rank of each run that the likeliest outcomes of all pairs leave open."""
        pairs = permutations(range(len(run_ids)), 2)
        decided = [pair for pair in pairs if self.get_pair(*(run_ids[run] for run in pair)).outcome > 0]
        return count_ranks(len(run_ids), decided)

    def get_pair(self, first: UUID, second: UUID) -> PairState:
        return self.round.state.get_pair(*map(self.round.run_ids.index, (first, second)))

    def compute_probability(self, first: UUID, second: UUID) -> float:
        """Return the calibrated probability of the likeliest outcome of two runs."""
        pair = self.get_pair(first, second)
        return calibrate(pair.probability, DRAWS)

    def describe(self, run_ids: Sequence[UUID], labels: Sequence[str], baseline: int | None = None) -> str:
        """Return the round's verdict on runs that it covers, as a sentence."""
        verdict, state = self.judge(run_ids, baseline), self.round.state
        if len(run_ids) == len(state.runs) and baseline is None:
            probability: float | None = state.probability
        else:
            probability = self.compute_probability(*run_ids) if len(run_ids) == 2 else None
        sure = "" if probability is None else f", probability {figure(probability, 2)}"
        opening = "Settled" if state.is_settled else "Not settled, most likely"
        return f"{opening} by the judging round “{self.round.name}”{sure}: {_describe_standings(verdict, labels)}."


def find_selection(version: DatasetVersion, run_ids: Collection[UUID]) -> Selection | None:
    """Return the round that selected the judgments of a version; None if none did, or all of these runs' were judged.

    It is the newest that compared all of the runs, else the newest that ended early. One query.
    """
    rows = RoundVerdict.objects.filter(dataset_version__dataset=version.dataset_id)
    earlier = rows.filter(dataset_version__number__lte=version.number).select_related("dataset_version__dataset")
    rounds = list(earlier.order_by("-dataset_version__number"))
    covering = next((row for row in rounds if {*run_ids} <= {*row.run_ids}), None)
    chosen = covering or next((row for row in rounds if row.state.unjudged), None)
    if chosen is None or not chosen.state.unjudged:
        return None
    return Selection(chosen, version, covers=covering is not None)


def _describe_standings(verdict: Verdict, labels: Sequence[str]) -> str:
    if verdict.against_baseline:
        groups = (
            (verdict.better, "better"),
            (verdict.worse, "worse"),
            (verdict.undecided, "not distinguishable from it"),
        )
        clauses = [f"{_name_runs(runs, labels)} {standing}" for runs, standing in groups if runs]
        return f"against the baseline {labels[verdict.reference]}, {'; '.join(clauses)}"
    if verdict.winner is not None:
        return f"{labels[verdict.reference]} is the best run"
    best = f"{_name_runs(verdict.group, labels)} not distinguishable"
    return f"{best}; {_name_runs(verdict.worse, labels)} worse" if verdict.worse else best


def _name_runs(runs: Sequence[int], labels: Sequence[str]) -> str:
    names = [labels[run] for run in runs]
    subject = join_words(names) if len(names) <= MOST_NAMED else f"{len(names)} runs"
    return f"{subject} {'is' if len(names) == 1 else 'are'}"
