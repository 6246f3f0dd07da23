"""How the time that a reader takes grows with its input.

The processor's time of this thread counts, so other processes do not, and the least of several tries, since noise only
adds. Growth is judged from a quarter of a size to the size, because less may cross the size of a cache, and only where
the time is MEASURABLE: an input that stays below that up to the reader's limit harms no one. A text whose time is
clearly linear up to a quarter of the limit, or so small there that the limit takes less than MEASURABLE even if it is
cubic, could only grow too fast beyond a threshold in the reader, which one text in COMPLETE looks for. A limit in
seconds is stated for a usual processor; on a slower or busier one it grows by what a fixed piece of work takes there.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from apps.engines.asking import pause_collection
from benchbench.errors import BenchbenchError

MOST_SECONDS = 1.0
STEP = 4  # from a size to the next
MOST_GROWTH = 6.25  # in a step; linear is 4, sorting a little more, quadratic 16
CLEAR_GROWTH = 4.13  # with a square or cubic term that gives this growth to a size, the next step stays below 6.1
CLEAR_SECONDS = 0.002  # what takes less is too noisy to be called linear
COMPLETE = 11  # hostile texts come in pairs and fours, of which each second or fourth would always be the same
MEASURABLE = 0.1  # seconds; a first use of more memory can multiply less
TRIES = 4
ROUNDS = 3  # that all must show a fault: a busy machine's caches can slow the longer text in one
SMALLEST = 512
TINY = 24  # characters, which even an exponential reader ends
USUAL_SECONDS = 0.02  # of `work` on a usual processor
T = TypeVar("T")


def find_growth_faults(
    feed: Callable[[str], object],
    produces: Iterable[Callable[[int], str]],
    limit: int,
    *,
    max_seconds: float = MOST_SECONDS,
) -> set[str]:
    """Return how `feed` grows too fast, or takes more than `max_seconds`.

    Each of `produces` builds inputs of up to `limit` characters. A refusal by an error shown to users is an answer like
    any other. Sizes grow from small ones on, so that a cubic reader fails early instead of holding up the tests.
    """
    sizes = [limit]
    while sizes[0] > SMALLEST:
        sizes.insert(0, sizes[0] // STEP)
    sizes.insert(0, TINY)
    faults = set()
    for number, make in enumerate(produces):
        seconds = [0.0]
        for index, size in enumerate(sizes):
            is_last = index == len(sizes) - 1
            if is_last and number % COMPLETE and is_clear(feed, make, size // STEP, seconds[-1], max_seconds):
                break
            seconds.append(measure_seconds(feed, make(size), 1))
            if seconds[-1] > MEASURABLE and (fault := _find_fault(feed, make, size, seconds[-2:], max_seconds)):
                faults.add(f"{fault}: {make(60)!r:.60}")
                break
    return faults


def is_clear(
    feed: Callable[[str], object], make: Callable[[int], str], size: int, seconds: float, max_seconds: float
) -> bool:
    """Return whether no fault follows the `seconds` at `size`, a quarter of the limit: few, or clearly linear."""
    if seconds < MEASURABLE / STEP**3:
        return True
    if not CLEAR_SECONDS < seconds < max_seconds / MOST_GROWTH:
        return False
    return seconds < measure_seconds(feed, make(size // STEP)) * CLEAR_GROWTH


def _find_fault(
    feed: Callable[[str], object], make: Callable[[int], str], size: int, seconds: list[float], max_seconds: float
) -> str:
    """Return the fault at one size, given seconds for the size before and for it, which are measured again in doubt."""
    if seconds[1] > max_seconds and seconds[1] > max_seconds * measure_pace():
        minimum, pace = measure_seconds(feed, make(size), TRIES), measure_pace()
        if minimum > max_seconds * pace:
            return f"{size:,} characters take {minimum:.2f} s, where fixed work takes {pace:.1f} times its usual time"
    fault = ""
    for _ in range(ROUNDS if seconds[1] > seconds[0] * MOST_GROWTH else 0):
        shorter, longer = (measure_seconds(feed, make(each), TRIES) for each in (size // STEP, size))
        if longer <= MEASURABLE or longer <= shorter * MOST_GROWTH:
            return ""
        fault = f"{size // STEP:,} characters take {shorter:.4f} s, {size:,} take {longer:.3f} s"
    return fault


def measure_seconds(feed: Callable[[T], object], value: T, tries: int = TRIES) -> float:
    """Return the seconds of this thread that feeding a value takes: the least of some tries.

    Without collecting garbage, which takes the longer the more objects earlier tests left.
    """
    seconds = []
    for _ in range(tries):
        with pause_collection(), contextlib.suppress(BenchbenchError):
            begun = time.thread_time()
            try:
                feed(value)
            finally:
                seconds.append(time.thread_time() - begun)
        if seconds[-1] > 2 * MOST_SECONDS:
            break
    return min(seconds)


def measure_pace() -> float:
    """Return how many times as long as usual this processor takes now for fixed work, at least 1."""
    return max(measure_seconds(work, 10_000, 2 * TRIES) / USUAL_SECONDS, 1.0)


def work(rows: int) -> None:
    """Do what readers do: split lines, build objects, encode them."""
    for number in range(rows):
        key, *values = f"q{number},red,u1,{number}".split(",")
        json.dumps({"key": key.strip(), "values": [value.strip() for value in values]})
