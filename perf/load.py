"""SciFact's vectors under load: memory, pgvector and FAISS in an open loop at several rates, with the knee of each.

Queries are searched by the vectors that come with SciFact, so no model encodes. `--rates 50,100` takes other rates,
`--threads 4` other numbers of threads, one after the other.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place).
"""

import argparse
import os
from pathlib import Path

import throwaway

throwaway.open_site()

from django.conf import settings

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.results.ladders.load import load_settings
from benchbench.ir.planning.axes.kinds import parse_integers

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data") / "scifact"
ANN = ["exact", "hnsw(ef_search=100)", "faiss:hnsw(ef_search=100)"]


def measure(mapping: Mapping, rates: list[int], threads: int) -> None:
    settings.BENCHBENCH_LOAD_THREADS = threads
    matrix = {"search_modes": ["dense"], "ann": ANN, "rates": rates}
    options = BenchmarkOptions(name=f"{threads} threads", matrix=matrix, execution="isolated")
    benchmark = create_benchmark(mapping, options)
    wait(launch(benchmark))
    for setting in load_settings(benchmark):
        print(f"{setting.label}, {threads} threads: {setting.sentence}")
        for rung in setting.rungs:
            recall = "–" if rung.recall is None else f"{rung.recall:.4f}"
            times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in rung.loop.latency_ms.items())
            print(
                f"  {rung.loop.offered:6g}/s: achieved {rung.loop.achieved or 0:7.1f}/s, {times}, recall {recall}, "
                f"{rung.loop.requests:,} answers"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=parse_integers, default=[25, 50, 100, 200, 400], help="requests per second")
    parser.add_argument("--threads", type=parse_integers, default=[1, 8], help="threads that search")
    stated = parser.parse_args()
    mapping = import_beir(DATA, name="scifact", vectors=DATA / "minilm.npz").mapping
    for threads in stated.threads:
        measure(mapping, stated.rates, threads)


if __name__ == "__main__":
    main()
