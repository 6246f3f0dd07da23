"""Outcomes of the queries of a run, and names of documents, as exporters write them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.utils.text import slugify

from apps.benchmarks.measuring.reading import results_by_query
from apps.benchmarks.models import Benchmark, Evaluation, QueryResult, Run
from apps.collections.models import Document
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings.truth import Unresolved
from apps.results.triage.queries import evaluation_of, why_unmeasured
from benchbench.database.binary import batched
from benchbench.errors import BenchbenchError, ConflictError

AT_ONCE = 500
NOT_ASKED = "The run was never asked this query."
UNRESOLVED = "unresolved:"


class ExportError(BenchbenchError):
    """Results that cannot be written in a format."""

    code = "export"


class ExportStateError(ExportError, ConflictError):
    """The benchmark or the run is in a state in which it has no results."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query of a run: the external ids of what it found, best first, with scores, and the value of each measure.

    `error` says why there is none of that, where the query failed or was never asked; else it is empty.
    """

    query: Query
    documents: list[str]
    scores: list[float]
    values: dict[str, float | None]
    result: QueryResult | None
    error: str


def measured(run: Run, version: DatasetVersion) -> Evaluation:
    """Return the evaluation of a completed run on `version`; raise an ExportStateError that says why there is none."""
    evaluation = evaluation_of(run, version=version)
    if evaluation is None:
        raise ExportStateError(why_unmeasured(run, version, lacking="nothing to export"))
    return evaluation


def run_id_of(run: Run) -> str:
    """Return the id of a run: that which its file states where it was imported, for others to find it by."""
    return run.label if run.is_external else str(run.pk)


def outcomes_of(run: Run, evaluation: Evaluation) -> Iterator[Outcome]:
    """Yield every query that `evaluation` has a place for, in its order, some hundred at a time from the database."""
    for query_ids in batched(evaluation.query_ids, AT_ONCE):
        yield from outcomes_at(run, query_ids, evaluation)


def outcomes_at(run: Run, query_ids: Sequence[int], evaluation: Evaluation | None) -> Iterator[Outcome]:
    """Yield what became of some queries, in the order of their ids; without values where `evaluation` lacks them."""
    places = {query_id: place for place, query_id in enumerate(evaluation.query_ids)} if evaluation else {}
    named = list(zip(evaluation.measures, evaluation.values, strict=True)) if evaluation else []
    queries = Query.objects.in_bulk(query_ids)
    results = results_by_query(run, list(query_ids), rankings=True)
    found = {key for result in results.values() if not result.error for key in result.document_ids}
    names = dict(Document.objects.filter(pk__in=found).values_list("pk", "external_id"))
    for query_id in query_ids:
        result = results.get(query_id)
        error = NOT_ASKED if result is None else result.error
        documents = [] if result is None or error else [names[key] for key in result.document_ids]
        scores = result.scores if result is not None and not error else []
        values = {name: column[places[query_id]] for name, column in named} if query_id in places else {}
        yield Outcome(queries[query_id], documents, scores, values, result, error)


def names_of(keys: Collection[int], benchmark: Benchmark) -> dict[int, str]:
    """Return the external id of each key of a truth; of an unresolved judgment the `document_id` that it states, or
    where there is none, or it would name another document too, a made one.
    """
    names = dict(Document.objects.filter(pk__in=keys).values_list("pk", "external_id"))
    unresolved = {key.judgment_id for key in keys if isinstance(key, Unresolved)}
    lost = Judgment.objects.filter(pk__in=unresolved).order_by("pk")
    named = [(judgment, judgment.doc_ref.get("document_id")) for judgment in lost if isinstance(judgment.doc_ref, dict)]
    document_ids = {judgment.pk: str(name) for judgment, name in named if name}
    known = benchmark.mapping.collection.documents.filter(external_id__in=set(document_ids.values()))
    there = set(known.values_list("external_id", flat=True))
    given: set[tuple[int, str]] = set()
    for judgment in lost:
        name = document_ids.get(judgment.pk, "")
        if not name or name in there or (judgment.query_id, name) in given:
            name = f"{UNRESOLVED}{judgment.pk}"
        given.add((judgment.query_id, name))
        names[Unresolved.of(judgment.pk)] = name
    return names


def slug_of(benchmark: Benchmark) -> str:
    """Return the name of a benchmark as files are called after it."""
    return slugify(benchmark.name) or "benchmark"
