"""Preparation of a benchmark from a dataset and a collection: mapping and indexes first, then the benchmark starts.

Several preparations may wait for one mapping or index. The transaction that completes the last operation that they wait
for starts their benchmarks, so that a killed worker leaves both to the sweep.
"""

import logging
from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.execution.defining.creating import BenchmarkError, BenchmarkOptions, create_benchmark
from apps.execution.defining.questions import QUESTIONS, Question, Unanswerable
from apps.execution.launching import launch
from apps.mappings.checking import require_found
from apps.mappings.creating import create_mapping, find_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale, resolve
from apps.operations.models import Operation
from apps.records.models import Benchmark, Preparation
from apps.retrieval.grids import Grid, make_grid
from apps.retrieval.models import Index
from benchbench.database.failures import DeadlockError, LockedError, find_failure, was_ended
from benchbench.errors import BenchbenchError, error_text
from benchbench.ir.encoding import EncoderParameters
from benchbench.names import MAX_LENGTH

log = logging.getLogger(__name__)
NEEDED = (  # permissions of who has it done with new files
    *("collections.add_collection", "datasets.add_dataset", "mappings.add_mapping"),
    *("retrieval.add_index", "benchmarks.add_benchmark"),
)


def prepare(
    dataset: Dataset, collection: Collection, question: Question, *, encoder: tuple[str, EncoderParameters], by: User
) -> Benchmark | Preparation:
    """Map a dataset to a collection, build the indexes that a question compares, and start its benchmark.

    Returns the benchmark if all was ready, otherwise the preparation that waits: a new one, or that of the user's equal
    call before. The mapping stays on an error. Raises the errors of `resolve`, `make_grid`, `create_benchmark` and
    `launch`, and ConflictError if no judgment finds a document.
    """
    with transaction.atomic():
        mapping = find_mapping(dataset, collection, owner=by) or create_mapping(dataset, collection, owner=by)
        resolving = _resolve(mapping, by)
    if resolving is None:
        mapping.refresh_from_db()
        require_found(mapping)
    with transaction.atomic():
        builds = make_grid(collection, Grid(question.strategies, [encoder]), owner=by, by=by)
        indexes = [build.index for build in builds]
        if _lock_active([resolving, *(build.operation for build in builds)]):
            preparation, _ = Preparation.objects.update_or_create(
                {"error": ""},
                started_by=by,
                mapping=mapping,
                question=question.key,
                index_ids=[index.pk for index in indexes],
                benchmark=None,
            )
            return preparation
    return _start(question, mapping, indexes, by)


def _resolve(mapping: Mapping, by: User) -> Operation | None:
    """Return the operation that resolves a mapping; None if it is resolved, perhaps just now."""
    if mapping.status != Mapping.Status.PENDING and not is_stale(mapping):
        return None
    return Operation.active_on(mapping) or resolve(mapping, by=by).operation


def _lock_active(operations: Iterable[Operation | None]) -> bool:
    """Lock operations, so that none completes before this transaction. Return whether one of them has not ended."""
    ids = [operation.pk for operation in operations if operation]
    locked = Operation.objects.filter(pk__in=ids).order_by("pk").select_for_update()
    return any(operation.is_active for operation in locked)


@transaction.atomic
def _start(question: Question, mapping: Mapping, indexes: list[Index], by: User) -> Benchmark:
    mapping.refresh_from_db()
    matrix = question.build(indexes)
    if isinstance(matrix, Unanswerable):
        raise BenchmarkError(matrix.problem)
    name = f"{mapping.dataset}: {question.title}"[:MAX_LENGTH]
    about = mapping.dataset.description  # also how its references were read
    options = BenchmarkOptions(name=name, matrix=matrix, execution=question.execution, description=about)
    benchmark = create_benchmark(mapping, options, owner=by, indexes={index.name: index for index in indexes})
    launch(benchmark, by=by)
    return benchmark


def load_indexes(preparation: Preparation) -> list[Index]:
    """Return the indexes of a preparation that still exist."""
    return list(Index.objects.filter(pk__in=preparation.index_ids).select_related("chunk_set", "collection"))


def find_preparation(index: Index, user: User) -> Preparation | None:
    """Return the newest preparation of `user` that waits for an index, or None."""
    waiting = Preparation.objects.filter(benchmark=None, started_by=user, index_ids__contains=[index.pk])
    return waiting.order_by("-created_at").first()


def proceed(operation: Operation, **_: object) -> None:
    """Start the benchmarks that wait for `operation`, once, if nothing else is missing. Store errors in their rows.

    Receives the signal `completed`, in the transaction that completes the operation. Raises an error of the database if
    a lock was not released in time or the connection broke, so that the operation completes later.
    """
    subject = Q(mapping=operation.subject_id) | Q(index_ids__contains=[operation.subject_id])
    waiting = Preparation.objects.filter(subject, benchmark=None, started_by__is_active=True)
    for preparation in waiting.order_by("pk").select_for_update(of=("self",)).select_related("mapping", "started_by"):
        indexes = load_indexes(preparation)
        if not _is_ready(preparation, indexes):
            continue
        try:
            preparation.benchmark = _start(
                QUESTIONS[preparation.question], preparation.mapping, indexes, preparation.started_by
            )
            preparation.error = ""
        except Exception as error:
            if was_ended(error) or isinstance(find_failure(error), DeadlockError | LockedError):
                raise
            if not isinstance(error, BenchbenchError):
                log.exception("Could not start the benchmark that waits for %s.", operation)
            preparation.error = error_text(error)
        preparation.save()


def _is_ready(preparation: Preparation, indexes: list[Index]) -> bool:
    """Return whether the mapping is resolved, is not being resolved again, and every index is ready."""
    mapping = preparation.mapping
    updating = is_stale(mapping) and Operation.active_on(mapping)
    resolved = mapping.status != Mapping.Status.PENDING and not updating
    ready = [index for index in indexes if index.status == Index.Status.READY]
    return bool(resolved and len(ready) == len(preparation.index_ids))
