"""Counters that all processes of a site share: in Redis, since they begin and end at any time.

They serve alarms and graphs. No result is made of them, and a Redis that is away or was emptied costs some counts.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import django_rq
from redis.exceptions import RedisError

KEY = "benchbench:counters"
SECONDS = (0.1, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)  # upper ends of the classes of batch times

BATCHES = "benchbench_batches"
BATCH_SECONDS = "benchbench_batch_seconds"
VECTORS = "benchbench_vector_lookups"
SERVER_ERRORS = "benchbench_server_errors"

Labels = tuple[str, ...]


class Count(NamedTuple):
    """A counter, with the values of its labels, and what it counted."""

    name: str
    labels: Labels
    value: float


def count_batch(kind: str, outcome: str, seconds: float) -> None:
    """Count a batch that a worker has left, `outcome` being done, failed, stopped or given back; `seconds` it took."""
    bucket = next((str(end) for end in SECONDS if seconds <= end), "+Inf")
    _add(
        Count(BATCHES, (kind, outcome), 1),
        Count(f"{BATCH_SECONDS}_bucket", (kind, bucket), 1),
        Count(f"{BATCH_SECONDS}_sum", (kind,), seconds),
    )


def count_vectors(of: str, *, cached: int, encoded: int) -> None:
    """Count the vectors `of` queries or documents that the cache had, and those that were encoded."""
    _add(Count(VECTORS, (of, "hit"), cached), Count(VECTORS, (of, "miss"), encoded))


def count_server_error() -> None:
    """Count a request that ended in an error of the site."""
    _add(Count(SERVER_ERRORS, (), 1))


def counted() -> Iterator[Count]:
    """Every counter. Raises RedisError."""
    stored: Any = django_rq.get_connection("default").hgetall(KEY)
    for field, value in sorted((str(field, "utf-8"), float(value)) for field, value in stored.items()):
        name, *labels = field.split("\t")
        yield Count(name, tuple(labels), value)


def _add(*counts: Count) -> None:
    with suppress(RedisError):
        _write(counts)


def _write(counts: Iterable[Count]) -> None:
    together = django_rq.get_connection("default").pipeline(transaction=False)
    for count in counts:
        if count.value:
            together.hincrbyfloat(KEY, "\t".join((count.name, *count.labels)), count.value)
    together.execute()
