"""Provisional sums of a benchmark's runs: those of its batches that are done, in one row, and of running ones."""

from collections.abc import Mapping

from django.db.models import Func, IntegerField, QuerySet, Sum

from apps.operations.models import Batch, Operation
from apps.records.models import Benchmark, MeansSoFar
from apps.records.models.batches import filter_preparing, read_shares
from apps.records.models.progress import RunShare, RunSums
from apps.records.planning import plan_of
from benchbench.ir.planning.stages import RerankStage

AT_ONCE = 20  # batches whose results are in memory at a time


def load_progress(operation: Operation, total: int) -> tuple[int, dict[str, RunSums]]:
    """Return the number of queries of `total` answered before an operation, and the sums of its batches by run id.

    Reports of running batches count only while the operation is active: afterwards only done batches have rankings.
    Results of done batches are read only if the row does not cover them: after a version that wrote none, or because
    two batches committed at once.
    """
    row = MeansSoFar.objects.filter(operation=operation.pk).first() or MeansSoFar(operation=operation)
    sums = _add_missing(row, operation, total)
    if operation.is_active:
        _add_results(sums, operation.batches.filter(state=Batch.State.RUNNING))
    return row.answered_before or 0, sums


def add_shares(batch: Batch, shares: Mapping[str, RunShare], total: int) -> None:
    """Add the shares of a batch that is about to be done to the row of its operation, in the same transaction.

    It waits for no lock: a later batch adds the shares of one that found the row locked.
    """
    rows = MeansSoFar.objects.select_for_update(skip_locked=True).filter(operation=batch.operation_id)
    if (row := rows.first()) is None:
        return
    sums = _add_missing(row, batch.operation, total)
    _add_shares(sums, shares)
    row.batch_ids.append(batch.pk)
    row.store_sums(sums)


def _add_missing(row: MeansSoFar, operation: Operation, total: int) -> dict[str, RunSums]:
    """Return the sums of a row with those of the done batches that it does not cover, and let it cover them."""
    if row.answered_before is None:
        row.answered_before = _count_answered(operation, total)
    missing = operation.batches.filter(state=Batch.State.DONE).exclude(pk__in=row.batch_ids)
    sums = row.read_sums()
    row.batch_ids += _add_results(sums, missing)
    return sums


def _count_answered(operation: Operation, total: int) -> int:
    """Return the number of queries with results from before an operation: those in none of its batches."""
    if is_preparing(operation):  # the batches of queries do not exist yet
        return 0
    lengths = Func("payload__query_ids", function="jsonb_array_length", output_field=IntegerField())
    # Runs with a rate have batches of their own, of the same queries.
    by_runs = operation.batches.filter(payload__has_key="query_ids").order_by().values("payload__runs")
    return total - max(by_runs.annotate(number=Sum(lengths)).values_list("number", flat=True), default=0)


def is_preparing(operation: Operation) -> bool:
    """Return whether the batch that makes the missing indexes is not done."""
    return filter_preparing(operation).exclude(state=Batch.State.DONE).exists()


def describe_reranking(benchmark: Benchmark) -> str:
    """Return how far the rerankers are: "reranking 3,200 of at most 18,000 pairs"; "" without rerankers.

    Pairs that several lists share are scored once, so the number may end below the limit.
    """
    runs = list(benchmark.runs.select_related("index").order_by("run_order"))
    depths: dict[tuple[str | None, str, str], int] = {}
    for stage in plan_of(runs).stages:
        if isinstance(stage, RerankStage):
            key = stage.index, stage.source, stage.reranker
            depths[key] = max(depths.get(key, 0), stage.depth)
    if not depths:
        return ""
    limit = sum(depths.values()) * benchmark.dataset_version.query_count
    pairs = Func("positions", function="cardinality", output_field=IntegerField())
    scored = benchmark.pair_lists.aggregate(pairs=Sum(pairs, default=0))["pairs"]
    return f"reranking {scored:,} of at most {limit:,} pairs"


def _add_results(sums: dict[str, RunSums], batches: QuerySet[Batch]) -> list[int]:
    """Add the shares in the results of batches, and return their ids."""
    added = []
    for batch_id, runs in batches.order_by("pk").values_list("pk", "result__runs").iterator(chunk_size=AT_ONCE):
        _add_shares(sums, read_shares(runs))
        added.append(batch_id)
    return added


def _add_shares(sums: dict[str, RunSums], shares: Mapping[str, RunShare]) -> None:
    for run_id, share in shares.items():
        sums.setdefault(run_id, RunSums()).add(share)
