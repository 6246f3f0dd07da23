"""The audit of run files: the verdict as a site gives it, what the figures support, and the faults of the files."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from benchbench.errors import BenchbenchError
from benchbench.ir.coverage import cover, describe_uneven
from benchbench.ir.demand import weigh
from benchbench.ir.measures import Measure, Values
from benchbench.ir.statistics import wording
from benchbench.ir.statistics.limits import find_attainable_p
from benchbench.ir.statistics.significance import Comparison, Pair, compare
from benchbench.ir.statistics.verdict import estimate_queries, find_verdict
from benchbench.scoring.faults import Fault, RunRows, Truth, find_run_faults, find_truth_faults
from benchbench.scoring.measuring import Rankings, grade_blocks, list_figures, score

SEED = 42  # as that of a benchmark


class AuditError(BenchbenchError):
    """The files or options cannot be audited."""

    code = "audit"


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The means of a run; judged share, condensed value and bounds are by the first measure; None if undefined."""

    run: str
    means: dict[str, float | None]
    judged: float | None
    condensed: float | None
    lower_bound: float | None
    upper_bound: float | None


@dataclass(frozen=True, slots=True)
class PairFigures:
    """Two runs compared by the first measure, with the least p that they can have and the queries that would decide."""

    first: str
    second: str
    attainable_p: float
    more_queries: int | None
    statistics: Pair


@dataclass(frozen=True, slots=True)
class Audit:
    """Verdict with its notes, figures of runs and tested pairs, the best first, and faults of the files."""

    measure: str
    queries: int
    judgments: int
    verdict: str
    notes: list[str]
    faults: list[Fault]
    runs: list[RunFigures]
    pairs: list[PairFigures]


def audit(
    truth: Truth,
    runs: Sequence[RunRows],
    measures: Sequence[Measure],
    *,
    file: str,
    baseline: str | None = None,
    top_grade: int | None = None,
) -> Audit:
    """Compare `runs` by the first of the measures on the judged queries of the `file`, as trec_eval -c counts them.

    Raises AuditError for fewer than 2 runs, equal names, a missing baseline, and a measure that falls as runs improve.
    """
    labels = [rows.file for rows in runs]
    _check(labels, measures, baseline)
    rankings = [rows.rank(truth) for rows in runs]
    scores = [score(truth, ranking, measures) for ranking in rankings]
    values = np.stack([scored.values[0] for scored in scores])
    comparison = compare(values, seed=SEED, baseline=labels.index(baseline) if baseline else None)
    verdict = find_verdict(comparison)
    order = sorted(range(len(runs)), key=lambda run: (-comparison.means[run], run))
    highest = max([top_grade or 1, *(max(grades.values()) for grades in truth.values())])
    names = [str(measure) for measure in measures]
    figures = [
        RunFigures(
            labels[run],
            list_figures(names, scores[run].means),
            **_cover(truth, rankings[run], measures[0], highest),
        )
        for run in order
    ]
    notes = (
        describe_uneven({one.run: one.judged for one in figures}),
        wording.describe_disorder(verdict, labels, order),
        wording.describe_caution(comparison, values),
        wording.describe_family(comparison, names[0]),
    )
    faults = [*find_truth_faults(file, truth, top_grade), *chain(*(find_run_faults(rows, truth) for rows in runs))]
    return Audit(
        measure=names[0],
        queries=len(truth),
        judgments=sum(map(len, truth.values())),
        verdict=wording.describe_verdict(verdict, labels),
        notes=[note for note in notes if note],
        faults=faults,
        runs=figures,
        pairs=[_describe_pair(pair, labels, comparison) for pair in _sort_pairs(comparison.pairs, order)],
    )


def _check(labels: Sequence[str], measures: Sequence[Measure], baseline: str | None) -> None:
    if len(labels) < 2:
        raise AuditError("An audit compares runs: give two run files or more.")
    if len(set(labels)) < len(labels):
        raise AuditError("Two of the run files have the same name: rename one, because reports name runs by file.")
    if baseline and baseline not in labels:
        raise AuditError(f"The baseline {baseline!a} is not among the runs: {', '.join(labels)}.", field="baseline")
    if measures[0].definition.better == "lower":
        raise AuditError(f"{measures[0]} falls as a run improves, so it cannot say which run is best.", field="measure")


def _cover(truth: Truth, rankings: Rankings, measure: Measure, highest: float) -> dict[str, float | None]:
    """Return the means of judged share, condensed value and bounds; of bounds None if a query lacks one."""
    blocks = [cover([measure], graded, top_grade=highest) for graded in grade_blocks(truth, rankings)]
    names = ("judged", "condensed", "lower_bound", "upper_bound")
    rows: list[Values] = [np.concatenate([getattr(block, name)[0] for block in blocks]) for name in names]
    means = np.array([weigh(row) for row in rows])
    means[2:][np.isnan(rows[2:]).any(axis=1)] = np.nan
    return list_figures(names, means)


def _sort_pairs(pairs: Sequence[Pair], order: Sequence[int]) -> list[Pair]:
    """Return the pairs by falling mean, each seen from the greater one: those with the best run come first."""
    position = {run: at for at, run in enumerate(order)}
    seen = [pair if position[pair.first] < position[pair.second] else pair.reversed for pair in pairs]
    return sorted(seen, key=lambda pair: (position[pair.first], position[pair.second]))


def _describe_pair(pair: Pair, labels: Sequence[str], comparison: Comparison) -> PairFigures:
    more = None if pair.significant else estimate_queries(pair, comparison)
    attainable = find_attainable_p(pair, comparison)
    return PairFigures(labels[pair.first], labels[pair.second], attainable, more, pair)
