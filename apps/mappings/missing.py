"""Missing modules: queries expect them, the collection lacks them. Running without them must be decided by somebody."""

import json
from typing import Any

from apps.collections.models import Document
from apps.datasets.models import Judgment
from apps.mappings.filters import filters_of
from apps.mappings.models import Mapping, Resolution
from apps.retrieval.filters import admitted, said
from benchbench.decimals import some_of
from benchbench.errors import ConflictError

SHOWN = 5


class MissingModulesError(ConflictError):
    """The collection lacks modules that the queries expect."""

    code = "missing_modules"


def missing_modules(mapping: Mapping) -> dict[str, list[str]]:
    """Return the expected modules that some query cannot find, by name, sorted; of any other dataset, nothing.

    With each stand the filters, as a sentence has them, that its document does not pass; none where the collection has
    no such document. For the version that the mapping was last resolved for.
    """
    if mapping.dataset.source_format != "module-queries" or mapping.dataset_version is None:
        return {}
    expected = Judgment.objects.filter(pk__in=mapping.dataset_version.judgments, grade__gt=0)
    resolved = Resolution.objects.filter(mapping=mapping, document__isnull=False)
    lost = expected.exclude(pk__in=resolved.values("judgment"))
    absent = {_name(doc_ref) for doc_ref in lost.values_list("doc_ref", flat=True)}
    hidden: dict[str, list[str]] = {}
    documents = Document.objects.filter(collection=mapping.collection_id)
    for text in sorted(filters_of(mapping.dataset_version)):
        filter = json.loads(text)
        unseen = resolved.filter(judgment__in=expected.filter(query__filters=filter)).exclude(
            document__in=admitted(documents, filter).values("pk")
        )
        for doc_ref in unseen.order_by().values_list("judgment__doc_ref", flat=True):
            filters = hidden.setdefault(_name(doc_ref), [])
            if said(filter) not in filters:
                filters.append(said(filter))
    return {name: [] if name in absent else hidden[name] for name in sorted(absent | hidden.keys())}


def require_modules(mapping: Mapping) -> None:
    """Raise MissingModulesError where a query expects a module that the collection, or what it filters by, lacks."""
    lost = missing_modules(mapping)
    if not lost:
        return
    some = some_of([_said(name, filters) for name, filters in lost.items()])
    raise MissingModulesError(
        f'The collection "{mapping.collection}" lacks {len(lost):,} of the modules that "{mapping.dataset}" expects: '
        f"{some}. Import each as one document whose id is the name of the module, with all its versions as a list in "
        "its metadata; or allow that they are missing: they count as not found.",
        field="allow_missing",
    )


def _said(name: str, filters: list[str]) -> str:
    return f"{name} (is there, but not with {' or '.join(filters[:SHOWN])})" if filters else name


def _name(doc_ref: Any) -> str:
    """The module that a reference names; one that was stated by hand may name it otherwise."""
    return str(doc_ref.get("document_id") or doc_ref) if isinstance(doc_ref, dict) else str(doc_ref)
