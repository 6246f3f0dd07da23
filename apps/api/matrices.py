"""The configuration matrix on the wire."""

import json
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.fields import as_whole
from apps.retrieval.encoders.admitting import PUBLISHED
from benchbench.ir.planning.axes import CUTOFF
from benchbench.ir.planning.matrix import BY_KEY, DEFAULT_CUTOFFS, DEFAULT_PRIMARY_K

VALUES: dict[str, dict[str, Any]] = {
    "k_values_for_metrics": CUTOFF.schema,
    **{key: axis.kind.schema for key, axis in BY_KEY.items()},
    "rerankers": {"type": ["string", "null"], "pattern": f"^{PUBLISHED.pattern}$"},
}
WHOLE = {"primary_k", *(key for key, values in VALUES.items() if '"integer"' in json.dumps(values))}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "primary_k": CUTOFF.schema | {"default": DEFAULT_PRIMARY_K},
        **{
            key: {"type": "array", "items": values, "minItems": 1, "uniqueItems": True}
            for key, values in VALUES.items()
        },
    },
    "description": "A list of values for each key; every combination is a run. What is left out has its default: "
    "without `search_modes` all that the indexes can search, without `indexes` the newest there is. The newest, "
    "of a name too, is the one that became ready last and holds the documents as they are now.",
}


@extend_schema_field(SCHEMA)
class MatrixField(serializers.DictField):
    """A matrix as it was stated: what it holds is judged by the use case, which names the key at fault."""

    def to_internal_value(self, data: Any) -> Mapping[str, Any]:
        return {key: _whole(value) if key in WHOLE else value for key, value in super().to_internal_value(data).items()}


def _whole(value: Any) -> Any:
    return [as_whole(item) for item in value] if isinstance(value, list) else as_whole(value)


def completed(matrix: Mapping[str, Any], top_k: int | None) -> dict[str, Any]:
    """Return a matrix with what the earlier API took from elsewhere, where the matrix itself does not say it.

    Its depth is `top_k`; the cutoffs are those of the usual ones that the least depth reaches, since the earlier API's
    own default of 10 asks for no more.
    """
    whole = dict(matrix)
    if top_k is not None:
        whole.setdefault("top_k_values", [top_k])
    depths = whole.get("top_k_values", [BY_KEY["top_k_values"].default])
    if "k_values_for_metrics" not in whole and isinstance(depths, list) and all(type(depth) is int for depth in depths):
        reached = [k for k in DEFAULT_CUTOFFS if k <= min(depths, default=0)]
        whole["k_values_for_metrics"] = reached or [whole.get("primary_k", DEFAULT_PRIMARY_K)]
    return whole
