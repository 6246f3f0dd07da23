"""Corrected verdicts from a uniform sample of pairs; see `corrected` for what is estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.corrected import Corrected, CorrectedPair
from benchbench.ir.judging.fillings import PLACED, Shape, counted, reached
from benchbench.ir.judging.pool import Item, JudgingError, Pool
from benchbench.ir.measures import Measure, Values
from benchbench.ir.statistics.significance import Pair, compare
from benchbench.ir.statistics.verdict import verdict

FEWEST_PAIRS = 30


def corrected_by_pairs(
    pool: Pool,
    measure: Measure,
    model: Sequence[Mapping[Any, float]],
    person: Mapping[Item, float],
    inclusion: float,
    *,
    seed: int,
    known: Sequence[Mapping[Any, float]] | None = None,
    baseline: int | None = None,
    alpha: float = 0.05,
    resamples: int = 10_000,
) -> Corrected:
    """The corrected comparison from a uniform sample of pairs.

    `model` has for each query the model's grade of every document of the pool, and `person` the person's grades of the
    sampled pairs, of which each pair of the pool had the probability `inclusion` (`orders.sample_of`). Each run and
    query gets an unbiased estimate of its value, whose differences are compared as values are (`statistics.compare`):
    queries and pairs are both drawn, and the spread of the estimates over the queries holds both. One λ serves all
    runs. Pairs that a person judged before, in `known`, are taken as they are: the sample is of the other pairs, and so
    is `inclusion`. Raises JudgingError for a measure that is no sum of grades, a pair without a grade of the model, a
    sampled pair that is known, or fewer than 30 sampled pairs.
    """
    shape = _shape(pool, measure, model)
    places = [pool.place(item) for item in person]
    if len(places) < FEWEST_PAIRS:
        raise JudgingError(f"{len(places)} pairs are judged by a person; a correction needs at least {FEWEST_PAIRS}.")
    before = np.full(pool.there.shape, np.nan) if known is None else pool.grades(known)
    rest = pool.there & np.isnan(before)
    by_model = np.where(np.isnan(before), pool.grades(model), before)
    if np.isnan(by_model[pool.there]).any():
        raise JudgingError("The model has not graded every pair of the pool; let it finish first.")
    by_person, chosen = np.zeros_like(by_model), np.zeros(by_model.shape, bool)
    for (query, place), grade in zip(places, person.values(), strict=True):
        by_person[query, place], chosen[query, place] = grade, True
    if (chosen & ~rest).any():
        raise JudgingError("A sampled pair was judged before: the sample is of the pairs that nobody had judged.")
    ideal = _ideal(pool, shape, model, by_model)
    fixed = _sums(shape, by_model, pool.there & ~rest, ideal)
    whole = _sums(shape, by_model, rest, ideal)
    drawn_model = _sums(shape, by_model, chosen, ideal) / inclusion
    drawn_person = fixed + _sums(shape, by_person, chosen, ideal) / inclusion
    used = pool.answered
    tuned = _tuned(drawn_person[:, used], (whole - drawn_model)[:, used]) if inclusion < 1 else 0.0
    values = np.where(used, drawn_person + tuned * (whole - drawn_model), np.nan)
    comparison = compare(values, seed=seed, baseline=baseline, alpha=alpha, resamples=resamples)
    by_model_alone = (fixed + whole)[:, used]
    pairs = tuple(_told(pair, drawn_person[:, used], by_model_alone, tuned, len(places)) for pair in comparison.pairs)
    return Corrected(
        pairs=pairs,
        estimand=_ESTIMANDS[measure.name].format(measure),
        judged=len(places),
        unit="pair",
        queries=comparison.n,
        group=tuple(sorted(verdict(comparison).group)) if baseline is None else None,
        alpha=alpha,
    )


_ESTIMANDS = {
    "P": "mean difference in {} by the person's grades",
    "Hits": "mean difference in {} by the person's grades",
    "nDCG": "mean difference in {} by the person's gains over the ideal by the model's grades",
    "R": "mean difference in {} by the person's grades over the number of relevant documents by the model's",
}


def _shape(pool: Pool, measure: Measure, model: Sequence[Mapping[Any, float]]) -> Shape:
    if measure.name in PLACED:
        raise JudgingError(
            f"{measure} is no sum of grades, so that a sample of pairs cannot correct it: let people judge whole "
            "queries, in a round of the order queries, or take nDCG@10 or P@10.",
            field="measure",
        )
    grades = {grade for truth in model for grade in truth.values()} | {1.0}
    return Shape.of(pool, measure, sorted(grades))


def _ideal(pool: Pool, shape: Shape, model: Sequence[Mapping[Any, float]], by_model: Values) -> Values:
    """(Q,): what each query's gains are divided by."""
    reach = reached(by_model, shape.levels).sum(axis=2) + counted(pool.outside(model), shape.levels)
    ideal: Values = shape.widths @ shape.summed(reach)
    return ideal


def _sums(shape: Shape, grades: Values, chosen: NDArray[np.bool_], ideal: Values) -> Values:
    """(R, Q): the discounted gains of the chosen pairs over the ideal; 0 where that is 0."""
    gains = np.maximum(grades, 0.0) if shape.measure.name == "nDCG" else (grades > 0).astype(np.float64)
    sums: Values = np.einsum("rqw,qw->rq", shape.discounts, np.where(chosen, gains, 0.0))
    return np.divide(sums, ideal, out=np.zeros_like(sums), where=ideal > 0)


def _tuned(drawn: Values, correction: Values) -> float:
    """The λ between 0 and 1 that makes the variances of the differences least, in their sum over the pairs of runs."""
    among = drawn - drawn.mean(axis=0), correction - correction.mean(axis=0)  # what runs share leaves every difference
    x, y = (part - part.mean(axis=1, keepdims=True) for part in among)
    variance = float((y * y).sum())
    return float(np.clip(-float((x * y).sum()) / variance, 0.0, 1.0)) if variance else 0.0


def _told(pair: Pair, by_person: Values, by_model: Values, tuned: float, judged: int) -> CorrectedPair:
    alone = by_person[pair.first] - by_person[pair.second]
    error = float(alone.std(ddof=1)) / len(alone) ** 0.5
    shrunk = (error / pair.standard_error) ** 2 if pair.standard_error else 1.0
    return CorrectedPair(
        first=pair.first,
        second=pair.second,
        difference=pair.difference,
        standard_error=pair.standard_error,
        interval=pair.interval,
        simultaneous=pair.simultaneous,
        p_adjusted=pair.p_adjusted,
        significant=pair.significant,
        by_model=float((by_model[pair.first] - by_model[pair.second]).mean()),
        by_person=float(alone.mean()),
        tuned=tuned,
        effective=judged * shrunk,
    )
