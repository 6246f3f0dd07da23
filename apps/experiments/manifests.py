"""The experiment file (experiment.yaml) of a benchmark, which runs it again on any site with the same data."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from apps.operations.models import Status
from apps.records.models import Benchmark, Evaluation, Run
from apps.retrieval.describing import describe_identity
from apps.retrieval.models import Index
from benchbench import SOFTWARE
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import KEYS
from benchbench.timestamps import timestamp

SCHEMA = "benchbench-experiment"
SCHEMA_VERSION = "1.0"
OPTIONS = (
    *("execution", "runs_per_query", "seed", "unresolved", "empty_queries", "weighting"),
    *("exclude_self", "identical_texts"),
)


class ManifestError(BenchbenchError):
    """The experiment file cannot be written, read, or run here. The message names the missing or different part."""

    code = "manifest"


class FileSection(BaseModel):
    """A part of an experiment file. It may have further keys for human readers, such as counts."""

    model_config = ConfigDict(strict=True)


class BenchmarkPart(FileSection):
    name: str
    description: str = ""


class DatasetPart(FileSection):
    name: str
    content_hash: str


class CollectionPart(FileSection):
    name: str
    fingerprint: str


class MappingPart(FileSection):
    name: str = ""
    truth_hash: str = ""


class IndexPart(FileSection):
    """An index; `alias` is its name in the matrix, null for the newest."""

    alias: str | None
    name: str
    content: str


class ResultPart(FileSection):
    """The figures of a run."""

    means: dict[str, float | None]
    queries: int
    failed_queries: int


class MadeByPart(FileSection):
    """A worker that took part."""

    libraries: dict[str, object] = {}
    rerankers: dict[str, Any] = {}
    llms: dict[str, Any] = {}
    settings: dict[str, Any] = {}


class RunPart(FileSection):
    """A run; its result is null if it did not complete."""

    label: str
    config_hash: str
    result: ResultPart | None
    made_by: list[MadeByPart] = []


class ExperimentFile(FileSection):
    """An experiment file (docs/reproducing.md). Without `runs` it has no figures for a comparison."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkPart
    dataset: DatasetPart
    collection: CollectionPart
    mapping: MappingPart
    indexes: list[IndexPart]
    matrix: dict[str, Any]
    runs: list[RunPart] = []
    measures: list[str]
    execution: str
    runs_per_query: int
    seed: int
    unresolved: str
    empty_queries: str
    weighting: str = ""
    exclude_self: bool = False
    identical_texts: str = "different"


class ManifestStateError(ManifestError):
    """The benchmark has no experiment file: it has not ended, holds external runs, or did not run from one."""

    status = 409


def build_manifest(benchmark: Benchmark) -> dict[str, Any]:
    """Return the experiment file of `benchmark` as JSON: its definition and its figures (docs/reproducing.md).

    Hashes identify the data; names and ids are for human readers. Raises ManifestStateError if the benchmark has not
    ended or holds external runs.
    """
    if benchmark.is_external:
        raise ManifestStateError(
            f"The benchmark {benchmark.name!r} holds external runs, which cannot be run again, so it has no "
            "experiment file. Keep the files of its runs; the run pages show their SHA-256."
        )
    if benchmark.status not in (Status.COMPLETED, Status.FAILED):
        raise ManifestStateError(
            f"The benchmark {benchmark.name!r} is {benchmark.status}: its experiment file is available once it has "
            "completed."
        )
    evaluations = load_own_evaluations(benchmark)
    definition = build_definition(benchmark, evaluations)
    definition["benchmark"] |= {
        "id": str(benchmark.pk),
        "completed_at": benchmark.completed_at and timestamp(benchmark.completed_at),
    }
    return definition | {
        "software": SOFTWARE,
        "runs": [_describe_run(run, evaluations.get(run.pk)) for run in _list_searched_runs(benchmark)],
    }


