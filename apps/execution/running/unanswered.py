"""Queries that a run did not read wholly or found nothing for, with the reason and a remedy."""

from collections.abc import Collection, Iterator

from apps.datasets.models import Query
from apps.execution.running.notes import Notes
from apps.records.lists.reading import filter_found
from apps.records.models import Run
from apps.retrieval.encoders.base import CUT
from apps.retrieval.search.words import NO_TERM, UNKNOWN_TERMS
from benchbench.decimals import counted
from benchbench.ir.planning.labels import strip_model_path
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import EncodeStage, EngineStage, LexicalStage, RerankStage

MAX_TEXT = 60  # characters of a query that is shown
LONGER_ENCODER = "use an encoder with a longer window."
LONGER_RERANKER = "Build an index with smaller chunks, or use a reranker with a longer window."
OF_SCORE = {
    "dense": "cosine similarity",
    "sparse": "the share of the best score of the query",
    "hybrid": "the fused score",
    "late_interaction": "the similarity of late interaction",
    "cross_encoder": "the probability of the reranker",
}
REASONS = {
    NO_TERM: (
        "with no word left",
        "Keep stop words and one-letter words by bm25(words=unicode, stop=none), or use dense search too.",
    ),
    UNKNOWN_TERMS: (
        "with no word that occurs in the collection",
        "Check the language of the collection, or use dense search too.",
    ),
}


def list_unread_queries(run: Run, planned: RunPlan, notes: Notes) -> list[str]:
    """Return a warning for each reason why a run did not read some queries, or found nothing for them."""
    return [*_yield_unread(planned, notes), *_yield_cut(planned, notes), *_yield_emptied(run, planned)]


def _yield_unread(planned: RunPlan, notes: Notes) -> Iterator[str]:
    for reason, (words, remedy) in REASONS.items():
        if ids := _find_noted(planned, notes, reason):
            yield f"Lexical search found nothing for {counted(len(ids), 'query')} {words}, {_name(ids)}. {remedy}"


def _yield_cut(planned: RunPlan, notes: Notes) -> Iterator[str]:
    encoded = [stage.key for stage in planned.stages if isinstance(stage, EncodeStage | EngineStage)]
    if ids := set[int]().union(*(notes.queries.get(key, {}).get(CUT, set()) for key in encoded)):
        yield (
            f"The encoder does not read the end of {counted(len(ids), 'query')}, {_name(ids)}. Shorten them, or "
            f"{LONGER_ENCODER}"
        )
    for stage in planned.stages:
        if isinstance(stage, RerankStage) and (ids := notes.queries.get(stage.key, {}).get(CUT, set())):
            yield (
                f"The reranker {strip_model_path(stage.reranker)} does not read the end of some texts together with "
                f"{counted(len(ids), 'query')}, {_name(ids)}. {LONGER_RERANKER}"
            )


def _yield_emptied(run: Run, planned: RunPlan) -> Iterator[str]:
    if planned.threshold is None:
        return
    empty = run.query_results.filter(error="", document_ids=[]).values("query")
    lists = filter_found(run, planned).filter(query__in=empty).order_by().values_list("query", flat=True).distinct()
    if ids := set(lists):
        scale = OF_SCORE.get(planned.unit_kind, "the score")
        yield (
            f"The threshold {planned.threshold} removed all results of {counted(len(ids), 'query')}, {_name(ids)}. It "
            f"is held against {scale}: lower score_thresholds, or leave it out."
        )


def _find_noted(planned: RunPlan, notes: Notes, reason: str) -> set[int]:
    """Return the queries with a reason in every lexical search of the run."""
    stages = [stage.key for stage in planned.stages if isinstance(stage, LexicalStage)]
    noted = [notes.queries.get(key, {}).get(reason, set()) for key in stages]
    return set.intersection(*noted) if noted else set()


def _name(ids: Collection[int]) -> str:
    """Return the first of some queries, as an example."""
    query = Query.objects.filter(pk__in=ids).order_by("key").first()
    if query is None:
        return "since deleted"
    text = query.text if len(query.text) <= MAX_TEXT else f"{query.text[:MAX_TEXT]} …"
    return f"such as “{text}”" if query.key == query.text else f"such as {query.key} “{text}”"
