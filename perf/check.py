"""Ratios of our times to those of a bare alternative, held against stored ones: exit status 1 where one has grown.

Each ratio is measured in one process, both sides in turn, in rounds after a warm-up. Times are CPU seconds of this
process and, on Linux, of its PostgreSQL session. The interval of the median is a bootstrap's (95 %).
A ratio is worse if the lower end of its interval is above the stored median by more than the stored noise. `--write`
measures in three passes and stores, for this kind of machine, the medians and as noise the furthest end of a pass.
`--self-test` slows our side of each path to 1.5 times its time and fails unless every one is then found worse.

python perf/check.py [--write | --self-test]
"""

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import throwaway

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # waiting threads would count as CPU seconds
throwaway.open_site()

import numpy as np
from django.db import connection
from pairings import Act, Pairing, count_statements, make_pairings

ROUNDS, PASSES, DRAWS = 9, 3, 2000
SLOWER = 1.5  # in the self-test
STORED = Path(__file__).with_name("ratios.json")
MACHINE = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version().rpartition('.')[0]}"


class Interval(NamedTuple):
    low: float
    median: float
    high: float


def read_cpu() -> float:
    """Return the CPU seconds of this process and of its session in PostgreSQL."""
    session = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat") if connection.connection else None
    nanoseconds = int(session.read_text().split()[0]) if session and session.exists() else 0
    return time.process_time() + nanoseconds / 1e9


def time_act(act: Act, slowness: float = 1.0) -> float:
    """Return the CPU seconds of an act, after which a slowed one works on for its share."""
    gc.collect()
    started = read_cpu()
    act()
    ends = started + (read_cpu() - started) * slowness
    while read_cpu() < ends:
        pass
    return read_cpu() - started


def measure(path: Pairing, slowness: float = 1.0) -> Interval:
    pairs = [(time_act(path.ours, slowness), time_act(path.other)) for _ in range(ROUNDS + 1)][1:]
    return bootstrap([ours / other for ours, other in pairs])


def bootstrap(ratios: list[float]) -> Interval:
    """Return the median of ratios with its 95 % interval."""
    drawn = np.random.default_rng(6).choice(ratios, (DRAWS, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975]).tolist()
    return Interval(low, statistics.median(ratios), high)


def is_worse(found: Interval, stored: dict[str, float]) -> bool:
    """Return whether the whole interval is above the stored median by more than the stored noise."""
    return found.low > stored["median"] + stored["noise"]


def summarise(passes: list[Interval]) -> dict[str, float]:
    """Return the median of several passes, and as noise how far the furthest end of a pass is from it."""
    median = statistics.median(each.median for each in passes)
    noise = max(max(median - each.low, each.high - median) for each in passes)
    return {"median": round(median, 4), "noise": round(noise, 4)}


def measure_all(paths: list[Pairing], slowness: float = 1.0) -> Iterator[tuple[str, Interval]]:
    for path in paths:
        yield path.name, measure(path, slowness)
    count = count_statements() * slowness
    yield "statements of a leaderboard", Interval(count, count, count)


def check(paths: list[Pairing], stored: dict[str, dict[str, float]], slowness: float) -> set[str]:
    """Print the table of all ratios and return the names of those that are worse."""
    worse = set()
    print(f"{'ratio':<30} {'stored':>8} {'noise':>7} {'now':>8}   95 % interval")
    for name, found in measure_all(paths, slowness):
        before = stored[name]
        bad = is_worse(found, before)
        worse |= {name} if bad else set()
        print(
            f"{name:<30} {before['median']:>8.3f} {before['noise']:>7.3f} {found.median:>8.3f}   "
            f"{found.low:.3f} to {found.high:.3f}{'  WORSE' if bad else ''}",
            flush=True,
        )
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--write", action="store_true")
    act.add_argument("--self-test", action="store_true")
    asked = parser.parse_args()
    every = json.loads(STORED.read_text()) if STORED.exists() else {}
    if MACHINE not in every and not asked.write:
        sys.exit(f"No ratios are stored for {MACHINE}: run perf/check.py --write on a commit that you trust.")
    with tempfile.TemporaryDirectory(prefix="benchbench-perf-") as name:
        paths = make_pairings(Path(name))
        if asked.write:
            passes = [dict(measure_all(paths)) for _ in range(PASSES)]
            every[MACHINE] = {ratio: summarise([each[ratio] for each in passes]) for ratio in passes[0]}
            STORED.write_text(json.dumps(every, indent=2, sort_keys=True) + "\n")
            print(json.dumps(every[MACHINE], indent=2))
            return
        worse = check(paths, every[MACHINE], SLOWER if asked.self_test else 1.0)
    missed = every[MACHINE].keys() - worse
    if asked.self_test:
        sys.exit(f"Not found worse: {', '.join(sorted(missed))}." if missed else 0)
    sys.exit(f"Worse than before: {', '.join(sorted(worse))}." if worse else 0)


if __name__ == "__main__":
    main()
