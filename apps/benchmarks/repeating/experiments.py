"""Experiments: from a file to a benchmark with imported data, built indexes, and a run for each combination."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.benchmarks.defining.creating import create_benchmark
from apps.benchmarks.defining.options import BenchmarkOptions
from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.experiment_plans import ExperimentError, Planned
from apps.collections.folders import FolderError
from apps.collections.importing import collection_with
from apps.collections.sources import documents_in
from apps.datasets.formats.sectioned import read_sectioned as read_questions
from apps.datasets.importing import DatasetImport, dataset_with
from apps.datasets.records import DatasetRecord
from apps.mappings.creating import create_mapping, mapping_of
from apps.mappings.models import Mapping as Laid
from apps.mappings.resolving import resolve_now
from apps.operations.working import OperationFailedError, wait
from apps.retrieval.availability import lack, parts_of
from apps.retrieval.grids.making import declare_indexes
from apps.retrieval.indexing import building_of
from apps.retrieval.models import Index
from benchbench.files.experiment import kept_documents
from benchbench.ir.planning.ann import arm_of

OnProgress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Prepared:
    """The benchmark of an experiment, to be launched; `warnings` are about the imported data."""

    benchmark: Benchmark
    warnings: tuple[str, ...]


def prepare_experiment(
    planned: Planned, *, name: str = "", owner: User | None = None, on_progress: OnProgress | None = None
) -> Prepared:
    """Import the documents and questions of an experiment, build its indexes, and create a benchmark over them.

    What is here already is taken as it is: the owner's collection and dataset of equal content, indexes made of the
    same. Indexes are built one after the other, in this process where no worker serves the queue; `on_progress` gets
    the events of that, whose documents are counted over all indexes that are built. A combination whose strategy,
    backend or provider is not known here, or whose index cannot be built, is a run that failed, with the reason.

    Raises ExperimentError where no combination is left to run, before anything is imported if that is known by then,
    and what the readers, importers and `create_benchmark` raise.
    """
    if len(planned.lacking) == len(planned.combinations):
        reasons = "; ".join(dict.fromkeys(planned.lacking.values()))
        raise ExperimentError(f"{planned.path.name} combines nothing that can run here: {reasons}.")
    mapping, imported = _import(planned, owner)
    declared = declare_indexes(mapping.collection, planned.ingredients, owner=owner)
    indexes: dict[str | None, Index] = dict(declared.items())
    _build_all(list(indexes.values()), mapping.collection.document_count, owner, on_progress)
    if not any(index.status == Index.Status.READY for index in indexes.values()):
        reasons = " ".join(dict.fromkeys(f"{key}: {index.error}" for key, index in indexes.items()))
        raise ExperimentError(f"No index of {planned.path.name} could be built. {reasons}")
    benchmark = _create(planned, mapping, imported, indexes, name=name, owner=owner)
    return Prepared(benchmark, imported.report.warnings)


@transaction.atomic
def _import(planned: Planned, owner: User | None) -> tuple[Laid, DatasetImport]:
    """Import what the experiment keeps of its documents and questions, and lay these over those."""
    id, data = planned.experiment.id, planned.experiment.data
    directory, truth = Path(data.documents_dir), Path(data.ground_truth_path)
    if not truth.is_file():
        raise _missing(planned, "ground_truth_path", f"there is no file {truth}")
    try:
        documents = documents_in(directory, besides=truth)
    except FolderError as error:
        what = f"{directory} holds no JSON file of a document; {error.message.rstrip('.')}"
        raise _missing(planned, "documents_dir", what) from None
    record = read_questions(truth, directory=directory, most=data.max_queries)
    if data.max_documents is not None:
        documents = documents.only(kept_documents(documents.ids, _expected(record), data.max_documents))
    asked = f"{id} ({data.max_queries} queries)" if data.max_queries else id
    imported = dataset_with(record, name=asked, source=f"experiment {asked}", owner=owner)
    searched = f"{id} ({len(documents.files)} documents)" if data.max_documents else id
    collection, _ = collection_with(documents.read(), name=searched, owner=owner)
    dataset = imported.version.dataset
    mapping = mapping_of(dataset, collection, owner=owner)
    if mapping is None:
        mapping = create_mapping(dataset, collection, owner=owner)
    return resolve_now(mapping), imported


def _missing(planned: Planned, key: str, what: str) -> ExperimentError:
    return ExperimentError(f"{planned.path.name}, data.{key}: {what}.", field=f"data.{key}")


def _expected(record: DatasetRecord) -> set[str]:
    return {str(judgment.doc_ref["document_id"]) for query in record.queries for judgment in query.judgments}


def _build_all(indexes: list[Index], documents: int, owner: User | None, on_progress: OnProgress | None) -> None:
    """Build the indexes that are not ready and lack no part, one after the other."""
    wanted = [index for index in indexes if _is_buildable(index)]

    def report(built: int, event: dict[str, Any]) -> None:
        done = built * documents + event["processed_documents"]
        if on_progress:
            on_progress({**event, "processed_documents": done, "total_documents": len(wanted) * documents})

    for built, index in enumerate(wanted):
        _build(index, owner, partial(report, built))


def _is_buildable(index: Index) -> bool:
    index.refresh_from_db()
    return index.status != Index.Status.READY and not lack(parts_of(index, to_build=True))


def _build(index: Index, owner: User | None, on_progress: OnProgress) -> None:
    """Build an index; wait where it is being built. One that fails says why."""
    with contextlib.suppress(OperationFailedError):  # told by the runs that need it
        wait(building_of(index, by=owner), on_progress=on_progress)
    index.refresh_from_db()
    if index.status == Index.Status.CANCELLED:
        raise ExperimentError(f'Building the index "{index}" was cancelled: run the experiment again to go on.')


def _create(
    planned: Planned,
    mapping: Laid,
    imported: DatasetImport,
    indexes: Mapping[str | None, Index],
    *,
    name: str,
    owner: User | None,
) -> Benchmark:
    experiment = planned.experiment
    cutoffs = sorted(experiment.benchmark.top_k_values)
    options = BenchmarkOptions(
        name=name or f"{experiment.id} {time.strftime('%Y-%m-%d %H:%M:%S')}",
        description=experiment.description,
        matrix={
            "indexes": list(indexes),
            "search_modes": ["dense"],
            "ann": list(dict.fromkeys(arm_of(backend.name) for backend in experiment.backends)),
            "top_k_values": cutoffs[-1:],
            "k_values_for_metrics": cutoffs,
            "primary_k": 10 if 10 in cutoffs else cutoffs[-1],
        },
        execution=Benchmark.Execution.ISOLATED,
        runs_per_query=experiment.benchmark.runs_per_query,
        seed=experiment.benchmark.random_seed,
    )
    return create_benchmark(
        mapping,
        options,
        owner=owner,
        version=imported.version,
        indexes=indexes,
        experiment={"id": experiment.id, "config": experiment.as_dict()},
    )
