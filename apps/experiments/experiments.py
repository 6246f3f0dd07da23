"""Experiments: creation of a benchmark from a file, with imported data, built indexes, and a run per combination."""

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from apps.collections.folders import FolderError
from apps.collections.importing import ensure_collection
from apps.collections.sources import open_directory
from apps.datasets.formats.sectioned import read_sectioned as read_questions
from apps.datasets.importing import DatasetImport, ensure_dataset
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.mappings.creating import ensure_mapping
from apps.mappings.models import Mapping
from apps.operations.working import OperationFailedError, wait
from apps.records.models import Benchmark
from apps.retrieval.availability import describe_missing, list_index_requirements, name_encoder
from apps.retrieval.grids import Cell, Grid, declare_indexes
from apps.retrieval.indexing import find_or_start_build
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.naming import SIZES, name_models, name_size
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.files.experiment import Embedding, Experiment, Strategy, read_experiment, select_documents
from benchbench.ir.encoding import EncoderParameters
from benchbench.ir.planning.ann import find_arm
from benchbench.ir.planning.strategies import STRATEGIES
from benchbench.names import find_free_name
from benchbench.reading.strict_json import attributes

LLM_PARAMETERS = ("provider", "base_url", "temperature", "max_tokens")  # that an index stores
SEEDS = 2**31  # the number of seeds that language model servers and libraries accept
FIXED_PARAMETERS = ("sections", "seed")  # parameters that experiments do not set per strategy
OnProgress = Callable[[dict[str, Any]], None]


class ExperimentError(BenchbenchError):
    """The experiment cannot run in this installation."""

    code = "experiment"


@dataclass(frozen=True)
class ExperimentPlan:
    """An experiment with absolute paths, its index grid with the stores that search it, and their combinations."""

    path: Path
    experiment: Experiment
    grid: Grid
    combinations: list[Cell]

    @property
    def able(self) -> int:
        """Return the number of combinations that can run in this installation."""
        return sum(not cell.missing for cell in self.combinations)

    @property
    def sentence(self) -> str:
        """Return the size: "Experiment baseline: 4 combinations of 2 strategies × 2 backends × …; 3 can run here …"."""
        experiment = self.experiment
        axes = [
            (len(experiment.strategies), "strategy", "strategies"),
            (len(experiment.backends), "backend", "backends"),
            (len(experiment.embeddings), "embedding", "embeddings"),
            (len(experiment.llms), "language model where one is asked", "language models where one is asked"),
        ]
        axis_words = " × ".join(f"{number} {one if number == 1 else many}" for number, one, many in axes if number)
        total = counted(len(self.combinations), "combination")
        times = counted(experiment.benchmark.runs_per_query, "time")
        chunks = counted(max(experiment.benchmark.top_k_values), "chunk")
        return (
            f"Experiment {experiment.id}: {total} of {axis_words}; {self.able} can run here. Each searches every "
            f"query {times} for {chunks}."
        )

    def as_text(self) -> str:
        lines = [self.sentence]
        for number, cell in enumerate(self.combinations, start=1):
            lines.append(f"{number:>3} {cell.name}" + (f": cannot run, {cell.missing}" if cell.missing else ""))
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.as_dict(),
            "combinations": [
                {
                    "name": cell.name,
                    "strategy": cell.ingredients.strategy,
                    "backend": cell.store,
                    "embedding_model": cell.ingredients.encoder,
                    "llm_model": cell.ingredients.llm or None,
                    "parameters": _select_parameters(cell.ingredients),
                    "error": cell.missing or None,
                }
                for cell in self.combinations
            ],
            "total_runs": len(self.combinations),
            "runs_that_can_run": self.able,
        }


