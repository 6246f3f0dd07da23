"""Optimism of the best of many runs, which was chosen on the queries that measure it."""

import numpy as np

from benchbench.ir.demand import scale_weights
from benchbench.ir.statistics.resampling import Values, draw_flips, find_common_queries

RESAMPLES = 1_000


def compute_optimism(values: Values, *, seed: int, weights: Values | None = None) -> float:
    """Return the expected lead by chance of the best mean over the mean of all runs, in the unit of the measure.

    `values` are float64 (runs, queries), with NaN for a failed query, and `weights` (queries,) their demand. If no run
    were better than another, its differences from the mean run could as well have the other sign. So signs are tossed,
    one per query for all runs, as in the max-|t| family of `significance`, and the greatest mean difference of each
    toss is averaged. See Cawley and Talbot, On Over-fitting in Model Selection (2010). Raises ComparisonError for fewer
    than 2 common queries.
    """
    common = find_common_queries(values)
    array = np.asarray(values, np.float64)[:, common]
    deviations = array - array.mean(axis=0)
    scaled = scale_weights(None if weights is None else np.asarray(weights, np.float64)[common])
    if scaled is not None:
        deviations = deviations * scaled
    queries = deviations.shape[1]
    tosses = draw_flips(queries, resamples=RESAMPLES, seed=seed)
    greatest = [(signs @ deviations.T).max(axis=1) / queries for signs in tosses]
    return float(np.concatenate(greatest).mean())
