"""Stress test of holes: the verdict under each way to fill them.

- `not relevant`: an unjudged document counts as not relevant, as in every stored value;
- `left out`: condensed lists (Sakai 2007), in which unjudged documents do not stand;
- `nearest judged`: an unjudged document gets the mean grade of the judged documents of its query that are nearest to it
  by the vectors given, weighted by closeness (in the manner of Büttcher, Clarke, Yeung and Soboroff, SIGIR 2007, who
  train a classifier on the judged documents);
- `model`: the grades of a model, where they are given; what it has not graded stays not relevant;
- `worst case`: for each claim of the verdict the least difference over every filling (`differences`); a verdict that
  tells no runs apart claims nothing, and has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.coverage import condensed
from benchbench.ir.judging.fillings import require_measure
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import JudgingError, Pool
from benchbench.ir.measures import Measure, Truths, evaluate
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import verdict

NEIGHBOURS = 3
NO_CLAIM = "The verdict says of no run that it is better: there is nothing to overturn."
Filling = Literal["not relevant", "left out", "nearest judged", "model", "worst case"]


@dataclass(frozen=True, slots=True)
class Trial:
    """The verdict under one filling; `skipped` says why there is none."""

    filling: Filling
    group: tuple[int, ...]
    """The best run and what cannot be told from it; with a baseline, each other run's outcome against it: 1, 0, −1."""
    means: tuple[float, ...]
    same: bool
    """Whether it is the verdict as the holes are filled now."""
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Stress:
    """The verdict under each filling, and the line that sums it up."""

    trials: tuple[Trial, ...]
    line: str

    @property
    def claims_nothing(self) -> bool:
        """Whether the verdict as it stands calls no run better or worse than another."""
        return self.trials[-1].skipped == NO_CLAIM

    @property
    def holds(self) -> bool:
        return all(trial.same for trial in self.trials if trial.skipped is None)


def stress(
    pool: Pool,
    measure: Measure,
    truths: Sequence[Mapping[Any, float]],
    scale: Sequence[float],
    *,
    seed: int,
    vectors: Callable[[Any], NDArray[np.float32] | None] | None = None,
    model: Sequence[Mapping[Any, float]] | str = "No model has graded these documents.",
    baseline: int | None = None,
    alpha: float = 0.05,
) -> Stress:
    """The verdict of the pool's runs under each filling of the holes of `truths`.

    `vectors` gives a document's vector, or None where it has none; `model` has a model's grades, per query, or says why
    there are none. Without them those fillings are skipped, with a sentence. Any measure is tried, and the worst case
    only where its holes can be reckoned with.
    """
    rankings = pool.rankings()
    filled: dict[Filling, Sequence[Mapping[Any, float]] | str] = {"not relevant": truths, "left out": truths}
    filled["nearest judged"] = (
        "No vectors of documents are given." if vectors is None else nearest_judged(pool, truths, scale, vectors)
    )
    filled["model"] = (
        model
        if isinstance(model, str)
        else [dict(given) | dict(truth) for given, truth in zip(model, truths, strict=True)]
    )
    settings = _Settings(measure, pool.answered, seed, baseline, alpha)
    trials: list[Trial] = []
    for filling, truth in filled.items():
        if isinstance(truth, str):
            trials.append(Trial(filling, (), (), False, truth))
            continue
        group, means = settings.verdict(rankings, truth, left_out=filling == "left out")
        trials.append(Trial(filling, group, means, not trials or group == trials[0].group))
    trials.append(_worst_case(pool, settings, truths, scale, trials[0], rankings))
    return Stress(tuple(trials), _line(trials))


HOLDS = "The verdict holds under every filling of the holes."
IF_HOLES: dict[Filling, str] = {
    "left out": "are left out",
    "nearest judged": "are as relevant as the judged ones nearest to them",
    "model": "get the model's grades",
    "worst case": "turn out as badly as they can",
}


def _line(trials: Sequence[Trial]) -> str:
    tried = [trial for trial in trials if trial.skipped is None]
    fallen = [IF_HOLES[trial.filling] for trial in tried if not trial.same]
    if fallen:
        falls = "becomes another" if trials[-1].skipped == NO_CLAIM else "falls"
        return f"The verdict {falls} if unjudged documents {', or '.join(fallen)}."
    if len(tried) == len(trials):
        return HOLDS
    return f"The verdict holds under every filling of the holes that could be tried ({len(tried)} of {len(trials)})."


