"""Identity of documents: queries that are documents, and documents with the text of judged ones."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef

from apps.collections.duplicates import count_duplicates, find_duplicates
from apps.collections.models import list_live
from apps.datasets.models import DatasetVersion
from apps.mappings.models import Mapping
from apps.mappings.truth import list_resolutions
from benchbench.decimals import counted

DUPLICATES_REMEDY = (
    "is not, so finding it gains nothing. Use identical_texts: judged, “Documents with identical texts”, or judge the "
    "duplicates."
)


def suggest_exclusion(mapping: Mapping, version: DatasetVersion) -> list[str]:
    """Return a suggestion of `exclude_self` if the keys of some queries are ids of documents, else an empty list."""
    selves = list_live(mapping.collection).filter(external_id=OuterRef("key"))
    queries = version.queries.order_by("key").filter(Exists(selves))
    count = queries.count()
    if not count:
        return []
    same = queries.filter(Exists(selves.filter(text__contains=OuterRef("text")))).count()
    texts = f"{same:,} of these documents have the query's text" if same else "none of them has the query's text"
    return [
        f"{count:,} of {counted(version.query_count, 'query')} have a document of their key, such as "
        f'"{queries.values_list("key", flat=True)[0]}"; {texts}. If the queries were taken from the documents, turn on '
        "exclude_self, “Exclude each query's document”: each ranking then leaves it out."
    ]


def duplicate_warnings(mapping: Mapping, version: DatasetVersion) -> list[str]:
    """Return a warning if judged documents have a duplicate that is not judged for the query, else an empty list.

    One query over the hashes of the collection, and four more if it has duplicates.
    """
    duplicates = count_duplicates(mapping.collection)
    if not duplicates:
        return []
    judgments = list_resolutions(mapping, version, state=None).exclude(document=None)
    pairs = set(judgments.values_list("judgment__query__key", "document_id"))
    groups = find_duplicates(mapping.collection, {document for _, document in pairs})
    members = {document: group for group in groups for document in group}
    unjudged = [
        (query, members[document][document], members[document][copy])
        for query, document in sorted(pairs)
        for copy in [*members.get(document, ())]
        if (query, copy) not in pairs
    ]
    if not unjudged:
        return []
    judged = len({(query, document) for query, document, _ in unjudged})
    query, document, copy = unjudged[0]
    return [
        f'{counted(duplicates, "document")} of the collection "{mapping.collection}" have the text of another one, and '
        f"{counted(judged, 'judged document')} an unjudged duplicate: for the query {query}, {document} is judged and "
        f"{copy} {DUPLICATES_REMEDY}"
    ]


def describe_unjudged_duplicate(mapping: Mapping, judged: Collection[int], *, state: int | None = None) -> list[str]:
    """Return a warning if documents judged for one query have an unjudged duplicate, else an empty list.

    `judged` are their ids, `state` as in `find_duplicates`.
    """
    groups = find_duplicates(mapping.collection, judged, state=state) if judged else []
    mixed = [group for group in groups if not {*judged}.issuperset(group)]
    if not mixed:
        return []
    document = next(name for pk, name in mixed[0].items() if pk in judged)
    copy = next(name for pk, name in mixed[0].items() if pk not in judged)
    return [
        f"{counted(len(mixed), 'judged text')} {'has' if len(mixed) == 1 else 'have'} an unjudged duplicate: "
        f"{document} is judged and {copy} {DUPLICATES_REMEDY}"
    ]
