"""Outcomes of the queries of a run, and names of documents, as exporters write them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.text import slugify

from apps.benchmarks.measuring.reading import load_results
from apps.benchmarks.models import Benchmark, Evaluation, QueryResult, Run
from apps.collections.models import Document
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings.truth import Unresolved, require_resolved
from apps.results.triage.queries import explain_unmeasured, load_evaluation
from apps.results.triage.sections import Expected, load_expected
from benchbench.database.binary import batched
from benchbench.errors import BenchbenchError, ConflictError

AT_ONCE = 500
NOT_ASKED = "The run did not include this query."
UNRESOLVED = "unresolved:"


class ExportError(BenchbenchError):
    """Results cannot be written in a format."""

    code = "export"


class ExportStateError(ExportError, ConflictError):
    """The benchmark or the run has no results in its current state."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query of a run: external ids of its documents, best first, with scores, and the value of each measure.

    `error`: why these are missing, if the query failed or was never asked; else "".
    """

    query: Query
    documents: list[str]
    scores: list[float]
    values: dict[str, float | None]
    result: QueryResult | None
    error: str


def require_evaluation(run: Run, version: DatasetVersion) -> Evaluation:
    """Return the evaluation of a completed run on `version`. Raises ExportStateError if it has no values there."""
    evaluation = load_evaluation(run, version=version)
    if evaluation is None:
        raise ExportStateError(explain_unmeasured(run, version, lacking="nothing to export"))
    return evaluation


def run_id_of(run: Run) -> str:
    """Return the id of a run; for an imported run the id in its file, so that other tools recognise it."""
    return run.label if run.is_external else str(run.pk)


def stream_outcomes(run: Run, evaluation: Evaluation) -> Iterator[Outcome]:
    """Yield the outcome of every query of `evaluation`, in its order; reads some hundred at a time."""
    names: dict[int, str] = {}
    for query_ids in batched(evaluation.query_ids, AT_ONCE):
        yield from load_outcomes(run, query_ids, evaluation, names)


def load_outcomes(
    run: Run, query_ids: Sequence[int], evaluation: Evaluation | None, names: dict[int, str] | None = None
) -> Iterator[Outcome]:
    """Yield the outcomes of some queries, in the order of their ids; without values for queries not in `evaluation`.

    `names` has the external ids of documents that are loaded, and gets those of others.
    """
    names = {} if names is None else names
    positions = {query_id: index for index, query_id in enumerate(evaluation.query_ids)} if evaluation else {}
    columns = list(zip(evaluation.measures, evaluation.values, strict=True)) if evaluation else []
    queries = Query.objects.in_bulk(query_ids)
    results = load_results(run, list(query_ids), rankings=True)
    document_ids = {key for result in results.values() if not result.error for key in result.document_ids}
    if unnamed := document_ids - names.keys():
        names.update(Document.objects.filter(pk__in=unnamed).values_list("pk", "external_id"))
    for query_id in query_ids:
        result = results.get(query_id)
        error = NOT_ASKED if result is None else result.error
        documents = [] if result is None or error else [names[key] for key in result.document_ids]
        scores = result.scores if result is not None and not error else []
        values = {name: column[positions[query_id]] for name, column in columns} if query_id in positions else {}
        yield Outcome(queries[query_id], documents, scores, values, result, error)


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
    documents = benchmark.mapping.collection.documents.filter(external_id__in=set(document_ids.values()))
    existing_ids = set(documents.values_list("external_id", flat=True))
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