@dataclass(frozen=True, slots=True)
class _Settings:
    measure: Measure
    answered: NDArray[np.bool_]
    seed: int
    baseline: int | None
    alpha: float

    def verdict(
        self, rankings: list[list[list[Any]]], truths: Sequence[Mapping[Any, float]], *, left_out: bool
    ) -> tuple[tuple[int, ...], tuple[float, ...]]:
        prepared = Truths.of(truths)
        values = []
        for run in rankings:
            graded = prepared.grade(run)
            values.append(evaluate([self.measure], condensed(graded) if left_out else graded)[0])
        compared = np.where(self.answered, np.stack(values), np.nan)
        comparison = compare(compared, seed=self.seed, baseline=self.baseline, alpha=self.alpha)
        if self.baseline is None:
            return tuple(sorted(verdict(comparison).group)), comparison.means
        signs = (pair.significant * np.sign(pair.difference) for pair in comparison.pairs)
        return tuple(int(sign) for sign in signs), comparison.means


def nearest_judged(
    pool: Pool,
    truths: Sequence[Mapping[Any, float]],
    scale: Sequence[float],
    vectors: Callable[[Any], NDArray[np.float32] | None],
) -> list[dict[Any, float]]:
    """The truths with a grade for each hole of the pool: the mean of the `NEIGHBOURS` nearest judged documents of the
    query, weighted by cosine and rounded to the scale. A hole without a vector, or a query without judged ones, stays.
    """
    grades = np.array(sorted(set(scale)), np.float64)
    result = []
    for ids, truth in zip(pool.documents, truths, strict=True):
        judged, near = _stacked([document for document in truth if truth[document] is not None], vectors)
        holes, far = _stacked([document for document in ids if document not in truth], vectors)
        filled = dict(truth)
        if judged and holes:
            cosine = np.clip(far @ near.T, 1e-6, None)
            nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :NEIGHBOURS]
            closeness = np.take_along_axis(cosine, nearest, axis=1)
            known = np.array([truth[document] for document in judged], np.float64)[nearest]
            means = (closeness * known).sum(axis=1) / closeness.sum(axis=1)
            rounded = grades[np.abs(means[:, None] - grades).argmin(axis=1)]
            filled |= dict(zip(holes, rounded.tolist(), strict=True))
        result.append(filled)
    return result


def _stacked(
    documents: Sequence[Any], vectors: Callable[[Any], NDArray[np.float32] | None]
) -> tuple[list[Any], NDArray[np.float64]]:
    """The documents that have a vector, and these at unit length."""
    pairs = [(document, vector) for document in documents if (vector := vectors(document)) is not None]
    if not pairs:
        return [], np.empty((0, 0))
    rows = np.stack([vector for _, vector in pairs]).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return [document for document, _ in pairs], rows / np.where(lengths > 0, lengths, 1.0)


def _worst_case(
    pool: Pool,
    settings: _Settings,
    truths: Sequence[Mapping[Any, float]],
    scale: Sequence[float],
    now: Trial,
    rankings: list[list[list[Any]]],
) -> Trial:
    """The claims of the verdict against the bounds: a run that is said to be better has to stay ahead in its mean."""
    if not any(now.group) if settings.baseline is not None else len(now.group) == pool.runs:
        return Trial("worst case", (), (), False, NO_CLAIM)
    try:
        require_measure(settings.measure)
    except JudgingError as error:
        return Trial("worst case", (), (), False, error.message)
    top = Pool.of(_answered(rankings, pool), depth=settings.measure.cutoff)
    judging = Judging(top, settings.measure, scale, truths, baseline=settings.baseline, draws=1)
    least, greatest = judging.bounds()
    first, second = judging.pairs
    certain = np.where(least > 0, 1, np.where(greatest < 0, -1, 0))
    if settings.baseline is not None:
        signs = tuple(int(sign) if sign == claim else 0 for sign, claim in zip(certain, now.group, strict=True))
        return Trial("worst case", signs, (), signs == now.group)
    best = int(np.argmax(now.means))
    behind = {int(b) for a, b, sign in zip(first, second, certain, strict=True) if a == best and sign == 1}
    behind |= {int(a) for a, b, sign in zip(first, second, certain, strict=True) if b == best and sign == -1}
    group = tuple(run for run in range(pool.runs) if run in now.group or run not in behind)
    return Trial("worst case", group, (), group == now.group)


def _answered(rankings: list[list[list[Any]]], pool: Pool) -> list[list[list[Any] | None]]:
    return [
        [ranking if there else None for ranking, there in zip(run, pool.answered.tolist(), strict=True)]
        for run in rankings
    ]
