"""The times of a run as `Run.timing` stores them, read as a record."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from benchbench.reading.objects import Listed, StrictRecord, read_as

TIMINGS = ("rewrite_ms", "encode_ms", "search_ms", "fuse_ms", "rerank_ms", "total_ms")
Statistics = dict[str, float]  # milliseconds by name: mean, p50, p95, p99, max


@dataclass(frozen=True, slots=True)
class LoopRecall(StrictRecord):
    """The mean recall at k over the answers of an open loop."""

    k: int
    mean: float
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop(StrictRecord):
    """The open loops of a run: requests per second offered and achieved, and the milliseconds of an answer.

    A latency counts from when a request was due, and is its waiting plus its service. Single answers have no rate
    `achieved`. `recall` has an entry for each k, the smallest first.
    """

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    offered: float = 0.0
    threads: int = 1
    latency_ms: Statistics = field(default_factory=dict)
    service_ms: Statistics = field(default_factory=dict)
    waiting_ms: Statistics = field(default_factory=dict)
    requests: int = 0
    failed: int = 0
    unsent: int = 0
    achieved: float | None = None
    recall: Listed[LoopRecall] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing(StrictRecord):
    """Means in milliseconds per query over `samples` searches that did not fail; all None before a run ends.

    `execution` is "shared" or "isolated". Isolated execution has `percentiles` of single searches by the name of the
    time, and with repetitions the share of queries with equal rankings. With an `open_loop` the total is its latency.
    """

    IGNORES_OTHERS: ClassVar[bool] = True

    samples: int | None = None
    execution: str | None = None
    rewrite_ms: float | None = None
    encode_ms: float | None = None
    search_ms: float | None = None
    fuse_ms: float | None = None
    rerank_ms: float | None = None
    total_ms: float | None = None
    percentiles: dict[str, Statistics] | None = None
    consistency_score: float | None = None
    open_loop: OpenLoop | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Timing":
        """Return the times that `as_dict` wrote."""
        return read_as(cls, data)

    def as_dict(self) -> dict[str, object]:
        """Return the JSON to store: without what was not measured."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def is_shared(self) -> bool:
        """Return whether a time is a share of that of a stage for several queries and all runs that need it."""
        return self.execution == "shared"

    def get_mean(self, name: str) -> float | None:
        """Return the mean with one of the names in TIMINGS."""
        ms: float | None = getattr(self, name)
        return ms

    def get_percentiles(self, name: str) -> Statistics:
        """Return the percentiles of a time in TIMINGS, by name; empty unless single searches were timed."""
        return (self.percentiles or {}).get(name, {})

    @property
    def total_percentiles(self) -> Statistics:
        return self.get_percentiles("total_ms")

    @property
    def typical_search_ms(self) -> float | None:
        """Return what `name_search_ms` names: a median without encoding, the median latency, or a mean of shared costs.

        None if no search was timed.
        """
        if self.is_shared:
            return self.search_ms
        return self.get_percentiles("total_ms" if self.open_loop else "search_ms").get("p50")

    @property
    def cost_ms(self) -> int | None:
        """Return the total time of a run's successful searches, as if it were alone, in whole milliseconds.

        None if no search was timed. A run has no wall-clock time, because the runs of a benchmark work together. Under
        a rate these are the service times of all answers, since waiting costs nothing.
        """
        mean = self.total_ms
        if mean is not None and self.open_loop:
            mean = self.open_loop.service_ms.get("mean")
        return None if mean is None or self.samples is None else round(mean * self.samples)
