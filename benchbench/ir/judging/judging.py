"""Judging of a pool, grade by grade: its state, and the weights of the unjudged pairs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.certainty import LEAVE, calibrate, find_threshold, is_due
from benchbench.ir.judging.differences import OpenQuery, bound_differences
from benchbench.ir.judging.evidence import Axes, Features
from benchbench.ir.judging.fillings import Shape, count_outside
from benchbench.ir.judging.outcomes import (
    WIDER_DIFFERENCES,
    WIDER_MEANS,
    Criterion,
    Outcomes,
    find_intervals,
    find_likeliest,
    find_settled,
    forecast,
)
from benchbench.ir.judging.pool import Item, JudgingError, Pool
from benchbench.ir.judging.relevance import PRIOR, Drawing, Prior, Relevance, learn, learn_tails
from benchbench.ir.judging.state import MoreGrades, PairState, RunState, State
from benchbench.ir.judging.weights import ExpectedGrades, compute_effects, squared
from benchbench.ir.measures import Measure, Values
from benchbench.ir.statistics.max_t import pair_runs
from benchbench.ir.statistics.resampling import SAME

DRAWS = 200
CONFIDENCE = 0.95
LEARN_AFTER = 0.05
FEWEST_GRADES, FEWEST_RELEVANT = 30, 5  # with fewer, the model calls nothing settled


class Judging:
    """The grades of a pool so far, and the state that they imply for one measure.

    `truths` are the judgments of each query (document id → grade), including those outside the pool. `scale` has every
    possible grade. Without `truths_teach` the model of relevance learns from later grades alone: existing judgments may
    be biased, for example if a dataset lists relevant documents only.

    Results are cached by query, so a state after one more grade costs that query alone. The model is refitted after
    every 5 % more grades, and wherever it decides whether a round is settled. After a refit, equal grades and seed give
    an equal state. Raises JudgingError for a measure that does not support holes, a scale without a grade above 0, and
    fewer than 2 runs or 2 queries that every run answered.
    """

    def __init__(
        self,
        pool: Pool,
        measure: Measure,
        scale: Sequence[float],
        truths: Sequence[Mapping[Hashable, float]],
        *,
        seed: int = 0,
        draws: int = DRAWS,
        truths_teach: bool = True,
        axes: Axes | None = None,
        prior: Prior = PRIOR,
    ) -> None:
        self.pool, self.measure, self.seed, self.draws = pool, measure, seed, draws
        if pool.runs < 2 or pool.answered.sum() < 2:
            raise JudgingError("A verdict needs at least 2 runs, and 2 queries that each of them answered.")
        self.grades = pool.get_grades(truths)
        self._outside = pool.list_outside(truths)
        self._truths_teach = truths_teach
        self._teaching = ~np.isnan(self.grades) & truths_teach
        self._scale = {*map(float, scale), *self.grades[~np.isnan(self.grades)].tolist(), *chain(*self._outside)}
        self.shape = Shape.from_pool(pool, measure, sorted(self._scale))
        # The rows of both runs of each pair, (p,) each, as in `statistics.compare`.
        self.pairs = pair_runs(pool.runs, None)
        self._features, self._prior = Features(pool, axes), prior
        self._bounds = np.full((2, pool.queries, len(self.pairs[0])), np.nan)
        self._outside_counts = count_outside(self._outside, self.shape.levels)
        self._drawing = Drawing(pool, self._features, self.shape, self._outside_counts, draws=draws, seed=seed)
        self._model: Relevance | None = None
        self._learned_count = 0
        self._stale_queries: set[int] = set()
        self._criterion: Criterion | None = None
        self._importance: Values | None = None
        self._cached_forecast: MoreGrades | None = None

    def grade(self, item: Item, grade: float | None) -> None:
        """Add a grade, or remove it with None. Raises JudgingError for a pair outside the pool, or scale."""
        query, column = self.pool.find_cell(item)
        if grade is not None and float(grade) not in self._scale:
            raise JudgingError(f"The grade {grade:g} is not on the scale.", field="grade")
        self.grades[query, column] = np.nan if grade is None else float(grade)
        self._teaching[query, column] = grade is not None
        self._bounds[:, query] = np.nan
        self._stale_queries.add(query)

    def inform(self, model_grades: Values | None) -> None:
        """Replace the language model's grades (size,), NaN for a missing one, as evidence."""
        self._features.inform(model_grades)
        self._model = None

    def state(self, *, before: State | None = None, bounds: bool = True) -> State:
        """Return the state after the grades so far, by a refitted model wherever it decides whether they settle it.

        `before` is the last stored state: a settled round stays settled while its verdict is likely (see `certainty`).
        Without `bounds` those are NaN and `is_certain` is false: cheaper for frequent calls that do not show them.
        """
        judged = int((~np.isnan(self.grades)).sum())
        settled_verdict = before.verdict if before is not None and before.is_settled else None
        may_settle = is_due(judged, before) or not self._holes.any()
        if (may_settle or settled_verdict) and self._learned_count != judged:
            self._learn()
        outcomes, reason = self._draw_outcomes(), self._describe_shortage()
        likeliest, shares = find_likeliest(outcomes.signs)
        verdict = self._find_verdict(outcomes, likeliest)
        probability, settled = self._compute_probability(outcomes, verdict), False
        threshold = find_threshold(*self._features.measure_agreement(self.grades))
        if (
            settled_verdict
            and reason is None
            and (still := self._compute_probability(outcomes, settled_verdict)) >= LEAVE
        ):
            verdict, probability, settled = settled_verdict, still, True
        settled |= may_settle and reason is None and probability >= threshold
        sure = find_settled(outcomes.signs == likeliest, shares, CONFIDENCE) & (reason is None)
        pairs = self._build_pairs(outcomes, likeliest, shares, sure, self.compute_bounds() if bounds else None)
        self._importance = self._weigh_pairs(outcomes, shares)
        return State(
            pairs=pairs,
            runs=tuple(
                RunState(*row) for row in zip(*find_intervals(outcomes.means, WIDER_MEANS).tolist(), strict=True)
            ),
            verdict=verdict,
            winner=verdict[0] if len(verdict) == 1 else None,
            probability=probability,
            threshold=threshold,
            is_settled=settled,
            is_certain=all(pair.certain_order is not None for pair in pairs),
            judged=judged,
            unjudged=int(self._holes.sum()),
            queries=int(self.pool.answered.sum()),
            grades_needed=self._forecast_grades(outcomes, settled, reason),
            reason=reason,
        )

    def _find_verdict(self, outcomes: Outcomes, likeliest: NDArray[np.int8]) -> tuple[int, ...]:
        """Return the best group by the likeliest outcomes."""
        best = int(outcomes.means.mean(axis=0).argmax())
        group = np.ones(self.pool.runs, bool)
        for first, second, outcome in zip(*self.pairs, likeliest, strict=True):
            if outcome and best in (first, second):
                group[second if first == best else first] = False
        return tuple(np.flatnonzero(group).tolist())

    def _compute_probability(self, outcomes: Outcomes, verdict: tuple[int, ...]) -> float:
        """Return the calibrated probability of a verdict; 1 if the fillings agree in every difference, or none is."""
        group = np.isin(np.arange(self.pool.runs), verdict)
        share = float((outcomes.find_groups() == group).all(axis=1).mean())
        if share == 1 and np.ptp(outcomes.differences, axis=0).max() < SAME:
            return 1.0
        return calibrate(share, self.draws)

    def _build_pairs(
        self,
        outcomes: Outcomes,
        likeliest: NDArray[np.int8],
        shares: Values,
        sure: NDArray[np.bool_],
        bounds: tuple[Values, Values] | None,
    ) -> tuple[PairState, ...]:
        lower, upper = bounds or (np.full(len(shares), np.nan),) * 2
        expected, low, high = find_intervals(outcomes.differences, WIDER_DIFFERENCES)
        spread = outcomes.differences.std(axis=0)
        margins = [margin if np.isfinite(margin) else None for margin in outcomes.margins.tolist()]
        columns = (*self.pairs, lower, upper, expected, spread, likeliest, shares, sure, low, high)
        return tuple(PairState(*row) for row in zip(*(column.tolist() for column in columns), margins, strict=True))

    def compute_weights(self) -> Values:
        """Return the weight of each pair of the pool, (size,); 0 if it is judged (see `judging.weights`).

        Weights depend on the last computed state: compute it again after a few grades.
        """
        if self._importance is None:
            self.state(bounds=False)
        expected = self._expected
        effect = compute_effects(self.pool, self.shape, expected)
        gains = squared(effect, self._importance) * expected.spread**2  # type: ignore[arg-type]
        gains = np.where(self._holes & self.pool.answered[:, None], gains, 0.0)
        return np.asarray(np.sqrt(gains)[tuple(self.pool.cells.T)], np.float64)

    def compute_bounds(self) -> tuple[Values, Values]:
        """Return the least and greatest difference of means of each pair of runs over every filling, (p,) each."""
        for query in np.flatnonzero(self.pool.answered & np.isnan(self._bounds[0, :, 0])).tolist():
            row = OpenQuery.from_pool(self.pool, self.shape, query, self.grades[query], self._outside_counts[:, query])
            self._bounds[:, query] = bound_differences(self.shape, row, self.pairs)
        ends = self._bounds[:, self.pool.answered].mean(axis=1)
        ends[np.abs(ends) < 1e-12] = 0.0  # what is left of sums that are 0
        return ends[0], ends[1]

    @property
    def _holes(self) -> NDArray[np.bool_]:
        return self.pool.has_document & np.isnan(self.grades)

    def _describe_shortage(self) -> str | None:
        judged, relevant = int(self._teaching.sum()), int((self._teaching & (self.grades > 0)).sum())
        if not self._holes.any() or (judged >= FEWEST_GRADES and relevant >= FEWEST_RELEVANT):
            return None
        requirement = (
            f"To settle a result, at least {FEWEST_GRADES} pairs must be judged and {FEWEST_RELEVANT} relevant"
        )
        if not self._truths_teach:
            return (
                f"{requirement}; this round has {judged} and {relevant}. Only its own grades count, "
                "because the dataset has relevant documents only."
            )
        return f"{requirement}; so far there are {judged} and {relevant}."

    def _draw_outcomes(self) -> Outcomes:
        """Return the outcomes of the fillings. Queries with new grades are redrawn; 5 % more grades refit the model."""
        judged = int((~np.isnan(self.grades)).sum())
        if self._model is None or abs(judged - self._learned_count) >= max(1, LEARN_AFTER * self._learned_count):
            self._learn()
        for query in self._stale_queries:
            self._features.renew_queries(self.grades, slice(query, query + 1))
            self._drawing.draw_query(self.grades, query)
        self._stale_queries.clear()
        values = self._drawing.values
        if not self.pool.answered.all():
            values = values[:, :, self.pool.answered]
        if self._criterion is None:
            self._criterion = Criterion.from_values(values, seed=self.seed)
        return Outcomes.from_values(values, self.pairs, self._criterion)

    def _learn(self) -> None:
        grades = self.grades[tuple(self.pool.cells.T)]
        teaching = self._teaching[tuple(self.pool.cells.T)]
        self._features.renew_all(self.grades)
        relevant = np.where(teaching & ~np.isnan(grades), grades > 0, np.nan)
        self._model = learn(self.pool, self._features.values, relevant, self._prior)
        self._learned_count = int((~np.isnan(grades)).sum())
        tails = learn_tails(self.pool, self._features.values, grades, self.shape.levels)
        self._drawing.draw_all(
            self.grades, self._model, self._features.inform_tails(tails, self.grades, self.shape.levels)
        )
        self._stale_queries.clear()
        self._criterion = self._cached_forecast = None

    @property
    def _expected(self) -> ExpectedGrades:
        assert self._model is not None
        chances = np.zeros(self.pool.has_document.shape)
        chances[tuple(self.pool.cells.T)] = self._model.predict(self._features.values, self.pool.cells[:, 0])
        return ExpectedGrades.from_chances(self.shape, self.grades, chances, self._outside_counts[0])

    def _weigh_pairs(self, outcomes: Outcomes, shares: Values) -> Values:
        """Return the importance of each pair of runs, (R, R).

        It is the pair's indecision times the probability that the verdict depends on it: that one is the best run.
        """
        first, second = self.pairs
        open_ = 1 - shares + 1 / self.draws
        best = outcomes.means.argmax(axis=1)[:, None]
        open_ = open_ * (((best == first) | (best == second)).mean(axis=0) + 1 / self.draws)
        importance = np.zeros((self.pool.runs, self.pool.runs))
        importance[first, second] = importance[second, first] = open_
        return importance

    def _forecast_grades(self, outcomes: Outcomes, settled: bool, reason: str | None) -> MoreGrades:
        """Return the forecast, computed with each new model; in between, the grades since then are subtracted."""
        if settled or reason is not None:
            return MoreGrades(median=0 if settled else None, p90=0 if settled else None)
        if self._cached_forecast is None:
            self._cached_forecast = self._forecast(outcomes)
        since = int((~np.isnan(self.grades)).sum()) - self._learned_count
        middle, p90 = self._cached_forecast.median, self._cached_forecast.p90
        return MoreGrades(median=middle and max(1, middle - since), p90=p90 and max(1, p90 - since))

    def _forecast(self, outcomes: Outcomes) -> MoreGrades:
        best = outcomes.means.mean(axis=0).argmax()
        first, second = self.pairs
        deciding = np.flatnonzero((first == best) | (second == best))
        effect = compute_effects(self.pool, self.shape, expected := self._expected)
        holes = np.nonzero(self._holes & self.pool.answered[:, None])
        at_holes, spread = effect[:, holes[0], holes[1]], expected.spread[holes]
        order = np.argsort(-squared(at_holes, self._importance) * spread**2, kind="stable")  # type: ignore[arg-type]
        at_holes, spread = at_holes[:, order], spread[order]
        gains = ((at_holes[first[deciding]] - at_holes[second[deciding]]) * spread) ** 2
        return forecast(outcomes, deciding, gains, confidence=CONFIDENCE)
