"""Importing a TREC run of 1,000,000 lines as an external run: seconds, and by how much the process grows."""

import resource
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import throwaway

throwaway.open_site()

import numpy as np
from django.db import connections

from apps.datasets.importing import import_dataset
from apps.datasets.models import DatasetVersion
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.experiments.external.importing import import_runs

DEPTH, JUDGED = 1_000, 20


def dataset(name: str, queries: int, documents: int) -> DatasetVersion:
    rng = np.random.default_rng(1)
    record = DatasetRecord(
        name=name, queries=[query(f"q{n}", rng.integers(documents, size=JUDGED)) for n in range(queries)]
    )
    return import_dataset(record, name=name).version


def query(key: str, documents: np.ndarray) -> QueryRecord:
    judgments = [JudgmentRecord(doc_ref={"document_id": f"d{one}"}, grade=1) for one in np.unique(documents)]
    return QueryRecord(key=key, text=key, judgments=judgments)


def write_run(path: Path, queries: int, documents: int) -> int:
    """Write a run that ranks documents drawn from so many, and return how many it names."""
    rng = np.random.default_rng(2)
    named = set()
    with path.open("w") as file:
        for n in range(queries):
            drawn = rng.choice(documents, DEPTH, replace=False)
            named.update(drawn.tolist())
            file.writelines(f"q{n} Q0 d{one} {rank} {DEPTH - rank} r\n" for rank, one in enumerate(drawn))
    return len(named)


def measure(folder: Path, queries: int, documents: int) -> None:
    version = dataset(f"of {documents}", queries, documents)
    named = write_run(folder / "r.run", queries, documents)
    before, started, cpu = peak(), time.perf_counter(), time.process_time()
    import_runs([folder / "r.run"], dataset=version.dataset, version=version)
    seconds, own = time.perf_counter() - started, time.process_time() - cpu
    print(
        f"{queries * DEPTH:,} lines, {named:,} documents: {seconds:.1f} s, {own:.1f} s of them Python's own; "
        f"the process grew by {peak() - before} MB at most"
    )


def peak() -> int:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for documents in (max(100 * queries, DEPTH), 1_000 * queries):
        connections.close_all()  # none crosses a fork
        with tempfile.TemporaryDirectory() as folder:  # a process of its own each, since the peak never falls
            process = get_context("fork").Process(target=measure, args=(Path(folder), queries, documents))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
