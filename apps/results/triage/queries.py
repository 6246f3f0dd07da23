"""The queries of one run, worst first, and the contents of one ranking."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import Q

from apps.collections.models import Document
from apps.datasets.models import DatasetVersion, Query
from apps.engines.storing import find_snippet
from apps.mappings.truth import read_truth
from apps.records.comparability import find_differences
from apps.records.lists.reading import load_results
from apps.records.measuring.evaluating import get_truth_policies
from apps.records.models import Evaluation, QueryResult, Run
from apps.results.leaderboard.versions import load_scored_version
from apps.results.triage.causes import ANY
from apps.results.triage.triaging import QueryLoss, RunLosses
from apps.retrieval.models import Chunk
from benchbench.errors import ConflictError
from benchbench.ir.measures import Measure
from benchbench.ir.triage import Loss, by_difference, by_loss
from benchbench.markup import Piece, excerpt


class UnmeasuredError(ConflictError):
    """The run has no values."""

    code = "unmeasured"


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query of a run: its value of each shown measure or its error, and its losses.

    `other_value` is the value of the first measure in the run that it is compared with.
    """

    query: Query
    result: QueryResult | None
    values: list[float | None]
    lost: QueryLoss | None = None
    other_value: float | None = None

    @property
    def gap(self) -> float | None:
        """Difference of this run's value to the other's; below 0 if it is worse."""
        mine = self.values[0] if self.values else None
        return None if mine is None or self.other_value is None else mine - self.other_value


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a ranking, with the text that was found.

    `grade`: None without a judgment; `score`: None of a search engine, which ranks.
    """

    rank: int
    document: Document | None
    score: float | None
    grade: int | None
    excerpt: list[Piece]
    text: str


def load_evaluation(run: Run, *, version: DatasetVersion | None = None) -> Evaluation | None:
    """Return the evaluation of a completed run on `version` (its benchmark's own by default), with all values."""
    if run.status != Run.Status.COMPLETED:
        return None
    on = version or run.benchmark.dataset_version
    evaluation = run.evaluations.filter(dataset_version=on).first()
    if evaluation is not None:
        evaluation.dataset_version = on  # avoids another query
    return evaluation


def find_partner(
    run: Run, against: Run | None, version: DatasetVersion
) -> tuple[Run | None, Evaluation | None, list[str]]:
    """Return the run to compare with and its values, or the reasons against comparing."""
    refusals = find_differences([run, against], version=version).refusals if against else []
    if against is None or refusals:
        return None, None, refusals
    return against, load_evaluation(against, version=version), []


def require_values(run: Run, version: int | None = None) -> Evaluation:
    """Return the evaluation of a run on version `version` of its dataset (by default its benchmark's own).

    Raises NoValuesError for a version without re-scoring of the benchmark, UnmeasuredError for a run without values.
    """
    if version is not None and run.status == Run.Status.COMPLETED:
        scored = run.evaluations.filter(dataset_version__number=version)
        if evaluation := scored.select_related("dataset_version__dataset").first():
            return evaluation
    of_version = load_scored_version(run.benchmark, version)
    evaluation = load_evaluation(run, version=of_version)
    if evaluation is None:
        raise UnmeasuredError(explain_unmeasured(run, of_version, lacking="no values"))
    return evaluation


def explain_unmeasured(run: Run, version: DatasetVersion, *, lacking: str) -> str:
    if run.status == Run.Status.COMPLETED:
        return f'The run "{run}" has no values on {version}: re-score its benchmark.'
    reason = f": {run.error_message}" if run.error_message else "."
    return f'The run "{run}" is {run.status} and has {lacking}{reason}'


def order_queries(
    run: Run,
    evaluation: Evaluation | None,
    measure: str,
    *,
    text: str = "",
    best: bool = False,
    within: Collection[int] | None = None,
) -> list[int]:
    """Return the ids of the run's queries, worst (or best) first by `measure`; those without a value count as worst.

    `text` filters by key or text, `within` by the queries of a slice. The worst have the least values, for ranks the
    greatest.
    """
    version = evaluation.dataset_version if evaluation else run.benchmark.dataset_version
    queries = version.queries.order_by("id")
    if text:
        queries = queries.filter(Q(text__icontains=text) | Q(key__icontains=text))
    query_ids = [query_id for query_id in queries.values_list("id", flat=True) if within is None or query_id in within]
    if evaluation is None:
        return query_ids
    values = evaluation.get_by_query(measure)
    falling = best != (Measure.parse(measure).definition.better == "lower")

    def sort_key(query_id: int) -> tuple[bool, float]:
        value = values.get(query_id)
        return ((value is None) == best, 0.0 if value is None else -value if falling else value)

    return sorted(query_ids, key=sort_key)


def filter_by_cause(query_ids: Iterable[int], losses: RunLosses, cause: Loss | str) -> list[int]:
    """Return the queries that lost a document by `cause`, in their order."""
    lost = losses.queries
    return [query for query in query_ids if query in lost and (cause == ANY or cause in lost[query].causes)]


def order_worst_first(query_ids: Sequence[int], evaluation: Evaluation, losses: RunLosses, measure: str) -> list[int]:
    """Return the queries, greatest loss first: 1 − `measure`, an nDCG. Failed ones come before all.

    Queries without loss come last, with those without relevant documents: no run can do better there.
    """
    values = get_column(evaluation, measure)
    failed = [query for query in query_ids if values.get(query) is None]
    with_value = [query for query in query_ids if values.get(query) is not None]
    numbers = np.array([values[query] for query in with_value], np.float64)
    losing = [with_value[n] for n in by_loss(numbers, np.array([query in losses.judged for query in with_value], bool))]
    return list(dict.fromkeys([*failed, *losing, *with_value]))


def order_by_gap(query_ids: Sequence[int], first: Evaluation, second: Evaluation, measure: str) -> list[int]:
    """Return the queries that have a value of `measure` in both evaluations, the widest gap first."""
    columns = get_column(first, measure), get_column(second, measure)
    pair = np.array([[column.get(query) for query in query_ids] for column in columns], np.float64)  # None is NaN
    return [query_ids[n] for n in by_difference(*pair)]


def get_column(evaluation: Evaluation, measure: str) -> Mapping[int, float | None]:
    """Return the values of a measure by query id; {} if the evaluation lacks that measure."""
    return evaluation.get_by_query(measure) if measure in evaluation.measures else {}


def load_query_rows(
    run: Run,
    evaluation: Evaluation | None,
    query_ids: Iterable[int],
    measures: list[str],
    *,
    losses: RunLosses | None = None,
    other_values: Mapping[int, float | None] | None = None,
) -> list[QueryRow]:
    """Return the rows of some queries in the order of their ids. Two queries."""
    ids = list(query_ids)
    queries = Query.objects.in_bulk(ids)
    results = load_results(run, ids)
    columns = [evaluation.get_by_query(name) for name in measures] if evaluation else []
    return [
        QueryRow(
            queries[query_id],
            results.get(query_id),
            [column[query_id] for column in columns] or [None] * len(measures),
            losses.queries.get(query_id) if losses else None,
            other_values.get(query_id) if other_values else None,
        )
        for query_id in ids
    ]


def load_grades(result: QueryResult, *, version: DatasetVersion | None = None) -> dict[int, int]:
    """Return the grade in `version` of each judged document of a result's query; {} if the version lacks the query.

    The default is the benchmark's own version.
    """
    benchmark = result.run.benchmark
    at = version or benchmark.dataset_version
    policies = replace(get_truth_policies(benchmark), unresolved="count")
    ground_truth = read_truth(
        benchmark.mapping, at, state=benchmark.state, policies=policies, query_ids=[result.query_id]
    )
    return ground_truth.grades.get(result.query_id, {})


def load_hits(result: QueryResult, grades: dict[int, int], *, limit: int) -> list[Hit]:
    """Return the first `limit` documents of a ranking with grades and excerpts. Two queries if their texts are here."""
    document_ids = result.document_ids[:limit]
    documents = Document.objects.defer("metadata").in_bulk(document_ids)
    chunks = Chunk.objects.in_bulk(result.chunk_ids[:limit])
    engine = result.run.configuration.engine if result.run_id else None  # a tried query has no run
    hits = []
    for n, document_id in enumerate(document_ids):
        document = documents.get(document_id)
        source = (chunks.get(result.chunk_ids[n]) if n < len(result.chunk_ids) else None) or document
        read = source.text if source else ""
        text = read.removeprefix(document.title) if document else read  # the page shows the title above the excerpt
        if engine and document and not text:
            text = find_snippet(result.query.text, document)
        score = result.scores[n] if result.chunk_ids or not engine else None
        hits.append(Hit(n + 1, document, score, grades.get(document_id), excerpt(text, result.query.text), read))
    return hits


def load_query_values(result: QueryResult, *, version: DatasetVersion | None = None) -> list[tuple[str, float | None]]:
    """Return the value of each measure for one query of a completed run."""
    evaluation = load_evaluation(result.run, version=version)
    if evaluation is None or result.query_id not in evaluation.query_ids:
        return []
    column = evaluation.query_ids.index(result.query_id)
    return [(name, values[column]) for name, values in zip(evaluation.measures, evaluation.values, strict=True)]
