"""The evidence of a gate: values of runs on one dataset version, and their differences from a baseline."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from statistics import NormalDist
from uuid import UUID

import numpy as np

from apps.datasets.models import DatasetVersion
from apps.datasets.versions import load_weights
from apps.mappings.truth import read_truth
from apps.records.lists.reading import load_rankings, require_rankings
from apps.records.measuring.evaluating import load_truth
from apps.records.measuring.selection import Selection
from apps.records.measuring.slicing import slice_truth
from apps.records.models import Baseline, Benchmark, Evaluation, Run
from apps.records.models.values import load_values
from benchbench.decimals import counted
from benchbench.ir.gate import Difference, Evidence, Mask, Values
from benchbench.ir.judging.state import PairState
from benchbench.ir.measures import Measure, Truths, count_once, evaluate
from benchbench.ir.rules import Change, Rules
from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import Pair, compare
from benchbench.ir.statistics.verdict import find_detectable

Differences = dict[Measure, Difference | str]


class Ground:
    """The queries of a dataset version in one order, and the truth that a benchmark's runs are measured against."""

    def __init__(self, benchmark: Benchmark, version: DatasetVersion) -> None:
        self.benchmark = benchmark
        self.version = version
        self.truth = load_truth(benchmark, version)
        self.grades = self.truth.grades
        self.query_ids = list(self.grades)
        self.truths = Truths.from_grades(list(self.grades.values()))

    @cached_property
    def in_means(self) -> Mask:
        """Return the mask of the queries that count in a mean if they are answered."""
        relevant: Mask = self.truths.n_relevant > 0
        return relevant if self.benchmark.empty_queries == "skip" else np.ones_like(relevant)

    @cached_property
    def weights(self) -> Values | None:
        """Return the weights of the queries; None if means count them alike."""
        return load_weights(self.benchmark.weighting, self.version, self.query_ids)

    @property
    def unanswerable(self) -> Mask:
        """Return the mask of the queries without a relevant judgment, resolved or not."""
        if self.benchmark.unresolved == "count":
            return self.truths.n_relevant == 0
        grades = read_truth(self.benchmark.mapping, self.version, state=self.benchmark.state).grades
        return np.array([max(grades[query_id].values(), default=0) <= 0 for query_id in self.query_ids], bool)

    @cached_property
    def slices(self) -> dict[str, Mask]:
        """Return the mask of each slice, by its name; a slice that the dataset states has its label too."""
        slices = slice_truth(self.version, self.truth).slices
        by_label = {slice_.label: slice_.members for slice_ in slices if slice_.partition == "slice"}
        return by_label | {slice_.name: slice_.members for slice_ in slices}


class MeasuredRun:
    """The values of a run on a dataset version: stored ones, and those of other measures computed from its rankings."""

    def __init__(self, ground: Ground, evaluation: Evaluation) -> None:
        self.run: Run = evaluation.run
        self.ground = ground
        self.evaluation = evaluation

    @cached_property
    def rankings(self) -> dict[int, list[int]]:
        return load_rankings(self.run)

    def load_values(self, measures: Iterable[Measure]) -> dict[Measure, Values]:
        """Return the value of each measure for each query, in the order of the ground; NaN for failed queries."""
        requested, query_ids = list(measures), self.ground.query_ids
        present = [measure for measure in requested if str(measure) in self.evaluation.measures]
        stored = dict(zip(present, load_values([self.evaluation], list(map(str, present)), query_ids)[0], strict=True))
        missing = [measure for measure in requested if measure not in stored]
        if not missing:
            return stored
        graded = self.ground.truths.grade([self.rankings.get(query_id, []) for query_id in query_ids])
        computed = evaluate(missing, graded)
        computed[:, [query_id not in self.rankings for query_id in query_ids]] = np.nan
        return stored | dict(zip(missing, computed, strict=True))

    @cached_property
    def lengths(self) -> dict[int, int]:
        """Return the number of documents ranked for each query that did not fail."""
        require_rankings(self.run.benchmark)
        answered = self.run.query_results.filter(error="")
        return dict(answered.order_by("query_id", "-repetition").values_list("query_id", "document_ids__len"))


def build_evidence(rules: Rules, measured: MeasuredRun, differences: Differences) -> Evidence:
    """Return the evidence that the rules need about a run."""
    ground = measured.ground
    answered = np.array([query_id in measured.lengths for query_id in ground.query_ids], bool)
    times = measured.run.times
    mean = {} if times.total_ms is None else {"mean": times.total_ms}
    return Evidence(
        keys=[ground.truth.keys[query_id] for query_id in ground.query_ids],
        failed=~answered,
        counted=answered & ground.in_means,
        n_judgments=np.array([len(count_once(judged)) for judged in ground.grades.values()], np.int64),
        values=measured.load_values(rules.measures),
        slices=ground.slices if any(floor.slice for floor in rules.floors) else {},
        unanswerable=ground.unanswerable,
        returned=np.array([measured.lengths.get(query_id, 0) > 0 for query_id in ground.query_ids], bool),
        latency_ms=mean | times.total_percentiles,
        samples=(times.samples or 0) if mean else 0,
        shared=times.is_shared,
        differences=differences,
        weights=ground.weights,
    )


