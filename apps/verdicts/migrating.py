"""Migration: whether a new search may replace an old one, and what would change for its users."""

import math
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import numpy as np

from apps.records.lists.reading import load_rankings
from apps.verdicts.comparing import RunComparison
from apps.verdicts.coverage import LOW, name_judged
from apps.verdicts.sentences import name_differences
from benchbench.decimals import format_share, short_signed
from benchbench.errors import ConflictError
from benchbench.ir.demand import weigh
from benchbench.ir.statistics.verdict import LossCheck, check_non_inferiority, is_realistic

MARGIN = 0.01  # of a page that states none


class MigrationError(ConflictError):
    """The comparison does not say whether one search may replace another."""

    code = "migration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A new run in place of an old one, by the primary measure and over the queries that both answered."""

    old: UUID
    new: UUID
    margin: Annotated[float, "The loss that is accepted, stated in advance."]
    difference: Annotated[float, "Of the means, new − old."]
    lower: Annotated[float, "Lower end of the one-sided 95 % interval of the difference."]
    is_non_inferior: Annotated[
        bool, "Whether `lower` is −margin or more; false also if the queries are too few, or equal for both runs."
    ]
    more_queries: Annotated[int | None, "About how many more queries would decide; null if none are needed, or many."]
    judged: Annotated[float | None, "Share of judged documents among the first k, of the run with fewer."]
    improved: Annotated[float, "Share of the demand, or of the queries, that gets better."]
    worsened: Annotated[float, "Share of the demand, or of the queries, that gets worse."]
    overlap: Annotated[float | None, "Mean share of common documents among the first k of both."]
    same_first: Annotated[float | None, "Share of queries, or of demand, for which both rank the same document first."]
    k: int
    sentence: str

    @property
    def is_little_judged(self) -> bool:
        return self.judged is not None and self.judged < LOW


def build_migration(comparison: RunComparison, margin: float) -> Migration:
    """Return what a migration would change. The old run is the baseline, otherwise the older of the two.

    Raises MigrationError unless two runs are compared by a tested measure, and ComparisonError for an invalid margin.
    """
    if len(comparison.runs) != 2 or not comparison.is_tested:
        raise MigrationError("A margin needs two runs, compared by the primary measure over enough queries.")
    old = comparison.comparison.baseline or 0
    new, n = 1 - old, comparison.comparison.effective
    pair = comparison.comparison.get_pair(new, old)
    test = check_non_inferiority(pair, n, margin)
    labels = comparison.labels[new], comparison.labels[old]
    k = comparison.runs[old].benchmark.primary_k
    overlap, same_first = _compare_rankings(comparison, k)
    varies, judged = pair.wins + pair.losses > 0, _find_least_judged(comparison)
    return Migration(
        old=comparison.runs[old].pk,
        new=comparison.runs[new].pk,
        margin=margin,
        difference=pair.difference,
        lower=test.lower,
        is_non_inferior=test.is_excluded and varies,
        more_queries=test.more_queries if varies else None,
        judged=judged,
        improved=pair.improved,
        worsened=pair.worsened,
        overlap=overlap,
        same_first=same_first,
        k=k,
        sentence=(
            _describe(labels, name_differences(comparison), pair.difference, test, n)
            if varies
            else f"Both have the same value for every query, so nothing is tested: {' and '.join(labels)}."
        )
        + _warn_of_judgments(judged, k),
    )


def _find_least_judged(comparison: RunComparison) -> float | None:
    judged = comparison.values.get(name_judged(comparison.primary))
    if judged is None:
        return None
    shares = [weigh(row[comparison.members], comparison.compared_weights) for row in judged]
    return None if any(map(math.isnan, shares)) else min(shares)


def _warn_of_judgments(judged: float | None, k: int) -> str:
    if judged is None or judged >= LOW:
        return ""
    return f" Only {format_share(judged)} of the first {k} documents are judged: judge more before you decide."


def _describe(labels: tuple[str, str], measure: str, difference: float, loss: LossCheck, n: float) -> str:
    new, old = labels
    ends = f"{short_signed(difference)}, at least {short_signed(loss.lower)} with 95 % certainty"
    bound = f"the difference in {measure} is {ends}"
    if loss.is_excluded:
        return f"{new} does not lose more than {loss.limit:g} against {old}: {bound}."
    if loss.is_shown:
        return f"{new} loses more than {loss.limit:g} against {old}: {bound}, and significant."
    is_few = is_realistic(loss.more_queries, n)
    more = (
        f"About {loss.more_queries:,} more would decide." if is_few else "No realistic number of queries would decide."
    )
    return (
        f"{new} is not shown to be as good as {old} with a margin of {loss.limit:g}: {bound}. The queries are too few. "
        f"{more}"
    )


def _compare_rankings(comparison: RunComparison, k: int) -> tuple[float | None, float | None]:
    """Return the mean overlap of the first k documents, and the share of queries with the same first document.

    Queries for which both runs found nothing are left out. Both are weighted as the means are.
    """
    if any(run.benchmark.rankings_deleted_at for run in comparison.runs):
        return None, None
    first, second = (load_rankings(run) for run in comparison.runs)
    valued = ~np.isnan(comparison.compared[0])
    pairs = [
        (first.get(query, ()), second.get(query, ()))
        for query in comparison.query_ids[comparison.members][valued].tolist()
    ]
    is_ranked = np.array([any(pair) for pair in pairs], bool)
    if not is_ranked.any():
        return None, None
    weights = None if comparison.compared_weights is None else comparison.compared_weights[valued][is_ranked]
    rankings = [pair for pair in pairs if any(pair)]
    shares = [len({*left[:k]} & {*right[:k]}) / min(k, max(len(left), len(right))) for left, right in rankings]
    same_first = np.array([left[:1] == right[:1] for left, right in rankings], np.float64)
    return weigh(np.array(shares), weights), weigh(same_first, weights)
