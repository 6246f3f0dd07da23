"""The path of a document through the stages of a run, for one query."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.utils.text import Truncator

from apps.collections.models import Document
from apps.datasets.models import Judgment
from apps.mappings.models import Resolution
from apps.mappings.truth import Unresolved
from apps.records.lists.reading import Lists, build_stored_plan, list_keys, load_documents, read_lists
from apps.records.models import QueryResult
from apps.results.triage.causes import describe_loss, find_remedy
from apps.results.triage.triaging import list_relevant, load_reasons, rename_lists
from apps.retrieval.search.crediting import find_summaries
from benchbench.ir.measures import count_once, name_texts
from benchbench.ir.planning import stages as planned
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.triage import FINAL, Loss, LostDocument, Standing, find_standings, triage

# No stage could find these documents, so their path is not shown.
NEVER_SEARCHED = (Loss.NOT_IN_COLLECTION, Loss.UNRESOLVED, Loss.NOT_INDEXED, Loss.FILTERED, Loss.EXCLUDED_SELF)


@dataclass(frozen=True, slots=True)
class Stop:
    """A document's rank after one stage. `note`: why it has no rank, or that the run does not read to it.

    `is_beside`: a parallel search, not a stage after the previous one.
    """

    stage: str
    rank: int | None
    score: float | None
    note: str = ""
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class LostPath:
    """A relevant document that is not among the first k, with the cause, the remedy and its path.

    `document`: None for an unresolved judgment. `stops` is empty if the stages are unknown.
    """

    grade: int
    document: Document | None
    reference: str
    sentence: str
    remedy: str
    stops: Sequence[Stop]


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths of one ranking: its lost documents, and the stops of its shown documents.

    `has_stages` is false if the stages are unknown: in external runs, and if their lists are not stored.
    """

    lost: Sequence[LostPath]
    stops: Mapping[int, Sequence[Stop]]
    has_stages: bool
    lost_count: int

    @property
    def stages(self) -> list[str]:
        """The stages that lost documents went through, in order."""
        return list(dict.fromkeys(stop.stage for one in self.lost for stop in one.stops))

    @property
    def rows(self) -> list[tuple[LostPath, list[Stop | None]]]:
        """The lost documents, each with its stop at every one of `stages`."""
        by_stage = [(one, {stop.stage: stop for stop in one.stops}) for one in self.lost]
        return [(one, [stops.get(stage) for stage in self.stages]) for one, stops in by_stage]


def build_paths(result: QueryResult, grades: Mapping[int, int], *, hits: Iterable[int], limit: int) -> Paths:
    """Return the paths of the lost relevant documents, at most `limit`, and of the documents `hits`.

    `grades` are those of the query by the keys of its truth. A failed query has no ranking and loses nothing.
    """
    run, k = result.run, result.run.benchmark.primary_k
    if result.error:
        return Paths([], {}, False, 0)
    plan = build_stored_plan(run)
    keys = [*list_keys(plan), *plan.exact_keys] if plan else []
    lists = read_lists(run.benchmark, keys, query_ids=[result.query_id]).get(result.query_id, {}) if plan else {}
    if plan is None or not lists.keys() >= {*list_keys(plan)}:
        missing = _find_lost(result, grades, k)
        return Paths(_describe_lost(result, missing[:limit], {}, {}), {}, False, len(missing))
    documents = load_documents(lists.values())
    relevant = list_relevant(result.query_id, grades, load_reasons(run, result.query_id))
    document_lists = name_documents(lists, documents)
    lost = triage(plan, rename_lists(grades, document_lists), relevant, k=k)
    searched = [lost_document for lost_document in lost[:limit] if lost_document.loss not in NEVER_SEARCHED]
    hits = list(hits)
    through = _load_notes(
        result, plan, lists, documents, {*hits, *(lost_document.document for lost_document in searched)}
    )
    stops = {
        lost_document.document: _build_stops(
            plan, lists, lost_document.standings, through.get(lost_document.document, "")
        )
        for lost_document in searched
    }
    texts = {
        lost_document.document: explain_loss(plan, run.configuration, lost_document, k)
        for lost_document in lost[:limit]
    }
    standings = find_standings(plan, document_lists, hits)
    return Paths(
        _describe_lost(
            result, [(lost_document.document, int(lost_document.grade)) for lost_document in lost[:limit]], texts, stops
        ),
        {
            document: _build_stops(plan, lists, stages, through.get(document, ""))
            for document, stages in standings.items()
        },
        True,
        len(lost),
    )


def name_documents(lists: Lists, documents: Mapping[int, int]) -> Lists:
    """Return the lists of a query with the document of each chunk in its place."""
    return {
        key: replace(one, ids=np.array([documents[chunk] for chunk in one.ids.tolist()], np.int64))
        for key, one in lists.items()
    }


def _find_lost(result: QueryResult, grades: Mapping[int, int], k: int) -> list[tuple[int, int]]:
    """Return (document, grade) of the relevant documents outside the first k, the highest grade first."""
    first = set(name_texts(grades, result.document_ids)[:k])
    relevant = [(document, grade) for document, grade in count_once(grades).items() if grade > 0]
    lost = [(document, grade) for document, grade in relevant if document not in first]
    return sorted(lost, key=lambda judged: (-judged[1], judged[0]))


