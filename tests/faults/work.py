"""Work for the fault suite: a small benchmark, index and resolution, and the figures that come of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.test import override_settings

from apps.execution.launching import launch
from apps.mappings.models import Mapping, Resolution
from apps.operations.launching import start_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.measuring.measures import add_measures
from apps.records.models import BatchValues, Benchmark, Evaluation, QueryResult
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Chunk, Index, LexicalPiece
from apps.retrieval.search import vectors as tables
from tests.benchmarks.figures import run_key
from tests.created import create_benchmark
from tests.library import ENCODER, make_library

QUERIES = 9
MATRIX = {"search_modes": ["dense", "hybrid"], "use_reranker": [False, True]}


@dataclass(frozen=True)
class Kind:
    """A kind of work: it is started on the queue, and leaves figures that say whether anything is lost or double."""

    name: str
    start: Callable[[], Operation]
    figures: Callable[[Operation], Any]

    def do(self) -> Operation:
        return wait(self.start())


def library() -> Mapping:
    """The world of every scenario: made once a process, and there once a test."""
    return Mapping.objects.filter(name="library").first() or make_library(queries=QUERIES, documents=30)


def start_benchmark(**matrix: Any) -> Operation:
    number = Benchmark.objects.count()
    return launch(create_benchmark(library(), name=f"faults {number}", matrix=MATRIX | matrix))


def start_in_store() -> Operation:
    return start_benchmark(ann=["sqlite_vec:exact"])


def start_isolated() -> Operation:
    number = Benchmark.objects.count()
    return launch(create_benchmark(library(), name=f"faults {number}", matrix=MATRIX, execution="isolated"))


def benchmark_figures(operation: Operation) -> Any:
    benchmark = Benchmark.objects.get(pk=operation.subject_id)
    assert not BatchValues.objects.filter(run__benchmark=benchmark).exists(), "kept values are gone with the end"
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark).order_by("run__run_order")
    return {
        "rows": QueryResult.objects.filter(run__benchmark=benchmark).count(),
        "rankings": run_key(benchmark),
        "values": [(one.means, one.values) for one in evaluations],
        "runs": list(benchmark.runs.order_by("run_order").values_list("status", "embed_calls", "failed_queries")),
    }


def start_index() -> Operation:
    collection = library().collection
    number = collection.indexes.count()
    cut = {"size": 1000 + number, "title": True}  # longer than any text, and new: nothing is there to be shared
    return build_index(create_index(collection, name=f"faults {number}", encoder=ENCODER, chunk_parameters=cut))


def index_figures(operation: Operation) -> Any:
    index = Index.objects.select_related("chunk_set", "lexical_index").get(pk=operation.subject_id)
    assert index.chunk_set is not None
    assert index.dimension is not None
    chunks = Chunk.objects.filter(chunk_set=index.chunk_set).order_by("position")
    positions, vectors = tables.load_vectors(
        index.vector_table, index.dimension, list(range(index.chunk_set.vector_count))
    )
    pieces = LexicalPiece.objects.filter(lexical_index=index.lexical_index).order_by("ordinal")
    return {
        "chunks": list(chunks.values_list("position", "text_hash", "document__external_id")),
        "vectors": (positions.tolist(), vectors.tobytes()),
        "words": list(pieces.values_list("sha256", flat=True)),
        "counts": (index.status, index.stats["num_chunks"], index.stats["num_vectors"]),
    }


def start_tree() -> Operation:
    collection = library().collection
    number = collection.indexes.count()
    cut = {"size": 1000 + number}  # new: nothing is there to be shared
    pieces = {"strategy": "raptor_extractive", "encoder": ENCODER, "chunk_parameters": cut}
    return build_index(create_index(collection, name=f"faults {number}", **pieces))


def start_resolving() -> Operation:
    mapping = library()
    refs = mapping.resolutions.count()
    return start_operation(Operation.Kind.RESOLVE, subject_id=mapping.pk, batches=[({"refs": refs}, refs)])


def resolutions(operation: Operation) -> Any:
    by = Resolution.objects.filter(mapping=operation.subject_id).order_by("judgment")
    return list(by.values_list("judgment", "document__external_id", "outcome"))


def start_measuring() -> Operation:
    benchmark = Benchmark.objects.get(pk=wait(start_benchmark(use_reranker=[False])).subject_id)
    with override_settings(BENCHBENCH_MEASURE_AT_ONCE=-1):
        return add_measures(benchmark, ["ERR@5"]).operation


KINDS = {
    kind.name: kind
    for kind in (
        Kind("benchmark", start_benchmark, benchmark_figures),
        Kind("store", start_in_store, benchmark_figures),
        Kind("isolated", start_isolated, benchmark_figures),
        Kind("index", start_index, index_figures),
        Kind("tree", start_tree, index_figures),
        Kind("resolve", start_resolving, resolutions),
        Kind("measure", start_measuring, benchmark_figures),
    )
}
