"""Modules that queries expect and a collection lacks: a run without them is a decision, not an accident."""

from typing import Any

from apps.datasets.models import Judgment
from apps.mappings.models import Mapping, Resolution
from benchbench.errors import ConflictError

SHOWN = 5


class MissingModulesError(ConflictError):
    """The collection lacks modules that the queries expect."""

    code = "missing_modules"


def missing_modules(mapping: Mapping) -> list[str]:
    """Return the names, sorted, of expected modules that the collection lacks; of any other dataset, nothing.

    For the version that the mapping was last resolved for.
    """
    if mapping.dataset.source_format != "module-queries" or mapping.dataset_version is None:
        return []
    found = Resolution.objects.filter(mapping=mapping, document__isnull=False)
    lost = Judgment.objects.filter(pk__in=mapping.dataset_version.judgments, grade__gt=0).exclude(
        pk__in=found.values("judgment")
    )
    return sorted({_name(doc_ref) for doc_ref in lost.values_list("doc_ref", flat=True)})


def require_modules(mapping: Mapping) -> None:
    """Raise MissingModulesError where the collection lacks expected modules."""
    if lost := missing_modules(mapping):
        some = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN:,} more" if len(lost) > SHOWN else "")
        raise MissingModulesError(
            f'The collection "{mapping.collection}" lacks {len(lost):,} of the modules that "{mapping.dataset}" '
            f"expects: {some}. Import them, or allow that they are missing: they count as not found.",
            field="allow_missing",
        )


def _name(doc_ref: Any) -> str:
    """The module that a reference names; one that was stated by hand may name it otherwise."""
    return str(doc_ref.get("document_id") or doc_ref) if isinstance(doc_ref, dict) else str(doc_ref)
