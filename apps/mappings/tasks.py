"""Resolution on the queue.

One batch does all the work, so that one transaction replaces the old resolutions and readers never see a mixture.
Several batches would need a table for interim verdicts and write everything twice. 100,000 judgments take about 5 s,
as long as a batch should. The batch looks up chunk by chunk, reports progress and can stop between chunks. It then
writes everything at once. If a worker dies before that, the old resolutions stay.
"""

from collections import Counter
from typing import Any

from apps.mappings.models import Mapping, Resolution
from apps.mappings.resolving import Ruling, compute_rulings, list_judgments, load_basis, store_rulings
from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation, Status
from apps.operations.progress import build_common_fields

Outcome = Resolution.Outcome


class ResolveHandler(Handler):
    """The work of a `resolve` operation; its subject is a mapping."""

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

    def build_event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        mapping = Mapping.objects.filter(pk=operation.subject_id).first()
        batch = operation.batches.first()
        refs = batch.payload["refs"] if batch else 0
        reported = batch.result if batch else {}
        fields = {
            name: reported.get(name, value) for name, value in _build_progress("starting", refs, Counter()).items()
        }
        if not operation.is_active:
            fields["stage"] = "completed" if operation.status == Status.COMPLETED else "failed"
        return "benchmark_mapping_resolution_progress", {
            **build_common_fields(operation),
            "mapping_id": str(operation.subject_id),
            "dataset_id": str(mapping.dataset_id) if mapping else None,
            "collection_id": str(mapping.collection_id) if mapping else None,
            **fields,
        }


def _build_progress(stage: str, total: int, tally: Counter[Outcome]) -> dict[str, Any]:
    return {
        "stage": stage,
        "total_refs": total,
        "processed_refs": tally.total(),
        "resolved_refs": tally[Outcome.RESOLVED],
        "ambiguous_refs": tally[Outcome.AMBIGUOUS],
        "unresolved_refs": tally[Outcome.NOT_FOUND] + tally[Outcome.INVALID_REF],
    }


handler = ResolveHandler()