def build_definition(benchmark: Benchmark, evaluations: Mapping[Any, Evaluation]) -> dict[str, Any]:
    """Return the definition of `benchmark`: an experiment file without `runs`.

    `evaluations` are those of `load_own_evaluations`. Indexes that were not built are left out.
    """
    runs, version = _list_searched_runs(benchmark), benchmark.dataset_version
    truth_hash = next((evaluation.truth_hash for evaluation in evaluations.values()), "")
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "benchmark": {"name": benchmark.name, "description": benchmark.description},
        "dataset": {
            "name": version.dataset.name,
            "version": version.number,
            "label": version.label,
            "content_hash": version.content_hash,
            "queries": version.query_count,
            "judgments": version.judgment_count,
        },
        "collection": _describe_collection(benchmark, runs),
        "mapping": {"name": benchmark.mapping.name, "truth_hash": truth_hash},
        # Each index once, under its name in the matrix, or null for the newest of all.
        "indexes": [{"alias": name, **describe_identity(index)} for name, index in _map_indexes(runs).items()],
        "matrix": _build_matrix(benchmark, runs),
        "measures": benchmark.measures,
        "primary_k": benchmark.primary_k,
        "k_values": benchmark.k_values,
        **{name: value for name in OPTIONS if (value := getattr(benchmark, name)) is not None},
    }


def _list_searched_runs(benchmark: Benchmark) -> list[Run]:
    runs = benchmark.runs.filter(is_external=False)
    return list(runs.select_related("index__chunk_set", "index__lexical_index", "index__collection"))


def load_own_evaluations(benchmark: Benchmark) -> dict[Any, Evaluation]:
    """Load each run's evaluation, with all values, on the benchmark's own version, by run id."""
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=benchmark.dataset_version)
    return {evaluation.run_id: evaluation for evaluation in evaluations}


def build_result(evaluation: Evaluation, measures: Collection[str]) -> dict[str, Any]:
    """Return the figures of a run by `measures`, for the comparison with a second run."""
    return {
        "means": {name: mean for name, mean in evaluation.means.items() if name in measures},
        "queries": evaluation.query_count,
        "failed_queries": evaluation.failed_queries,
    }


def _describe_run(run: Run, evaluation: Evaluation | None) -> dict[str, object]:
    completed = evaluation is not None and run.status == Run.Status.COMPLETED
    return {
        "order": run.run_order,
        "label": run.label,
        "config": run.config,
        "config_hash": run.config_hash,
        "status": run.status,
        "result": build_result(evaluation, evaluation.measures) if completed and evaluation else None,
        "error": run.error_message,
        "made_by": [worker.stored for worker in run.lineage.made_by],
    }


def _describe_collection(benchmark: Benchmark, runs: list[Run]) -> dict[str, object]:
    """Return the state of the collection that was searched; the collection may have changed since."""
    chunk_set = next((run.index.chunk_set for run in runs if run.index and run.index.chunk_set), None)
    collection = benchmark.mapping.collection
    searched = benchmark.searched.fingerprint if benchmark.searched else collection.fingerprint
    return {
        "name": collection.name,
        "fingerprint": chunk_set.collection_fingerprint if chunk_set else searched,
        "documents": benchmark.document_count,
    }


def _build_matrix(benchmark: Benchmark, runs: list[Run]) -> dict[str, Any]:
    """Return the matrix without indexes that were not built, which cannot be searched again."""
    built = _map_indexes(runs)
    lost = {run.configuration.index for run in runs if run.index} - built.keys()
    names = [name for name in benchmark.matrix.get("indexes", ()) if name not in lost]
    matrix = {**benchmark.matrix, "indexes": names} if lost else benchmark.matrix
    return {key: matrix[key] for key in KEYS if key in matrix}  # PostgreSQL does not preserve the order of keys


def _map_indexes(runs: list[Run]) -> dict[str | None, Index]:
    return {run.configuration.index: run.index for run in runs if run.index and run.index.chunk_set}
