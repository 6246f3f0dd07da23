"""Metrics of a site in the text format of Prometheus: gauges of queues and tables, and counters.

The counters are in Redis, since the counting processes start and end at any time. They serve alarms and graphs only:
counts are lost while Redis is unreachable and when it is emptied.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.db.models import Count
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from apps.operations.models import Batch, Operation, Status
from apps.operations.queueing import connect, find_workers, open_queue

KEY = "benchbench:counters"
BATCH_SECONDS = "benchbench_batch_seconds"
ENDS = ("0.1", "1.0", "5.0", "10.0", "30.0", "60.0", "300.0", "3600.0", "+Inf")  # upper bounds of batch time buckets
COUNTERS = {
    "benchbench_batches": ("Batches that workers have finished or given back.", ("kind", "outcome")),
    "benchbench_vector_lookups": ("Requested vectors, found in the cache or encoded.", ("of", "result")),
    "benchbench_server_errors": ("Requests that ended in a server error.", ()),
}


def count_batch(kind: str, outcome: str, seconds: float) -> None:
    """Count a batch by `outcome` (done, failed, stopped or given back) and the `seconds` it took."""
    bucket = next(end for end in ENDS if seconds <= float(end))
    classes = {(f"{BATCH_SECONDS}_bucket", kind, bucket): 1, (f"{BATCH_SECONDS}_sum", kind): seconds}
    count({("benchbench_batches", kind, outcome): 1, **classes})


def count_vectors(kind: str, *, cached: int, encoded: int) -> None:
    """Count vectors of `kind`, queries or documents: those found in the cache and those encoded."""
    count({("benchbench_vector_lookups", kind, "hit"): cached, ("benchbench_vector_lookups", kind, "miss"): encoded})


def count(increments: dict[tuple[str, ...], float]) -> None:
    """Increase counters, by name and label values."""
    with suppress(RedisError):
        pipeline = connect().pipeline(transaction=False)
        for labels, number in increments.items():
            if number:
                pipeline.hincrbyfloat(KEY, "\t".join(labels), number)
        pipeline.execute()


def load_counts() -> dict[tuple[str, ...], float]:
    """Return all counters by name and label values. Raises RedisError."""
    stored: Any = connect().hgetall(KEY)
    return {tuple(str(field, "utf-8").split("\t")): float(value) for field, value in sorted(stored.items())}


class SiteCollector(Collector):
    """A collector of the current sizes of queues and tables, and of the counters of all processes of the site."""

    def collect(self) -> Iterator[Metric]:
        jobs = [((queue,), len(open_queue(queue))) for queue in settings.RQ_QUEUES]
        yield _build_gauge("benchbench_queue_jobs", "Jobs waiting in a queue.", ["queue"], jobs)
        workers = [((queue,), len(find_workers(queue))) for queue in settings.RQ_QUEUES]
        yield _build_gauge("benchbench_workers", "Workers that serve a queue.", ["queue"], workers)
        work = Operation.objects.values_list("kind", "status").annotate(Count("pk")).order_by()
        yield _build_gauge(
            "benchbench_operations", "Operations.", ["kind", "status"], (((k, s), n) for k, s, n in work)
        )
        active = Batch.objects.filter(operation__status__in=Status.active()).exclude(state=Batch.State.DONE)
        left = active.values_list("operation__kind", "state").annotate(Count("pk")).order_by()
        text = "Unfinished batches of active operations."
        yield _build_gauge("benchbench_batches_left", text, ["kind", "state"], (((k, s), n) for k, s, n in left))
        yield from _collect_counters()


def build_registry() -> CollectorRegistry:
    """Return the metrics of the site and of this process (memory, CPU, open files)."""
    site_registry = CollectorRegistry()
    site_registry.register(SiteCollector())
    ProcessCollector(registry=site_registry)
    return site_registry


def _build_gauge(name: str, text: str, labels: list[str], rows: Iterable[tuple[Sequence[str], float]]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=labels)
    for values, number in rows:
        gauge.add_metric(values, number)
    return gauge


def _collect_counters() -> Iterator[Metric]:
    totals = load_counts()
    for name, (text, labels) in COUNTERS.items():
        counter = CounterMetricFamily(name, text, labels=labels)
        for (counter_name, *values), number in totals.items():
            if counter_name == name:
                counter.add_metric(values, number)
        yield counter
    times = HistogramMetricFamily(BATCH_SECONDS, "Seconds that a worker spent on a batch.", labels=["kind"])
    for (counter_name, *values), total in totals.items():
        if counter_name == f"{BATCH_SECONDS}_sum":
            up_to = accumulate(totals.get((f"{BATCH_SECONDS}_bucket", *values, end), 0.0) for end in ENDS)
            times.add_metric(values, list(zip(ENDS, up_to, strict=True)), total)
    yield times