def plan_experiment(path: Path, *, preset: str | None = None) -> ExperimentPlan:
    """Plan the experiment of a file at its own size or that of a preset, without storing anything.

    Raises an error that names file and key for invalid values, and ExperimentError for more combinations than
    BENCHMARK_MAX_RUNS.
    """
    experiment = _resolve_paths(read_experiment(path), path.parent)
    if preset:
        experiment = experiment.apply_preset(preset)
    grid = _build_grid(experiment)
    order = grid.list_ingredients()
    combined = sorted(grid.list_combinations(), key=lambda one: order.index(one[0]))  # as the matrix orders its runs
    if len(combined) > settings.BENCHMARK_MAX_RUNS:
        raise ExperimentError(
            f"{path.name} combines into {len(combined)} runs; at most {settings.BENCHMARK_MAX_RUNS} are allowed "
            "(BENCHMARK_MAX_RUNS). Shorten a list."
        )
    cells: list[Cell] = []
    for ingredients, store in combined:
        chunks = f"{ingredients.strategy} {name_size(ingredients.chunk_parameters)}"
        name = find_free_name(" · ".join([chunks, store, *name_models(ingredients)]), [cell.name for cell in cells])
        missing = describe_missing({**list_index_requirements(ingredients, to_build=True), "store": store})
        cells.append(Cell(name, ingredients, missing=missing, store=store))
    return ExperimentPlan(path, experiment, grid, cells)


def _resolve_paths(experiment: Experiment, directory: Path) -> Experiment:
    """Return the experiment with absolute paths; relative ones start at `directory`."""

    def resolve_path(path: str) -> str:
        return str((directory / path).resolve())

    data = replace(
        experiment.data,
        documents_dir=resolve_path(experiment.data.documents_dir),
        ground_truth_path=resolve_path(experiment.data.ground_truth_path),
    )
    backends = [
        replace(backend, path=resolve_path(backend.path)) if backend.path else backend
        for backend in experiment.backends
    ]
    return replace(experiment, data=data, backends=tuple(backends))


def _build_grid(experiment: Experiment) -> Grid:
    """Return the axes of an experiment. Its seed applies to the clusters of trees and to language models."""
    seed = experiment.benchmark.random_seed % SEEDS
    return Grid(
        strategies=[(strategy.name, _build_parameters(strategy, seed)) for strategy in experiment.strategies],
        encoders=[
            (name_encoder(embedding.model, embedding.provider), _read_parameters(embedding))
            for embedding in experiment.embeddings
        ],
        llms=[(llm.model, attributes(llm, *LLM_PARAMETERS) | {"seed": seed}) for llm in experiment.llms],
        lexical=False,
        stores=[backend.name for backend in experiment.backends],
    )


def _read_parameters(embedding: Embedding) -> EncoderParameters:
    return EncoderParameters(embedding.query_prompt, embedding.document_prompt, embedding.precision)


def _build_parameters(strategy: Strategy, seed: int) -> dict[str, Any]:
    """Return the parameters of a strategy, without the prefix `chunk_` of size and overlap in the file.

    Chunks of `flat` are cut section by section like those of the other strategies, so that sections can be compared.
    """
    options = {name.removeprefix("chunk_"): value for name, value in asdict(strategy).items()}
    parameters = options | dict(zip(FIXED_PARAMETERS, (True, seed), strict=True))
    return {name: value for name, value in parameters.items() if name in STRATEGIES[strategy.name].parameters}


def _select_parameters(ingredients: Ingredients) -> dict[str, object]:
    """Return the parameters that affect a strategy, by their names in the file. Others in the file have no effect."""
    parameters = ((name, value) for name, value in ingredients.chunk_parameters.items() if name not in FIXED_PARAMETERS)
    return {f"chunk_{name}" if name in SIZES else name: value for name, value in parameters}


@dataclass(frozen=True)
class PreparedExperiment:
    """The benchmark of an experiment, ready to launch. `warnings` are about the imported data."""

    benchmark: Benchmark
    warnings: tuple[str, ...]


def prepare_experiment(
    plan: ExperimentPlan, *, name: str = "", owner: User | None = None, on_progress: OnProgress | None = None
) -> PreparedExperiment:
    """Import the documents and questions of an experiment, build its indexes, and create a benchmark over them.

    Reuses the owner's collection and dataset with equal content, and equal indexes. Builds indexes one at a time, in
    this process if no worker serves the queue. `on_progress` gets their events, with documents counted over all indexes
    to build. A combination whose strategy, backend or provider is not available, or whose index cannot be built,
    becomes a failed run with the reason.

    Raises ExperimentError if no combination can run, if possible before importing anything. Raises the errors of the
    readers, the importers and `create_benchmark`.
    """
    if not plan.able:
        reasons = "; ".join(dict.fromkeys(cell.missing for cell in plan.combinations))
        raise ExperimentError(f"{plan.path.name} has no combination that can run here: {reasons}.")
    mapping, imported = _import(plan, owner)
    indexes = declare_indexes(mapping.collection, plan.grid, owner=owner)
    _build_all(list(indexes.values()), mapping.collection.document_count, owner, on_progress)
    if not any(index.status == Index.Status.READY for index in indexes.values()):
        reasons = " ".join(dict.fromkeys(f"{key}: {index.error}" for key, index in indexes.items()))
        raise ExperimentError(f"No index of {plan.path.name} could be built. {reasons}")
    benchmark = create_benchmark(
        mapping,
        _build_options(plan.experiment, indexes, name),
        owner=owner,
        version=imported.version,
        indexes=dict(indexes.items()),
        experiment={"id": plan.experiment.id, "config": plan.experiment.as_dict()},
    )
    return PreparedExperiment(benchmark, imported.report.warnings)


