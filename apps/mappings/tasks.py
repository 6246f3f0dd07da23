"""Resolution on the queue.

One batch does all the work, so that one transaction replaces the old resolutions and readers never see a mixture.
Several batches would need a table for interim verdicts and write everything twice. 100,000 judgments take about 5 s,
as long as a batch should. The batch looks up chunk by chunk, reports progress and can stop between chunks. It then
writes everything at once. If a worker dies before that, the old resolutions stay.
"""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from apps.mappings.models import Mapping, Resolution
from apps.mappings.resolving import Ruling, compute_rulings, list_judgments, load_basis, store_rulings
from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation, Status
from apps.operations.progress import build_common_fields
from benchbench.reading.objects import StrictRecord, read_as

Outcome = Resolution.Outcome


@dataclass(frozen=True, slots=True)
class ResolvingProgress(StrictRecord):
    """The result of the batch, from its start on."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    stage: str = "starting"
    total_refs: int = 0
    processed_refs: int = 0
    resolved_refs: int = 0
    ambiguous_refs: int = 0
    unresolved_refs: int = 0


@dataclass(frozen=True, slots=True)
class ResolvingBatch(StrictRecord):
    """The work of the batch: the number of references to resolve."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    refs: int = 0


class ResolveHandler(Handler):
    """The work of a `resolve` operation; its subject is a mapping."""

    kind = Operation.Kind.RESOLVE
    subject = Mapping
    busy = "mappings being resolved"
    units = "judgments"
    limit = "BENCHMARK_MAX_RESOLVING_PER_USER"

    def perform(self, batch: Batch, lease: Lease) -> None:
        mapping = Mapping.objects.get(pk=batch.operation.subject_id)
        basis = load_basis(mapping)
        tally: Counter[Outcome] = Counter()
        chunks: list[list[Ruling]] = []
        total = list_judgments(basis).count()
        lease.report(0, _build_progress("loading_documents", total, tally), always=True)
        for chunk in compute_rulings(mapping, basis):
            lease.check()
            chunks.append(chunk)
            tally.update(verdict.outcome for *_, until, verdict in chunk if until is None)
            lease.report(tally.total(), _build_progress("resolving", total, tally), always=len(chunks) == 1)
        finalizing = _build_progress("finalizing", total, tally)
        lease.report(total, finalizing, always=True)
        with lease.commit(finalizing):
            store_rulings(mapping, basis, chunks)

    def finalise(self, operation: Operation) -> None:
        """Do nothing: the batch's transaction has updated the mapping."""

    def stop(self, operation: Operation) -> None:
        """Do nothing: the mapping keeps its old resolutions until the batch commits."""

    def find_stage(self, operation: Operation) -> str:
        return _read_progress(operation).stage

    def build_event(self, operation: Operation) -> tuple[str, dict[str, object]]:
        mapping = Mapping.objects.filter(pk=operation.subject_id).first()
        return "benchmark_mapping_resolution_progress", {
            **build_common_fields(operation),
            "mapping_id": str(operation.subject_id),
            "dataset_id": str(mapping.dataset_id) if mapping else None,
            "collection_id": str(mapping.collection_id) if mapping else None,
            **asdict(_read_progress(operation)),
        }


def _read_progress(operation: Operation) -> ResolvingProgress:
    batch = operation.batches.first()
    reported = ResolvingProgress(total_refs=read_as(ResolvingBatch, batch.payload).refs if batch else 0)
    if batch and batch.result:
        reported = read_as(ResolvingProgress, batch.result)
    if operation.is_active:
        return reported
    return replace(reported, stage="completed" if operation.status == Status.COMPLETED else "failed")


def _build_progress(stage: str, total: int, tally: Counter[Outcome]) -> dict[str, object]:
    unresolved = tally[Outcome.NOT_FOUND] + tally[Outcome.INVALID_REF]
    counts = (tally.total(), tally[Outcome.RESOLVED], tally[Outcome.AMBIGUOUS], unresolved)
    return asdict(ResolvingProgress(stage, total, *counts))
