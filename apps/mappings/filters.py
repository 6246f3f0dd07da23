"""Queries that a collection cannot answer because their filters match no document or their modules are missing."""

import json

from apps.collections.models import Document, list_live
from apps.datasets.models import DatasetVersion, Judgment
from apps.mappings.models import Mapping, Resolution
from apps.retrieval.filters import describe_filter, filter_rows
from benchbench.decimals import list_some
from benchbench.errors import ConflictError

MAX_LISTED = 3


def count_filters(version: DatasetVersion) -> dict[str, int]:
    """Return the distinct filters of a version's queries: {filter as JSON: number of queries}."""
    counts: dict[str, int] = {}
    for filter in version.queries.exclude(filters={}).order_by().values_list("filters", flat=True):
        text = json.dumps(filter, sort_keys=True)
        counts[text] = counts.get(text, 0) + 1
    return counts


def filter_warnings(mapping: Mapping, version: DatasetVersion) -> list[str]:
    """Return a warning if the filters of some queries match no document; an empty list if each matches one.

    Costs one database query per distinct filter. Each stops at the first match; without a match it reads the metadata
    of all documents, as a search with that filter would.
    """
    documents = list_live(mapping.collection)
    empty = {
        text: queries
        for text, queries in count_filters(version).items()
        if not filter_rows(documents, json.loads(text)).exists()
    }
    if not empty:
        return []
    queries = sum(empty.values())
    some = list_some([describe_filter(json.loads(text)) for text in sorted(empty)], MAX_LISTED, "; ")
    return [
        f"{queries:,} {'queries find' if queries > 1 else 'query finds'} nothing: no document of "
        f'the collection "{mapping.collection}" has what they filter by ({some}). Check the metadata of the '
        "documents, or the filters of the queries."
    ]


MAX_FILTERS = 5


class MissingModulesError(ConflictError):
    """The collection lacks modules that the queries expect."""

    code = "missing_modules"


def find_missing_modules(mapping: Mapping) -> dict[str, list[str]]:
    """Return the expected modules that some query cannot find, sorted by name: {name: filters}.

    `filters` describes the filters that the module's document does not pass; it is empty if the document is missing.
    Covers the version that the mapping was last resolved for. Empty for datasets of other formats.
    """
    if mapping.dataset.source_format != "module-queries" or mapping.dataset_version is None:
        return {}
    expected = Judgment.objects.filter(pk__in=mapping.dataset_version.judgments, grade__gt=0)
    resolved = Resolution.objects.at(None).filter(mapping=mapping, document__isnull=False)
    lost = expected.exclude(pk__in=resolved.values("judgment"))
    absent = {_name(doc_ref) for doc_ref in lost.values_list("doc_ref", flat=True)}
    hidden: dict[str, list[str]] = {}
    documents = Document.objects.filter(collection=mapping.collection_id)
    for text in sorted(count_filters(mapping.dataset_version)):
        filter = json.loads(text)
        unseen = resolved.filter(judgment__in=expected.filter(query__filters=filter)).exclude(
            document__in=filter_rows(documents, filter).values("pk")
        )
        for doc_ref in unseen.order_by().values_list("judgment__doc_ref", flat=True):
            filters = hidden.setdefault(_name(doc_ref), [])
            if describe_filter(filter) not in filters:
                filters.append(describe_filter(filter))
    return {name: [] if name in absent else hidden[name] for name in sorted(absent | hidden.keys())}


def require_modules(mapping: Mapping) -> None:
    """Raise MissingModulesError if a query expects a module that is missing or that its filter excludes."""
    lost = find_missing_modules(mapping)
    if not lost:
        return
    some = list_some([_describe_module(name, filters) for name, filters in lost.items()])
    raise MissingModulesError(
        f'The collection "{mapping.collection}" lacks {len(lost):,} of the modules that "{mapping.dataset}" expects: '
        f"{some}. Import each as one document: the id is the module's name, and the metadata lists its versions. Or "
        "allow missing modules: they count as not found.",
        field="allow_missing",
    )


def _describe_module(name: str, filters: list[str]) -> str:
    return f"{name} (exists, but not with {' or '.join(filters[:MAX_FILTERS])})" if filters else name


def _name(doc_ref: object) -> str:
    """Return the module that a reference names; one written by hand may use another key than `document_id`."""
    return str(doc_ref.get("document_id") or doc_ref) if isinstance(doc_ref, dict) else str(doc_ref)
