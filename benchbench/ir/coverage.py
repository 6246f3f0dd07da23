"""Coverage of a value by judgments: its judged share, and what the rest could change.

An unjudged document counts as not relevant in every value. Each value is shown with

- the share of the documents it considers that are judged (`Judged` at the same cutoff);
- the condensed value: the same measure of the ranking without its unjudged documents (Sakai 2007);
- its bounds: the least and the greatest value that judging the unjudged documents of the first k places could lead to
  (`benchbench.ir.bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchbench.ir.bounds import compute_bounds
from benchbench.ir.measures import GradedRankings, Measure, Values, evaluate

UNEVEN = 0.05  # runs whose mean Judged@k differs by more are not judged alike


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """For m measures and q queries, each (m, q).

    The bounds are NaN for a measure of the library, and of `FirstRelevant` where there may be no such rank.
    """

    judged: Values
    condensed: Values
    lower_bound: Values
    upper_bound: Values


def cover(measures: Sequence[Measure], graded: GradedRankings, *, top_grade: float | None = None) -> Coverage:
    """Return the coverage of each measure's value for each query.

    `top_grade` is the highest grade of the dataset's scale; without it, the highest that is given in these truths, and
    1 where nothing is relevant.
    """
    highest = max(graded.ideal.max(initial=0.0), top_grade or 1.0)
    ranges = [compute_bounds(measure, graded, highest) for measure in measures]
    nothing = np.empty((0, len(graded.lengths)))
    return Coverage(
        judged=evaluate([Measure("Judged", measure.cutoff) for measure in measures], graded),
        condensed=evaluate(measures, condense(graded)),
        lower_bound=np.stack([lower for lower, _ in ranges]) if ranges else nothing,
        upper_bound=np.stack([upper for _, upper in ranges]) if ranges else nothing,
    )


def condense(graded: GradedRankings) -> GradedRankings:
    """Return the rankings without their unjudged documents; those below move up."""
    unjudged = np.isnan(graded.grades)
    moved_up = np.argsort(unjudged, axis=-1, kind="stable")
    return replace(
        graded,
        grades=np.take_along_axis(graded.grades, moved_up, axis=-1),
        lengths=np.count_nonzero(~unjudged, axis=-1).astype(np.int64),
    )


def is_uneven(judged: Sequence[float] | Values) -> bool:
    """Return whether runs with these mean Judged@k differ so much in coverage that their comparison must say so."""
    return bool(len(judged)) and float(np.max(judged) - np.min(judged)) > UNEVEN


def describe_uneven(judged: Mapping[str, float | None], means_name: str = "") -> str:
    """Return a warning if runs are judged unevenly, from their mean Judged@k by label; else "".

    `means_name` is the kind of these means.
    """
    shares = {label: share for label, share in judged.items() if share is not None}
    if not is_uneven(list(shares.values())):
        return ""
    low, high = min(shares, key=lambda label: shares[label]), max(shares, key=lambda label: shares[label])
    kind = f", {means_name}," if means_name else ""
    return (
        f"Judgment coverage differs: {100 * shares[low]:.1f} % of the top results of “{low}”{kind} are "
        f"judged, but {100 * shares[high]:.1f} % of “{high}”. The less judged run may be better than "
        "its values show: compare the condensed values and bounds."
    )
