"""Demand: how much of what users ask a query stands for, and how means count it.

The weighted mean of a measure is Σwᵢxᵢ / Σwᵢ over the n queries that count: a ratio estimator, because both sums are
over a sample of queries (Cochran, Sampling Techniques, 1977, chapter 6). Queries stay the units that are sampled: a
weight of 1,000 is one query with much demand and not 1,000 independent queries. So no number depends on the unit of the
weights, and n equal weights give what no weights give, to the bit.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Weighting = Literal["equal", "demand"]
Values = NDArray[np.float64]

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-9, 1e12  # far from where squares and sums of doubles lose digits
BY_DEMAND = "weighted by demand"  # names a mean wherever it is shown


def is_weight(value: float) -> bool:
    """Return whether a value can be the weight of a query: a positive finite number within the limits."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and LEAST_WEIGHT <= value <= GREATEST_WEIGHT


def name_means(weighting: str) -> str:
    """Return the name of a benchmark's kind of mean: "weighted by demand", or "" for plain means."""
    return BY_DEMAND if weighting == "demand" else ""


def name_mean(measure: str, means_name: str) -> str:
    """Return the name of a mean of a measure: "nDCG@10, weighted by demand"."""
    return f"{measure}, {means_name}" if means_name else measure


def scale_weights(weights: Values | None) -> Values | None:
    """Return weights (n,) divided by their mean; None for none and for equal ones, which change nothing."""
    if weights is None or not len(weights) or np.ptp(weights) == 0:
        return None
    array = np.asarray(weights, np.float64)
    scaled: Values = array / array.mean()
    return scaled


def compute_deviation(differences: Values, weights: Values | None) -> float:
    """Return √n × the standard error of the mean of n ≥ 2 differences; with weights that of the ratio estimator."""
    scaled = scale_weights(weights)
    if scaled is None:
        return float(np.std(differences, ddof=1))
    residuals = scaled * (differences - float((scaled * differences).mean()))
    return math.sqrt(float(residuals @ residuals) / (len(differences) - 1))


def weigh(values: Values, weights: Values | None = None) -> float:
    """Return Σwx / Σw of the values (n,) that are not NaN, with correctly rounded sums; NaN without any.

    So it does not depend on their order, and the mean of ones is 1. `weights` is (n,).
    """
    present = ~np.isnan(values)
    counted = values[present]
    if not len(counted):
        return math.nan
    if weights is None or scale_weights(weights[present]) is None:
        return math.fsum(counted.tolist()) / len(counted)
    shares = weights[present]
    return math.fsum((shares * counted).tolist()) / math.fsum(shares.tolist())
