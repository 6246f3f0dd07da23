"""Judgments and a run of them, to import as a team would that has nothing else."""

import gzip
from pathlib import Path
from typing import Any

from apps.collections.models import Document
from apps.datasets.models import Dataset, Query
from apps.experiments.external.importing import ImportedRuns, NewBenchmark, import_runs
from apps.records.lists.reading import load_rankings
from apps.records.models import Evaluation, Run
from tests.factories import make_dataset

QRELS = "q1 0 a 2\nq1 0 b 0\nq1 0 z 1\nq2 0 a 1\nq3 0 c 1\n"
# Equal scores, scores that are equal as float32, ranks that lie, a query without results, and one no one asked.
RUN = (
    "q1 Q0 b 1 0.5 bm25\nq1 Q0 a 2 0.5 bm25\nq1 Q0 c 9 0.50000001 bm25\nq1 Q0 e 1 -1e300 bm25\nq1 Q0 f 1 -2e300 bm25\n"
    "q3 Q0 d 1 3 bm25\nq3 Q0 c 2 3.0000001 bm25\nq3 Q0 a 3 1e-3 bm25\nq9 Q0 a 1 1 bm25\n"
)


NEW = ("name", "measures", "k", "empty_queries", "weighting", "owner")


def make_judged() -> Dataset:
    judged: dict[str, list[tuple[Any, int]]] = {}
    for line in QRELS.splitlines():
        query, _, document, grade = line.split()
        judged.setdefault(query, []).append(({"document_id": document}, int(grade)))
    return make_dataset(judged)


def write(path: Path, content: str) -> Path:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def imported(dataset: Dataset, *paths: Path, **options: Any) -> ImportedRuns:
    new = {name: options.pop(name) for name in NEW if name in options}
    return import_runs(paths, dataset=dataset, new=NewBenchmark(**new), **options)


def stored(run: Run) -> dict[str, list[str]]:
    keys = dict(Query.objects.values_list("pk", "key"))
    names = dict(Document.objects.values_list("pk", "external_id"))
    return {keys[query]: [names[one] for one in ranked] for query, ranked in load_rankings(run).items()}


def means_of(run: Run) -> dict[str, Any]:
    return Evaluation.objects.get(run=run, dataset_version=run.benchmark.dataset_version).means