def _describe_lost(
    result: QueryResult,
    lost: Sequence[tuple[int, int]],
    texts: Mapping[int, tuple[str, str]],
    stops: Mapping[int, Sequence[Stop]],
) -> list[LostPath]:
    """Return lost documents with their details. Three queries."""
    ids = [key for key, _ in lost if not isinstance(key, Unresolved)]
    documents = Document.objects.defer("text", "metadata").in_bulk(ids)
    judgments = Judgment.objects.in_bulk([key.judgment_id for key, _ in lost if isinstance(key, Unresolved)])
    benchmark = result.run.benchmark
    resolutions = Resolution.objects.at(benchmark.state).filter(mapping=benchmark.mapping_id, judgment__in=judgments)
    reasons = dict(resolutions.values_list("judgment_id", "reason"))
    described = []
    for key, grade in lost:
        document = documents.get(key)
        sentence, remedy = texts.get(key) or (_describe_rank(result, key), "")
        if isinstance(key, Unresolved):
            sentence = f"{sentence} {reasons.get(key.judgment_id, '')}".strip()
            reference = judgments[key.judgment_id].reference
        else:
            reference = documents[key].external_id
        described.append(LostPath(grade, document, reference, sentence, remedy, stops.get(key, ())))
    return described


def _describe_rank(result: QueryResult, document: int) -> str:
    if isinstance(document, Unresolved):
        return "Unresolved:"
    if document in result.document_ids:
        return f"It is at rank {result.document_ids.index(document) + 1:,}."
    return f"Not among the {len(result.document_ids):,} documents of the ranking."


def explain_loss(plan: RunPlan, configuration: Configuration, lost: LostDocument, k: int) -> tuple[str, str]:
    """Return the sentence and the remedy for a lost document."""
    standings = {standing.stage: standing for standing in lost.standings}
    rerank = next((stage for stage in plan.stages if isinstance(stage, planned.RerankStage)), None)
    before = standings[plan.final].rank
    if lost.loss in (Loss.DEMOTED_BY_RERANKER, Loss.BELOW_RERANK_DEPTH) and rerank:
        before = standings[rerank.source].rank
    if lost.loss in (Loss.BELOW_FIRST_STAGE, Loss.BELOW_FUSED):
        searches = [stage.key for stage in plan.stages if isinstance(stage, planned.Search)]
        before = min((rank for key in searches if (rank := standings[key].rank)), default=None)
    sentence = describe_loss(lost.loss, configuration, k=k, before=before, rank=standings[FINAL].rank)
    return sentence, find_remedy(lost.loss, configuration)


def _load_notes(
    result: QueryResult, plan: RunPlan, lists: Lists, documents: Mapping[int, int], document_ids: Collection[int]
) -> dict[int, str]:
    """Return a note for each wanted document that a tree's summary brought into the dense list, with the summary."""
    dense, index = plan.dense, result.run.index
    if dense is None or index is None:
        return {}
    best: dict[int, int] = {}
    scores: dict[int, float] = {}
    for chunk, score in zip(lists[dense.key].ids.tolist(), lists[dense.key].scores.tolist(), strict=True):
        if documents[chunk] in document_ids and documents[chunk] not in best:
            best[documents[chunk]], scores[chunk] = chunk, score
    behind = find_summaries(index, result.query.text, scores, dimensions=dense.dimensions)
    return {
        document: f"found through summary “{Truncator(behind[chunk].text).chars(80)}”"
        for document, chunk in best.items()
        if chunk in behind
    }


def _build_stops(plan: RunPlan, lists: Lists, standings: Sequence[Standing], through: str) -> list[Stop]:
    """Return the stops of a document; the last, the run's own ranking, only if it changes the rank or score.

    `through`: the summary that brought it into the dense list, if any.
    """
    stages = {stage.key: stage for stage in plan.stages}
    last, final = standings[-2:]
    is_same = last.is_read and (last.rank, last.score) == (final.rank, final.score)
    stops: list[Stop] = []
    before: type | None = None
    for standing in standings[:-1] if is_same else standings:
        stage = stages.get(standing.stage)
        if stage is None:
            note = "" if standing.rank else "left out"
        elif standing.rank is None:
            note = _explain_absent(stage, len(lists[standing.stage]))
        else:
            note = "" if standing.is_read else f"only the first {plan.candidates:,} are read"
        if isinstance(stage, planned.DenseStage) and standing.rank:
            note = "; ".join(filter(None, [through, note]))
        is_beside = bool(stops) and (isinstance(stage, planned.Search) or type(stage) is planned.MergeStage is before)
        before = type(stage)
        score = None if isinstance(stage, planned.LocateStage) else standing.score
        stops.append(Stop(stage.name if stage else "final", standing.rank, score, note, is_beside))
    return stops


def _explain_absent(stage: planned.Stage, length: int) -> str:
    """Return why a document has no rank in a stage's list of this length."""
    match stage:
        case planned.LexicalStage(depth=depth) if length < depth:
            return "no word in common"
        case (
            planned.DenseStage(depth=depth)
            | planned.LexicalStage(depth=depth)
            | planned.LocateStage(depth=depth)
            | planned.RerankStage(depth=depth)
        ):
            return f"not in the first {length:,}" if length >= depth else "not in the list"
        case planned.FuseStage(candidates=candidates) | planned.MergeStage(candidates=candidates):
            return f"not in the first {length:,}" if length >= candidates else "not in the list"
    return "not in the list"
