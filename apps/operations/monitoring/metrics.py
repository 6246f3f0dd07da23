"""Metrics of a site in the text format of Prometheus, read from the database and Redis when they are asked for."""

from collections import defaultdict
from collections.abc import Iterator

import django_rq
from django.conf import settings
from django.db.models import Count
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from apps.operations.models import Batch, Operation, Status
from apps.operations.monitoring import counters
from apps.operations.queueing import workers_on


class SiteCollector(Collector):
    """What stands in the queues and the tables now, and what the processes of the site have counted."""

    def collect(self) -> Iterator[Metric]:
        yield from _queues()
        yield from _work()
        yield from _counters()


def registry() -> CollectorRegistry:
    """The metrics of the site, and those of the process that is asked (memory, CPU, open files)."""
    of_site = CollectorRegistry()
    of_site.register(SiteCollector())
    ProcessCollector(registry=of_site)
    return of_site


def _queues() -> Iterator[Metric]:
    jobs = GaugeMetricFamily("benchbench_queue_jobs", "Jobs that wait in a queue.", labels=["queue"])
    workers = GaugeMetricFamily("benchbench_workers", "Workers that serve a queue.", labels=["queue"])
    for queue in settings.RQ_QUEUES:
        jobs.add_metric([queue], len(django_rq.get_queue(queue)))
        workers.add_metric([queue], len(workers_on(queue)))
    yield jobs
    yield workers


def _work() -> Iterator[Metric]:
    operations = GaugeMetricFamily("benchbench_operations", "Operations.", labels=["kind", "status"])
    for kind, status, number in Operation.objects.values_list("kind", "status").annotate(Count("pk")).order_by():
        operations.add_metric([kind, status], number)
    yield operations
    batches = GaugeMetricFamily(
        "benchbench_batches_left", "Batches that are not done, of operations that go on.", labels=["kind", "state"]
    )
    active = Batch.objects.filter(operation__status__in=Status.active()).exclude(state=Batch.State.DONE)
    for kind, state, number in active.values_list("operation__kind", "state").annotate(Count("pk")).order_by():
        batches.add_metric([kind, state], number)
    yield batches


def _counters() -> Iterator[Metric]:
    counts: dict[str, dict[counters.Labels, float]] = defaultdict(dict)
    for name, labels, value in counters.counted():
        counts[name][labels] = value
    for name, text, names in (
        (counters.BATCHES, "Batches that a worker has left.", ["kind", "outcome"]),
        (counters.VECTORS, "Vectors that were wanted: in the cache, or encoded.", ["of", "result"]),
        (counters.SERVER_ERRORS, "Requests that ended in an error of the site.", []),
    ):
        counter = CounterMetricFamily(name, text, labels=names)
        for values, number in counts[name].items():
            counter.add_metric(values, number)
        yield counter
    yield _batch_seconds(counts)


def _batch_seconds(counts: dict[str, dict[counters.Labels, float]]) -> Metric:
    times = HistogramMetricFamily(counters.BATCH_SECONDS, "Seconds that a worker was at a batch.", labels=["kind"])
    for (kind,), total in counts[f"{counters.BATCH_SECONDS}_sum"].items():
        up_to, buckets = 0.0, []
        for end in (*map(str, counters.SECONDS), "+Inf"):
            up_to += counts[f"{counters.BATCH_SECONDS}_bucket"].get((kind, end), 0.0)
            buckets.append((end, up_to))
        times.add_metric([kind], buckets, total)
    return times
