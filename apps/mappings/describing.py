"""What commands say of a mapping."""

from typing import Any

from apps.mappings.models import Mapping

TROUBLES = ("not_found", "ambiguous", "invalid_ref", "conflicts")


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
    """Say how far `mapping` is resolved and what became of the other judgments, in a line."""
    told = (f"{name.replace('_', ' ')} {mapping.counts[name]:,}" for name in TROUBLES if mapping.counts.get(name))
    troubles = ", ".join(told)
    return f'Mapping "{mapping}" is {mapping.status}: {mapping.mapped_count:,} of {mapping.total_count:,} judgments' + (
        f" ({troubles})." if troubles else "."
    )
