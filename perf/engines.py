"""An arm of 1,000 queries that asks a search engine, beside a bare loop of httpx at the same concurrency.

The engine is a process on this machine that answers each request after a stated delay with 100 hits. `arm` is the whole
benchmark: asked, mapped to documents, stored, measured, ended. `bare` sends the same requests from as many threads and
reads the bodies. `open loop` is an isolated arm at a stated rate: the rate that was reached, and its latencies.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import throwaway

throwaway.open_site()

from django.conf import settings

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.creating import ensure_mapping
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from benchbench.reading import strict_yaml

QUERIES, DOCUMENTS, HITS, ROUNDS = 1_000, 2_000, 100, 3


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    while head := await reader.readuntil(b"\r\n\r\n"):
        number = int(parse_qs(urlsplit(head.split()[1].decode()).query)["q"][0].split()[-1])
        await asyncio.sleep(delay)
        hits = [{"id": f"d{(number + rank) % DOCUMENTS}", "score": 1 / (rank + 1)} for rank in range(HITS)]
        body = json.dumps({"hits": hits}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()


def serve(port: Any, delay: float) -> None:
    async def run() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await answer(reader, writer, delay)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(run())


def import_library() -> Mapping:
    collection = create_collection("library")
    import_documents(collection, [DocumentRecord(f"d{number}", "", f"text {number}") for number in range(DOCUMENTS)])
    queries = [
        QueryRecord(f"q{number}", f"query {number}", judgments=[JudgmentRecord({"document_id": f"d{number}"}, grade=1)])
        for number in range(QUERIES)
    ]
    dataset = import_dataset(DatasetRecord(name="queries", queries=queries)).version.dataset
    collection.refresh_from_db()
    return ensure_mapping(dataset, collection)


def declare(folder: Path, url: str, concurrency: int) -> None:
    engine = {
        "url": url,
        "query": {"q": "{query}", "size": "{size}"},
        "private": True,
        "concurrency": concurrency,
        "answer": {"hits": "hits", "id": "id", "score": "score"},
    }
    (folder / "engines.yaml").write_text(strict_yaml.dump({"engines": {"slow": engine}}))
    settings.BENCHBENCH_ENGINES = str(folder / "engines.yaml")


def time_bare(url: str, concurrency: int) -> float:
    with httpx.Client(limits=httpx.Limits(max_connections=concurrency)) as client:
        started = time.perf_counter()
        with ThreadPoolExecutor(concurrency) as pool:
            list(pool.map(lambda n: client.get(url, params={"q": f"query {n}", "size": HITS}).read(), range(QUERIES)))
        return time.perf_counter() - started


def run_arm(mapping: Mapping, rate: float | None = None) -> tuple[float, Run]:
    matrix: dict[str, Any] = {"engines": ["slow"], "top_k_values": [HITS], "rates": [rate]}
    execution = "isolated" if rate else "shared"
    benchmark = create_benchmark(mapping, BenchmarkOptions(name="arm", matrix=matrix, execution=execution))
    started = time.perf_counter()
    wait(launch(benchmark))
    seconds = time.perf_counter() - started
    run = Benchmark.objects.get(pk=benchmark.pk).runs.get()
    assert (run.status, run.failed_queries, run.query_results.count()) == ("completed", 0, QUERIES), run.error_message
    return seconds, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delay", type=float, default=20, help="milliseconds of each answer (default: 20)")
    parser.add_argument("--concurrency", type=int, default=4, help="requests at once (default: 4)")
    parser.add_argument("--rate", type=float, default=50, help="requests per second of the open loop (default: 50)")
    stated = parser.parse_args()
    port = multiprocessing.Value("i", 0)
    server = multiprocessing.Process(target=serve, args=(port, stated.delay / 1000), daemon=True)
    server.start()
    while not port.value:
        time.sleep(0.05)
    url = f"http://127.0.0.1:{port.value}/search"
    mapping = import_library()
    with tempfile.TemporaryDirectory() as folder:
        declare(Path(folder), url, stated.concurrency)
        run_arm(mapping)  # imports, connections
        pairs = [(run_arm(mapping)[0], time_bare(url, stated.concurrency)) for _ in range(ROUNDS)]
        ratio = statistics.median(arm / bare for arm, bare in pairs)
        arm, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{QUERIES:,} queries, {stated.delay:g} ms, {stated.concurrency} at once")
        print(f"  arm {arm:.2f} s, bare httpx {bare:.2f} s, ratio {ratio:.3f}")
        declare(Path(folder), url, max(stated.concurrency, 16))
        _, run = run_arm(mapping, rate=stated.rate)
        loop = run.times.open_loop
        assert loop is not None
        achieved = loop.achieved or 0.0
        print(f"  open loop at {stated.rate:g}/s: achieved {achieved:.2f}/s ({achieved / stated.rate - 1:+.2%})")
        for name in ("latency_ms", "service_ms", "waiting_ms"):
            print(f"    {name}: " + ", ".join(f"{key} {ms:.1f}" for key, ms in getattr(loop, name).items()))
    server.terminate()


if __name__ == "__main__":
    main()
