"""Contents of a document's page: its text, its chunks, the queries that judge it, and the runs that find it."""

from collections.abc import Mapping
from typing import Any

from django.core.paginator import Paginator
from django.db.models import BigIntegerField, F, Func, IntegerField, Min, QuerySet, Value
from django.db.models.functions import Cast, Left, Length

from apps.collections.models import Document
from apps.datasets.models import Query, filter_alive
from apps.mappings.models import Resolution
from apps.records.models import Benchmark, QueryResult, Run
from apps.results.triage.ranks import RankRow, list_benchmarks
from apps.retrieval.models import Chunk, Index
from apps.verdicts.configurations import build_labels
from apps.verdicts.ranked_runs import load_leaderboard
from benchbench.access import AnyUser, viewable, visible

CHUNKS_PER_PAGE = 50
MOST_CHUNK = 600  # characters of a chunk that the page shows
MOST_TEXT = 20_000  # characters of the document that the page shows at first
SHOWN_SECTIONS = 100
SHOWN_JUDGMENTS = 50
SHOWN_JUDGED, SHOWN_FOUND = 20, 10  # queries in the matrix: those that judge the document, and others that find it


def list_searching(document: Document, user: AnyUser) -> QuerySet[Benchmark]:
    """Return the benchmarks over the document's collection, newest first."""
    return list_benchmarks(user, mapping__collection=document.collection_id)


def list_indexes(document: Document, user: AnyUser) -> QuerySet[Index]:
    """Return the ready indexes of the document's collection that the user may view, newest first."""
    ready = Index.objects.filter(collection=document.collection_id, status=Index.Status.READY)
    return viewable(ready, user).order_by("-ready_at")


def build_document_page(
    document: Document, user: AnyUser, params: Mapping[str, str], *, index: Index | None, benchmark: Benchmark | None
) -> dict[str, object]:
    """Return the context of a document's page: `page` of its chunks in `index`, its ranks in the runs of `benchmark`.

    With `text=all` it has the whole text.
    """
    judging = _list_judgments(document, user)
    text = document.text if params.get("text") == "all" else document.text[:MOST_TEXT]
    return {
        "document": document,
        "text": text,
        "cut": len(document.text) - len(text),
        "sections": document.sections.all()[:SHOWN_SECTIONS],
        "index": index,
        "page": Paginator(_list_chunks(document, index), CHUNKS_PER_PAGE).get_page(params.get("page")),
        "judging": judging[:SHOWN_JUDGMENTS],
        "has_more": len(judging) > SHOWN_JUDGMENTS,
        "benchmark": benchmark,
        **(_load_ranks(document, benchmark) if benchmark else {}),
    }


def _list_chunks(document: Document, index: Index | None) -> QuerySet[Chunk]:
    chunks = Chunk.objects.filter(chunk_set=index.chunk_set_id if index else None, document=document, level=0)
    annotated = chunks.annotate(head=Left("text", MOST_CHUNK), length=Length("text")).defer("text")
    return annotated.select_related("section").order_by("ordinal")


def _list_judgments(document: Document, user: AnyUser) -> list[Resolution]:
    """Return the judgments that visible mappings resolved to the document, in their versions, highest grade first."""
    number: Any = F("mapping__dataset_version__number")
    current = filter_alive(number, "judgment__") & filter_alive(number, "judgment__query__")
    rows = viewable(Resolution.objects.at(None).filter(current, document=document), user, through="mapping")
    seen = visible(rows, user, through="judgment__query__dataset")
    related = seen.select_related("judgment__query__dataset", "mapping__dataset_version")
    return list(related.order_by("-judgment__grade", "judgment_id")[: SHOWN_JUDGMENTS + 1])


def _load_ranks(document: Document, benchmark: Benchmark) -> dict[str, object]:
    """Return the document's rank by query and run, on the benchmark's own version, best run first.

    The queries are the first that judge it, and others for which the best run finds it within the cutoff.
    """
    version, k = benchmark.dataset_version, benchmark.primary_k
    board = load_leaderboard(benchmark)
    runs = [row.run for row in board.rows if row.run.status == Run.Status.COMPLETED]
    alive = filter_alive(version.number, "judgment__") & filter_alive(version.number, "judgment__query__")
    resolved = Resolution.objects.at(benchmark.state)
    mine = resolved.filter(alive, mapping=benchmark.mapping_id, document=document)
    judged = mine.order_by("judgment__grade", "-judgment_id").values_list("judgment__query_id", "judgment__grade")
    grades = dict(judged)  # of several grades the highest
    queries = sorted(grades, key=lambda pk: (-grades[pk], pk))[:SHOWN_JUDGED]
    position = Func("document_ids", Cast(Value(document.pk), BigIntegerField()), function="array_position")
    finding = QueryResult.objects.filter(document_ids__contains=[document.pk], run__in=runs)
    lists = finding.annotate(rank=Cast(position, IntegerField()))
    unjudged = lists.filter(run=runs[0], rank__lte=k).exclude(query__in=list(grades)).values("query_id")
    first = unjudged.annotate(first=Min("rank")).order_by("first", "query_id")
    queries += first.values_list("query_id", flat=True)[:SHOWN_FOUND]
    rows = lists.filter(query__in=queries).order_by("-repetition").values_list("run", "query", "rank")
    ranks = {(run, query): rank for run, query, rank in rows}  # of repetitions the first that did not fail
    texts = Query.objects.in_bulk(queries)
    return {
        "columns": list(zip(runs, build_labels(runs), strict=True)),
        "judged_count": len(grades),
        "shown_judged": SHOWN_JUDGED,
        "shown_found": SHOWN_FOUND,
        "matrix": [
            RankRow(texts[pk].text, texts[pk], grades.get(pk), [ranks.get((run.pk, pk)) for run in runs], k)
            for pk in queries
        ],
    }