def compute_differences(
    changes: Sequence[Change], runs: Sequence[MeasuredRun], baseline: MeasuredRun, *, alpha: float, seed: int
) -> dict[UUID, Differences]:
    """Return the differences of each run from the baseline in the measures of `changes`, by run id.

    The runs are one family per measure, and the measures share alpha evenly (Bonferroni). So the probability of any
    false positive is at most `alpha`. Each run is compared on the queries that it and the baseline answered.
    """
    candidates = [run for run in runs if run.run.pk != baseline.run.pk]
    by_run: dict[UUID, Differences] = {run.run.pk: {} for run in runs}
    for change in changes:
        rows = [
            np.where(run.ground.in_means, run.load_values([change.measure])[change.measure], np.nan)
            for run in [*candidates, baseline]
        ]
        no_difference = Difference(0.0, None, False, int((~np.isnan(rows[-1])).sum()), is_unchanged=True)
        results = _compare_with_last(np.stack(rows), baseline.ground.weights, alpha / len(changes), seed)
        by_candidate = {run.run.pk: difference for run, difference in zip(candidates, results, strict=True)}
        for pk in by_run:
            by_run[pk][change.measure] = by_candidate.get(pk, no_difference)
    return by_run


def expect_differences(
    by_run: dict[UUID, Differences],
    selection: Selection | None,
    runs: Sequence[MeasuredRun],
    baseline: Baseline,
    rules: Rules,
) -> list[str]:
    """Put the differences that a judging round expects in place of those of plain means; return its verdict on each.

    A round counts queries alike, and settles one measure.
    """
    verdicts: list[str] = []
    if selection is None or baseline.run.benchmark.means_name:
        return verdicts
    for change in (change for change in rules.changes if selection.settles(str(change.measure))):
        for measured in (measured for measured in runs if measured.run.pk != baseline.run_id):
            pair = selection.get_pair(measured.run.pk, baseline.run_id)
            queries, labels = selection.round.state.queries, [measured.run.label, f"“{baseline.name}”"]
            by_run[measured.run.pk][change.measure] = _expect(pair, rules.alpha / len(rules.changes), queries)
            verdicts.append(selection.describe([measured.run.pk, baseline.run_id], labels, baseline=1))
    return verdicts


def _expect(pair: PairState, alpha: float, n: int) -> Difference | str:
    """Return the expected difference with its interval, which covers the choice of queries and what is not judged.

    The interval's level is 95 %; a smaller alpha widens it by the ratio of the normal quantiles, which is more than a
    family of several pairs needs.
    """
    if pair.margin is None:
        return f"{counted(n, 'query')} are too few for a significant result."
    normal = NormalDist()
    margin = pair.margin * max(1.0, normal.inv_cdf(1 - alpha / 2) / normal.inv_cdf(0.975))
    low, high = pair.difference - margin, pair.difference + margin
    return Difference(pair.difference, (low, high), low > 0 or high < 0, n)


def _compare_with_last(rows: Values, weights: Values | None, alpha: float, seed: int) -> Sequence[Difference | str]:
    """Return the difference of each row but the last from the last.

    Rows with the same queries are compared as one family. Otherwise each row is compared alone with an even share of
    alpha: in a family, a row that lacks queries would exclude them for all, and could hide a loss of the others.
    """
    last = len(rows) - 1
    if not last:
        return []
    shared = ~np.isnan(rows[:-1] + rows[-1])
    if (shared != shared[0]).any():
        return [
            difference
            for row in rows[:-1]
            for difference in _compare_with_last(np.stack([row, rows[-1]]), weights, alpha / last, seed)
        ]
    try:
        comparison = compare(rows, baseline=last, alpha=alpha, seed=seed, weights=weights)
    except ComparisonError as error:
        return [error.message] * last
    return [
        Difference(
            pair.difference,
            _find_interval(pair),
            pair.significant,
            comparison.n,
            find_detectable(pair, comparison) if pair.wins + pair.losses else None,
            comparison.critical is not None,
            pair.held_back,
            not pair.wins + pair.losses,
        )
        for pair in (comparison.get_pair(row, last) for row in range(last))
    ]


def _find_interval(pair: Pair) -> tuple[float, float] | None:
    """Return the simultaneous confidence interval of the family."""
    return (pair.simultaneous.low, pair.simultaneous.high) if pair.simultaneous else None
