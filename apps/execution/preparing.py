"""Preparation of a benchmark from a dataset and a collection: mapping and indexes first, then the benchmark starts.

The operations that make them name the first of them, the lead, in their parameters; the lead's name the rest. The
transaction that completes the last one starts the benchmark, so that a killed worker leaves both to the sweep.
"""

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.execution.defining.creating import BenchmarkError, BenchmarkOptions, create_benchmark, require_found
from apps.execution.defining.questions import QUESTIONS, Question, Unanswerable
from apps.execution.launching import launch
from apps.mappings.creating import create_mapping, find_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale, resolve
from apps.operations.models import Operation
from apps.records.models import Benchmark
from apps.retrieval.grids import Grid, make_grid
from apps.retrieval.models import Index
from benchbench.database.failures import DeadlockError, LockedError, find_failure, read_again, was_ended
from benchbench.errors import BenchbenchError, ConflictError, error_text
from benchbench.ir.encoding import DEFAULT
from benchbench.names import MAX_LENGTH

log = logging.getLogger(__name__)
PREPARATION = "preparation"  # in the parameters of an operation that a benchmark waits for


@dataclass(frozen=True, slots=True)
class Preparation:
    """The parts of a benchmark in preparation for `user`; `error` is the reason why it could not start."""

    user: User
    mapping: Mapping
    indexes: list[Index]
    question: Question
    benchmark: Benchmark | None
    error: str

    @property
    def is_ready(self) -> bool:
        """Return whether the mapping is resolved, is not being resolved again, and every index is ready."""
        updating = is_stale(self.mapping) and Operation.active_on(self.mapping)
        resolved = self.mapping.status != Mapping.Status.PENDING and not updating
        return resolved and all(index.status == Index.Status.READY for index in self.indexes)


def prepare(
    dataset: Dataset, collection: Collection, question: Question, *, encoder: str, by: User
) -> Benchmark | Operation:
    """Map a dataset to a collection, build the indexes that a question compares, and start its benchmark.

    Returns the benchmark if all was ready, otherwise the lead of the operations that it waits for. The mapping stays on
    an error. Raises the errors of `resolve`, `make_grid`, `create_benchmark` and `launch`, and ConflictError if no
    judgment finds a document or another preparation waits for one of the operations.
    """
    with transaction.atomic():
        mapping = find_mapping(dataset, collection, owner=by) or create_mapping(dataset, collection, owner=by)
        resolving = _resolve(mapping, by)
    if resolving is None:
        mapping.refresh_from_db()
        require_found(mapping)
    with transaction.atomic():
        builds = make_grid(collection, Grid(question.strategies, [(encoder, DEFAULT)]), owner=by, by=by)
        indexes = [build.index for build in builds]
        if active := _lock_active([resolving, *(build.operation for build in builds)]):
            for operation in active[1:]:
                _store(operation, {"lead": str(active[0].pk)})
            index_ids = [str(index.pk) for index in indexes]
            plan = {"question": question.key, "mapping": str(mapping.pk), "indexes": index_ids, "by": by.pk}
            _store(active[0], plan)
            return active[0]
    return _start(question, mapping, indexes, by)


def _resolve(mapping: Mapping, by: User) -> Operation | None:
    """Return the operation that resolves a mapping; None if it is resolved, perhaps just now."""
    if mapping.status != Mapping.Status.PENDING and not is_stale(mapping):
        return None
    return Operation.active_on(mapping) or resolve(mapping, by=by).operation


def _lock_active(operations: Iterable[Operation | None]) -> list[Operation]:
    """Lock operations, and return those that have not ended. Raises ConflictError if a benchmark waits for one.

    It waits for no second row of another preparation, whose end locks the lead last.
    """
    active = []
    for operation in filter(None, operations):
        locked = read_again(Operation.objects.select_for_update(), operation.pk)
        if locked.is_active and PREPARATION in locked.parameters:
            raise ConflictError(f"Another benchmark waits for the same {locked}: start this one afterwards.")
        active += [locked] if locked.is_active else []
    return active


def _store(operation: Operation, parameters: dict[str, Any]) -> None:
    operation.parameters |= {PREPARATION: parameters}
    Operation.objects.filter(pk=operation.pk).update(parameters=operation.parameters)


@transaction.atomic
def _start(question: Question, mapping: Mapping, indexes: list[Index], by: User) -> Benchmark:
    mapping.refresh_from_db()
    matrix = question.build(indexes)
    if isinstance(matrix, Unanswerable):
        raise BenchmarkError(matrix.problem)
    name = f"{mapping.dataset}: {question.title}"[:MAX_LENGTH]
    options = BenchmarkOptions(name=name, matrix=matrix, execution=question.execution)
    benchmark = create_benchmark(mapping, options, owner=by, indexes={index.name: index for index in indexes})
    launch(benchmark, by=by)
    return benchmark


def load_preparation(lead: Operation) -> Preparation | None:
    """Return the preparation that an operation leads; None if it leads none, or a part of it was deleted."""
    plan = lead.parameters.get(PREPARATION, {})
    mappings = Mapping.objects.select_related("dataset", "collection", "dataset_version")
    mapping = mappings.filter(pk=plan.get("mapping")).first()
    user = User.objects.filter(pk=plan.get("by"), is_active=True).first()
    if mapping is None or user is None:
        return None
    indexes = list(Index.objects.filter(pk__in=plan["indexes"]).select_related("chunk_set", "collection"))
    benchmark = Benchmark.objects.filter(pk=plan.get("benchmark")).first()
    if len(indexes) < len(plan["indexes"]) or ("benchmark" in plan and benchmark is None):
        return None
    return Preparation(user, mapping, indexes, QUESTIONS[plan["question"]], benchmark, plan.get("error", ""))


def find_lead(index: Index, user: User) -> uuid.UUID | None:
    """Return the id of the operation that leads the newest preparation of `user` with an index; None without one."""
    rows = Operation.objects.filter(subject_id=index.pk, parameters__has_key=PREPARATION).order_by("-created_at")
    operation = rows.first()
    if operation is None:
        return None
    plan = operation.parameters[PREPARATION]
    lead = operation if "by" in plan else Operation.objects.filter(pk=plan["lead"]).first()
    return lead.pk if lead and lead.parameters.get(PREPARATION, {}).get("by") == user.pk else None


def proceed(operation: Operation, **_: Any) -> None:
    """Start the benchmark that waits for `operation`, once, if nothing else is missing. Store an error in the lead.

    Receives the signal `completed`, in the transaction that completes the operation. Raises an error of the database if
    a lock was not released in time or the connection broke, so that the operation completes later.
    """
    if PREPARATION not in operation.parameters:
        return
    lead_id = operation.parameters[PREPARATION].get("lead", str(operation.pk))
    lead = Operation.objects.select_for_update().filter(pk=uuid.UUID(lead_id)).first()
    preparation = load_preparation(lead) if lead else None
    if lead is None or preparation is None or preparation.benchmark or not preparation.is_ready:
        return
    plan = lead.parameters[PREPARATION]
    try:
        benchmark = _start(preparation.question, preparation.mapping, preparation.indexes, preparation.user)
        plan |= {"benchmark": str(benchmark.pk), "error": ""}
    except Exception as error:
        if was_ended(error) or isinstance(find_failure(error), DeadlockError | LockedError):
            raise
        if not isinstance(error, BenchbenchError):
            log.exception("Could not start the benchmark that waits for %s.", operation)
        plan["error"] = error_text(error)
    _store(lead, plan)
