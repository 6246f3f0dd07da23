"""Documents of which an encoder did not read the words of a query, because they are beyond its window."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import OuterRef, Subquery

from apps.records.models import Run
from apps.retrieval.analysis.analyzers import DIVIDED, UNICODE, build_analyzer
from apps.retrieval.models import Chunk
from benchbench.ir.triage import Loss
from benchbench.texts.languages import DEFAULT


def list_beyond_window(run: Run, rows: Iterable[Any], texts: Mapping[int, str]) -> dict[tuple[int, int], Loss]:
    """Return BEYOND_WINDOW by query and document where the read parts of a document have no word of the query.

    Other parts must have one. `rows` begin with the query, the judgment, the document and the grade; `texts` are those
    of the queries. Words are the terms of the collection's analyzer, which does not cut them into pieces here.
    """
    index = run.index
    if index is None or not run.configuration.uses_vectors or not index.stats.get("cut"):
        return {}
    relevant: defaultdict[int, set[int]] = defaultdict(set)
    for query_id, _, document_id, grade, *_ in rows:
        if document_id is not None and grade > 0 and query_id in texts:
            relevant[document_id].add(query_id)
    cut = index.cut_chunks.exclude(read=0)
    leaves = Chunk.objects.filter(chunk_set=index.chunk_set_id, level=0)
    documents = leaves.filter(document__in=list(relevant), position__in=cut.values("position")).values("document")
    end = Subquery(cut.filter(position=OuterRef("position")).values("read"))
    language = index.collection.language or DEFAULT
    analyze = build_analyzer(language, UNICODE if language in DIVIDED else "").analyze
    read: defaultdict[int, set[str]] = defaultdict(set)
    unread: defaultdict[int, set[str]] = defaultdict(set)
    for document_id, text, at in leaves.filter(document__in=documents).values_list("document", "text", end):
        stop = len(text) if at is None else at
        read[document_id].update(analyze(text[:stop]))
        unread[document_id].update(analyze(text[stop:]))
    queries = {query_id: set(analyze(texts[query_id])) for ids in relevant.values() for query_id in ids}
    return {
        (query_id, document_id): Loss.BEYOND_WINDOW
        for document_id, words in unread.items()
        for query_id in relevant[document_id]
        if queries[query_id] & words and not queries[query_id] & read[document_id]
    }
