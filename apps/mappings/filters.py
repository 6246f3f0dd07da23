"""Filters of queries that leave nothing of a collection: such a query finds nothing."""

import json

from apps.collections.fingerprints import live
from apps.datasets.models import DatasetVersion
from apps.mappings.models import Mapping
from apps.retrieval.filters import admitted, said
from benchbench.decimals import some_of

SHOWN = 3


def filters_of(version: DatasetVersion) -> dict[str, int]:
    """Return the distinct filters of a version's queries, each as JSON, and how many queries state it."""
    counts: dict[str, int] = {}
    for filter in version.queries.exclude(filters={}).order_by().values_list("filters", flat=True):
        text = json.dumps(filter, sort_keys=True)
        counts[text] = counts.get(text, 0) + 1
    return counts


def filter_warnings(mapping: Mapping, version: DatasetVersion) -> list[str]:
    """Return the sentence that the filters of some queries admit no document, or none where each admits one.

    One query for each distinct filter: the first document that is admitted ends it, and where there is none it has
    read the metadata of them all, as searching by that filter would.
    """
    documents = live(mapping.collection)
    empty = {
        text: queries
        for text, queries in filters_of(version).items()
        if not admitted(documents, json.loads(text)).exists()
    }
    if not empty:
        return []
    queries = sum(empty.values())
    some = some_of([said(json.loads(text)) for text in sorted(empty)], SHOWN, "; ")
    return [
        f"{queries:,} {'queries find' if queries > 1 else 'query finds'} nothing, whatever is searched: no document of "
        f'the collection "{mapping.collection}" has what they filter by ({some}). Check the metadata of the '
        "documents, or the filters of the queries."
    ]
