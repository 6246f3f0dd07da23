"""Weighting of the means of a benchmark: every query alike, or by the demand that it stands for."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from django.core.cache import cache
from django.db.models import Max, Min

from apps.datasets.models import DatasetVersion
from benchbench.ir.demand import Weighting
from benchbench.ir.measures import Values

CACHE_SECONDS = 24 * 3600


def choose_weighting(version: DatasetVersion) -> Weighting:
    """Return the default weighting of a new benchmark: "demand" if the queries' weights differ."""
    ends = version.queries.aggregate(least=Min("weight"), most=Max("weight"))
    return "demand" if ends["least"] != ends["most"] else "equal"


def load_weights(weighting: str, version: DatasetVersion, query_ids: Sequence[int]) -> Values | None:
    """Return the weights of queries of a frozen version, (queries,); None, without a query, if they count alike."""
    if weighting != "demand":
        return None
    key = f"weights:2:{version.pk}:{version.content_hash}"
    queries = version.queries.order_by()
    by_id = cache.get_or_set(key, lambda: dict(queries.values_list("pk", "weight")), CACHE_SECONDS)
    return np.array([cast(dict[int, float], by_id)[query_id] for query_id in query_ids], np.float64)
