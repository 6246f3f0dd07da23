"""Outcomes of the queries of a run, and names of documents, as exporters write them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.utils.text import slugify

from apps.collections.models import Document
from apps.collections.states import list_documents
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings.truth import Unresolved, require_resolved
from apps.records.lists.final import CALLS
from apps.records.lists.reading import require_rankings
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.timing import TIMINGS
from apps.results.triage.queries import explain_unmeasured, load_evaluation
from apps.results.triage.sections import Expected, load_expected
from benchbench.database.binary import batched, read_rows
from benchbench.errors import BenchbenchError, ConflictError

AT_ONCE = 500
MOST_NAMES = 500_000  # external ids in memory, some 70 MB
COSTS = (*TIMINGS, *CALLS)
NOT_ASKED = "The run did not include this query."
NO_RESULT: tuple[object, ...] = (NOT_ASKED, (), ())
UNRESOLVED = "unresolved:"


class ExportError(BenchbenchError):
    """Results cannot be written in a format."""

    code = "export"


class ExportStateError(ExportError, ConflictError):
    """The benchmark or the run has no results in its current state."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query of a run: external ids of its documents, best first, with scores, and the value of each measure.

    `error`: why these are missing, if the query failed or was never asked; else "". `costs` has the times and calls by
    name; empty if the query was never asked.
    """

    query: Query
    document_ids: Sequence[int]
    documents: list[str]
    scores: Sequence[float]
    values: dict[str, float | None]
    costs: Mapping[str, Any]
    error: str


@dataclass(frozen=True, slots=True)
class Names:
    """Queries by id with their keys and texts, and external ids of documents, each loaded once for several runs."""

    queries: dict[int, Query] = field(default_factory=dict)
    documents: dict[int, str] = field(default_factory=dict)


def require_evaluation(run: Run, version: DatasetVersion) -> Evaluation:
    """Return the evaluation of a completed run on `version`. Raises ExportStateError if it has no values there."""
    evaluation = load_evaluation(run, version=version)
    if evaluation is None:
        raise ExportStateError(explain_unmeasured(run, version, lacking="nothing to export"))
    return evaluation


def run_id_of(run: Run) -> str:
    """Return the id of a run; for an imported run the id in its file, so that other tools recognise it."""
    return run.label if run.is_external else str(run.pk)


def stream_outcomes(run: Run, evaluation: Evaluation, names: Names | None = None) -> Iterator[Outcome]:
    """Yield the outcome of every query of `evaluation`, in its order; reads some hundred at a time.

    Pass the same `names` for runs of the same benchmark.
    """
    names = names or Names()
    for some in batched(enumerate(evaluation.query_ids), AT_ONCE):
        columns = {query_id: column for column, query_id in some}
        if unknown := columns.keys() - names.queries.keys():
            names.queries.update(Query.objects.only("key", "text").in_bulk(unknown))
        yield from _load_outcomes(run, columns, evaluation, names)


def load_outcomes(run: Run, query_ids: Sequence[int], evaluation: Evaluation | None) -> Iterator[Outcome]:
    """Yield the outcomes of some queries, in the order of their ids; without values for queries not in `evaluation`."""
    columns: dict[int, int | None] = dict.fromkeys(query_ids)
    if evaluation:
        columns |= {key: column for column, key in enumerate(evaluation.query_ids) if key in columns}
    return _load_outcomes(run, columns, evaluation, Names(Query.objects.in_bulk(query_ids)))


def _load_outcomes(
    run: Run, columns: Mapping[int, int | None], evaluation: Evaluation | None, names: Names
) -> Iterator[Outcome]:
    """Yield the outcome of each query in `columns`, its place among the values of `evaluation`."""
    require_rankings(run.benchmark)
    rows = run.query_results.filter(query__in=list(columns)).order_by("query_id", "error", "repetition")
    results: dict[int, Any] = {}
    for query_id, *result in read_rows(rows.values_list("query_id", "error", "document_ids", "scores", *COSTS)):
        results.setdefault(query_id, result)  # of several repetitions the first that did not fail
    _name_documents({key for error, keys, *_ in results.values() if not error for key in keys}, names.documents)
    by_measure = list(zip(evaluation.measures, evaluation.values, strict=True)) if evaluation else []
    for query_id, column in columns.items():
        error, keys, scores, *costs = results.get(query_id, NO_RESULT)
        keys, scores = ((), ()) if error else (keys, scores)
        documents = [names.documents[key] for key in keys]
        values = {} if column is None else {name: row[column] for name, row in by_measure}
        by_name = dict(zip(COSTS, costs, strict=True)) if costs else {}
        yield Outcome(names.queries[query_id], keys, documents, scores, values, by_name, error)


def _name_documents(keys: set[int], names: dict[int, str]) -> None:
    """Add the external id of each document to `names`, which is emptied first if it holds too many."""
    if len(names) > MOST_NAMES:
        names.clear()
    if unknown := [*keys - names.keys()]:
        with connection.cursor() as cursor:
            # One array, because Django prepares each number of a list for several microseconds.
            cursor.execute("SELECT id, external_id FROM collections_document WHERE id = ANY(%s)", [unknown])
            names.update(cursor)


def load_names(keys: Collection[int], benchmark: Benchmark) -> dict[int, str]:
    """Return the external id of each key of a truth.

    An unresolved judgment has the `document_id` of its reference, or a generated name if that is missing or names
    another document too.
    """
    names = dict(Document.objects.filter(pk__in=keys).values_list("pk", "external_id"))
    unresolved = {key.judgment_id for key in keys if isinstance(key, Unresolved)}
    lost = Judgment.objects.filter(pk__in=unresolved).order_by("pk")
    pairs = [(judgment, judgment.doc_ref.get("document_id")) for judgment in lost if isinstance(judgment.doc_ref, dict)]
    document_ids = {judgment.pk: str(name) for judgment, name in pairs if name}
    searched = list_documents(benchmark.mapping.collection, state=benchmark.state)
    existing = searched.filter(external_id__in=set(document_ids.values()))
    existing_ids = set(existing.values_list("external_id", flat=True))
    used_names: set[tuple[int, str]] = set()
    for judgment in lost:
        name = document_ids.get(judgment.pk, "")
        if not name or name in existing_ids or (judgment.query_id, name) in used_names:
            name = f"{UNRESOLVED}{judgment.pk}"
        used_names.add((judgment.query_id, name))
        names[Unresolved.from_judgment(judgment.pk)] = name
    return names


@dataclass(frozen=True, slots=True)
class BenchmarkInputs:
    """Input of a benchmark's runs: the queries of a version, and the expected documents by query id."""

    benchmark: Benchmark
    queries: Sequence[Query]
    expected: Mapping[int, Sequence[Expected]]
    names: Mapping[int, str]  # by the keys of a truth

    @property
    def repetitions(self) -> int:
        """Number of times that each query was asked: always 1 under shared execution."""
        isolated = self.benchmark.execution == Benchmark.Execution.ISOLATED
        return self.benchmark.runs_per_query if isolated else 1

    def name_of(self, expected: Expected) -> str:
        return self.names[expected.key]


def load_inputs(benchmark: Benchmark, version: DatasetVersion) -> BenchmarkInputs:
    """Return the queries and expected documents of a benchmark on `version`. Four queries.

    Raises TruthError unless the mapping is resolved for it.
    """
    require_resolved(benchmark.mapping, version)
    by_query: dict[int, list[Expected]] = {}
    every = load_expected(benchmark, version)
    for expected in every:
        by_query.setdefault(expected.query_id, []).append(expected)
    keys = {expected.key for expected in every}
    queries = list(version.queries.only("key", "text").order_by("pk"))
    return BenchmarkInputs(benchmark, queries, by_query, load_names(keys, benchmark))


def build_slug(benchmark: Benchmark) -> str:
    """Return the name of a benchmark for file names."""
    return slugify(benchmark.name) or "benchmark"
