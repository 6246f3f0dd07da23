"""The relevant judgments of queries, and which of their documents no search of an index could have found."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from apps.benchmarks.models import Run
from apps.collections.models import Document
from apps.datasets.models import Query
from apps.mappings.models import Resolution
from apps.retrieval.models import Chunk
from apps.retrieval.searching import admitted
from benchbench.ir.triage import Loss, Relevant

Grades = Mapping[int, Mapping[int, int]]  # {query id: {document id, or −judgment id: grade}}, see apps.mappings.truth


def relevant_of(run: Run, grades: Grades, found: Collection[int]) -> dict[int, list[Relevant]]:
    """Return the relevant judgments of each query, each with why no search of the run's index could find its document.

    That is: the collection has no such document, or lost it before it was indexed; the reference was not resolved to
    one; the index has no chunk of it; or the query's own filter excludes it. `found` are documents known to be in the
    index. Four queries, and one for each distinct filter.
    """
    wanted = {query: {key: grade for key, grade in graded.items() if grade > 0} for query, graded in grades.items()}
    keys = {key for graded in wanted.values() for key in graded}
    reasons = _unresolved(run, [-key for key in keys if key < 0])
    reasons |= _unindexed(run, [key for key in keys if key > 0 and key not in found])
    filtered = _filtered(wanted)
    return {
        query: [
            Relevant(key, grade, reasons.get(key) or (Loss.FILTERED if key in filtered.get(query, ()) else None))
            for key, grade in graded.items()
        ]
        for query, graded in wanted.items()
    }


def _unresolved(run: Run, judgments: Collection[int]) -> dict[int, Loss]:
    if not judgments:
        return {}
    resolutions = Resolution.objects.filter(mapping=run.benchmark.mapping_id, judgment__in=judgments)
    missing = resolutions.filter(outcome=Resolution.Outcome.NOT_FOUND).values_list("judgment_id", flat=True)
    return {
        **dict.fromkeys((-judgment for judgment in judgments), Loss.UNRESOLVED),
        **dict.fromkeys((-judgment for judgment in missing), Loss.NOT_IN_COLLECTION),
    }


def _unindexed(run: Run, documents: Collection[int]) -> dict[int, Loss]:
    """Return the documents of which the run's index has no chunk: they were removed, or came later, or have no text."""
    if not documents or run.index is None:
        return {}
    chunks = Chunk.objects.filter(chunk_set=run.index.chunk_set_id, document__in=documents)
    missing = set(documents) - set(chunks.order_by().values_list("document_id", flat=True).distinct())
    removed = Document.objects.filter(pk__in=missing, removed_at__isnull=False).values_list("pk", flat=True)
    return dict.fromkeys(missing, Loss.NOT_INDEXED) | dict.fromkeys(removed, Loss.NOT_IN_COLLECTION)


def _filtered(wanted: Grades) -> dict[int, set[int]]:
    """Return the relevant documents that each query's filter excludes."""
    alike: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for query_id, filter in Query.objects.filter(pk__in=wanted).exclude(filters={}).values_list("pk", "filters"):
        alike.setdefault(json.dumps(filter, sort_keys=True), (filter, []))[1].append(query_id)
    excluded = {}
    for filter, queries in alike.values():
        documents = {key for query_id in queries for key in wanted[query_id] if key > 0}
        admits = set(admitted(Document.objects.filter(pk__in=documents), filter).values_list("pk", flat=True))
        excluded.update({query_id: set(wanted[query_id]) - admits for query_id in queries})
    return excluded