@transaction.atomic
def _import(plan: ExperimentPlan, owner: User | None) -> tuple[Mapping, DatasetImport]:
    """Import the experiment's share of its documents and questions, and map the questions to the documents."""
    id, data = plan.experiment.id, plan.experiment.data
    directory, truth = Path(data.documents_dir), Path(data.ground_truth_path)
    if not truth.is_file():
        problem = f"{plan.path.name}, data.ground_truth_path: the file {truth} does not exist."
        raise ExperimentError(problem, field="data.ground_truth_path")
    try:
        documents = open_directory(directory, ignored_file=truth)
    except FolderError as error:
        problem = f"{directory} has no JSON files of documents; {error.message.rstrip('.')}."
        raise ExperimentError(f"{plan.path.name}, data.documents_dir: {problem}", field="data.documents_dir") from None
    record = read_questions(truth, directory=directory, limit=data.max_queries)
    if data.max_documents is not None:
        expected = {str(judgment.doc_ref["document_id"]) for query in record.queries for judgment in query.judgments}
        documents = documents.only(select_documents(documents.ids, expected, data.max_documents))
    dataset_name = f"{id} ({data.max_queries} queries)" if data.max_queries else id
    imported = ensure_dataset(record, name=dataset_name, source=f"experiment {dataset_name}", owner=owner)
    collection_name = f"{id} ({len(documents.files)} documents)" if data.max_documents else id
    collection, _ = ensure_collection(documents.read(), name=collection_name, owner=owner)
    return ensure_mapping(imported.version.dataset, collection, owner=owner), imported


def _build_all(indexes: list[Index], documents: int, owner: User | None, on_progress: OnProgress | None) -> None:
    """Build the indexes that are not ready and can be built, one at a time, and wait for indexes in progress.

    An index that fails stores the reason.
    """
    for index in indexes:
        index.refresh_from_db()
    unbuilt = [
        index
        for index in indexes
        if index.status != Index.Status.READY and not describe_missing(list_index_requirements(index, to_build=True))
    ]

    def report(built: int, event: dict[str, Any]) -> None:
        processed = built * documents + event["processed_documents"]
        if on_progress:
            on_progress({**event, "processed_documents": processed, "total_documents": len(unbuilt) * documents})

    for built, index in enumerate(unbuilt):
        with contextlib.suppress(OperationFailedError):  # the runs that need the index report it
            wait(find_or_start_build(index, by=owner), on_progress=partial(report, built))
        index.refresh_from_db()
        if index.status == Index.Status.CANCELLED:
            raise ExperimentError(f'Building the index "{index}" was cancelled: run the experiment again to continue.')


def _build_options(experiment: Experiment, indexes: Iterable[str], name: str) -> BenchmarkOptions:
    cutoffs = sorted(experiment.benchmark.top_k_values)
    return BenchmarkOptions(
        name=name or f"{experiment.id} {time.strftime('%Y-%m-%d %H:%M:%S')}",
        description=experiment.description,
        matrix={
            "indexes": list(indexes),
            "search_modes": ["dense"],
            "ann": list(dict.fromkeys(find_arm(backend.name) for backend in experiment.backends)),
            "top_k_values": cutoffs[-1:],
            "k_values_for_metrics": cutoffs,
            "primary_k": 10 if 10 in cutoffs else cutoffs[-1],
        },
        execution=Benchmark.Execution.ISOLATED,
        runs_per_query=experiment.benchmark.runs_per_query,
        seed=experiment.benchmark.random_seed,
    )
