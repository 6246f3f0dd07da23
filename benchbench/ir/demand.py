"""Demand: how much of what users ask a query stands for, and the means that count it."""

import math
from typing import Any

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-9, 1e12  # far from where squares and sums of doubles lose digits


def is_weight(value: Any) -> bool:
    """Return whether a value can be the weight of a query: a positive finite number within the limits."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and LEAST_WEIGHT <= value <= GREATEST_WEIGHT
