"""Descriptions of a mapping, for commands."""

import json
from typing import Any

from apps.mappings.models import Mapping, Resolution

TROUBLES = ("not_found", "ambiguous", "invalid_ref", "conflicts")
SHOWN = 3


def facts_of(mapping: Mapping) -> dict[str, Any]:
    """Return how far `mapping` is resolved, for programs."""
    return {
        "id": mapping.pk,
        "name": mapping.name,
        "status": mapping.status,
        "dataset_version": mapping.dataset_version.number if mapping.dataset_version else None,
        "mapped": mapping.mapped_count,
        "total": mapping.total_count,
        "counts": mapping.counts,
    }


def describe(mapping: Mapping) -> str:
    """Say how far `mapping` is resolved, what became of the other judgments, and the first that have no document."""
    told = (f"{name.replace('_', ' ')} {mapping.counts[name]:,}" for name in TROUBLES if mapping.counts.get(name))
    troubles = ", ".join(told)
    line = f'Mapping "{mapping}" is {mapping.status}: {mapping.mapped_count:,} of {mapping.total_count:,} judgments' + (
        f" ({troubles})." if troubles else "."
    )
    return line + _dangling(mapping)


def _dangling(mapping: Mapping) -> str:
    lost = Resolution.objects.filter(mapping=mapping, document=None).order_by("judgment")
    first = lost.values_list("judgment__query__key", "judgment__doc_ref")[:SHOWN]
    said = [f"{key[:60]} {json.dumps(doc_ref, ensure_ascii=False)[:120]}" for key, doc_ref in first]
    if not said:
        return ""
    more = lost.count() - len(said)
    return f" Without a document: {', '.join(said)}{f' and {more:,} more' if more else ''}."
