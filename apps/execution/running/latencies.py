"""Open loops: requests due at fixed times, not after answers, and their latencies as histograms of batches."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from hdrh.histogram import HdrHistogram

from apps.engines.pacing import LEAST_SECONDS, PATIENCE_SECONDS, compute_loop_limit, count_requests
from apps.execution.running.timing import list_ranks
from apps.records.models.timing import LoopRecall, OpenLoop, Statistics

LATENCIES = "latencies"  # notes of a run: one record for each open loop
TIMES = ("latency", "service", "waiting")
LONGEST_US, DIGITS = 3_600_000_000, 3  # range of a histogram in microseconds, and its significant digits


@dataclass(frozen=True, slots=True)
class Loop:
    """An open loop of a run. `schedule` has the query of each request by position; request i is due at i / rate s.

    Every query is sent once before any is sent again.
    """

    run_key: str
    rate: float
    schedule: Sequence[int]

    @classmethod
    def build(cls, run_key: str, rate: float, queries: int, *, seed: str) -> "Loop":
        """Return the loop of some queries, of at least LEAST_SECONDS."""
        chance, length = random.Random(seed), count_requests(queries, rate, LEAST_SECONDS)
        rounds = (chance.sample(range(queries), queries) for _ in range(-(-length // queries)))
        return cls(run_key, rate, list(islice((number for each in rounds for number in each), length)))

    @property
    def limit(self) -> float:
        """Return the seconds after which nothing more is sent."""
        return compute_loop_limit(len(self.schedule), self.rate, PATIENCE_SECONDS)


class Timed(NamedTuple):
    """An answered request: milliseconds before and after it was sent, and when its answer came, in seconds."""

    waiting_ms: float
    service_ms: float
    ended: float


def build_record(loop: Loop, answered: Sequence[Timed], *, sent: int, threads: int) -> dict[str, object]:
    """Return the latencies of a loop as HDR histograms in base64, with what its rates are computed from."""
    histograms = {name: HdrHistogram(1, LONGEST_US, DIGITS) for name in TIMES}
    for timed in answered:
        values = (timed.waiting_ms + timed.service_ms, timed.service_ms, timed.waiting_ms)
        for name, ms in zip(TIMES, values, strict=True):
            histograms[name].record_value(max(1, min(round(ms * 1000), LONGEST_US)))
    ends = [timed.ended for timed in answered] or [0.0]
    counts = {"answered": len(answered), "failed": sent - len(answered), "unsent": len(loop.schedule) - sent}
    facts = {"offered": loop.rate, "threads": threads, "seconds": max(ends) - min(ends), **counts}
    return {name: histogram.encode().decode() for name, histogram in histograms.items()} | facts


def merge_records(records: Sequence[Mapping[str, Any]]) -> OpenLoop:
    """Return the mean, `list_ranks` and the maximum in milliseconds of each time of a run's open loops.

    They are over all answers of all batches; a histogram rounds them, by at most 0.1 %. `achieved` is the rate of the
    answers from the first to the last of each loop, so that it does not depend on how long one takes; None for single
    answers. `recall` is over the answers.
    """
    statistics: dict[str, Statistics] = {}
    for name in TIMES:
        total = HdrHistogram(1, LONGEST_US, DIGITS)
        for record in records:
            total.decode_and_add(record[name])
        ranks = {**list_ranks(total.total_count), "max": total.total_count}
        times = {"mean": round(total.get_mean_value() / 1000, 4)}
        for key, rank in ranks.items():  # the share that has this rank exactly
            times[key] = total.get_value_at_percentile(100 * rank / max(total.total_count, 1)) / 1000
        statistics[f"{name}_ms"] = times
    seconds = sum(record["seconds"] for record in records)
    sums: dict[int, list[float]] = {}
    for k, *addition in (row for record in records for row in record.get("recall", ())):
        sums[k] = [a + b for a, b in zip(sums.get(k, (0, 0)), addition, strict=True)]
    return OpenLoop(
        offered=records[0]["offered"],
        threads=records[0]["threads"],
        **statistics,
        requests=sum(record["answered"] for record in records),
        failed=sum(record["failed"] for record in records),
        unsent=sum(record["unsent"] for record in records),
        achieved=sum(max(record["answered"] - 1, 0) for record in records) / seconds if seconds else None,
        recall=tuple(LoopRecall(k, total / count, int(count)) for k, (total, count) in sorted(sums.items())),
    )
