"""A benchmark with a failed run, a failed query and names that every format must escape, for what exports it."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings.models import Mapping, Resolution
from apps.records.models import Benchmark, Evaluation, Run
from apps.results.exporting import EXPORTERS, export
from tests.factories import judged, make_collection, make_dataset, make_mapping, make_runs
from tests.kept import made_once
from tests.rankings import add_ranking
from tests.results.compared import make_compared

HOSTILE = "=cmd|' /C calc'!A0 <b>_50%_</b>"
QUERIES = 8
VALUES = np.array(
    [
        [0.9, 0.8, 0.7, 0.9, 0.8, 0.7, 0.9, 0.8],
        [0.5, 0.3, 0.4, 0.4, 0.5, 0.2, 0.5, np.nan],
        [0.9, 0.7, 0.8, 0.9, 0.8, 0.6, 0.9, 0.8],
    ]
)


@made_once
def make_exported() -> Benchmark:
    """Return a completed benchmark of four runs: two alike, one worse whose last query failed, one that failed."""
    mapping = _mapping()
    benchmark = make_compared(mapping, VALUES, name=HOSTILE, total_runs=4)
    make_runs(benchmark, {4: None})
    started = datetime(2026, 3, 1, 12, tzinfo=UTC)
    benchmark.runs.update(started_at=started, completed_at=started.replace(second=2))
    worse = benchmark.runs.get(run_order=2)
    Run.objects.filter(pk=worse.pk).update(failed_queries=1)
    Evaluation.objects.filter(run=worse).update(query_count=QUERIES - 1, failed_queries=1)
    for run in benchmark.runs.exclude(status=Run.Status.FAILED):
        Run.objects.filter(pk=run.pk).update(timing=run.timing | {"samples": QUERIES - run.failed_queries})
        _store_rankings(run, mapping)
    benchmark.refresh_from_db()
    return benchmark


def _mapping() -> Mapping:
    dataset = make_dataset({}, name="questions")
    queries = Query.objects.bulk_create(
        Query(
            dataset=dataset,
            key=f"q{index}",
            text=HOSTILE if index == 0 else f"What is {index}?",
            slices=["fruit", "short"] if index % 2 else [],
            category="billing" if index < 4 else "search",
            difficulty="easy" if index < 5 else "hard",
            split="validation",
            metadata={"version": "2.1"} if index == 0 else {},
        )
        for index in range(QUERIES)
    )
    collection = make_collection("library", [{"title": f"On {name}"} for name in ("pears", "plums", "figs")])
    mapping = make_mapping(dataset, collection)
    documents = list(collection.documents.order_by("pk"))
    resolutions = []
    for query in queries:
        declared = [("d1", 2, documents[0]), ("d3", 0, documents[2])] + [("gone", 1, None)] * (query == queries[1])
        for name, grade, document in declared:
            judgment = judged(query, {"document_id": name}, grade)
            outcome = "resolved" if document else "not_found"
            resolutions.append(Resolution(mapping=mapping, judgment=judgment, document=document, outcome=outcome))
    Judgment.objects.bulk_create(resolution.judgment for resolution in resolutions)
    Resolution.objects.bulk_create(resolutions)
    DatasetVersion.objects.update(query_count=QUERIES, judgment_count=2 * QUERIES + 1)
    return mapping


def _store_rankings(run: Run, mapping: Mapping) -> None:
    """The worse run ranks the relevant document last; of the equal scores the order is that of the ranking."""
    documents = list(mapping.collection.documents.order_by("pk").values_list("pk", flat=True))
    ids = documents[::-1] if run.run_order == 2 else documents
    times = dict.fromkeys(("search_ms", "total_ms"), 10.0 * run.run_order)
    hits = {"document_ids": ids, "scores": [0.75, 0.5, 0.5], **times}
    nothing = {"error": "The query took 60 s."}
    failed = f"q{QUERIES - 1}" if run.run_order == 2 else None
    for query in mapping.dataset.queries.order_by("pk"):
        add_ranking(run, query, **(nothing if query.key == failed else hits))


def export_text(subject: Benchmark | Run, format: str) -> str:
    return "".join(piece if isinstance(piece, str) else piece.decode() for piece in export(subject, format))


def subject_of(benchmark: Benchmark, format: str) -> Benchmark | Run:
    return benchmark if EXPORTERS[format].exports == "benchmark" else benchmark.runs.get(run_order=2)


def rows_of(directory: Path, name: str) -> list[dict[str, str]]:
    with (directory / name).open(newline="") as file:
        return list(csv.DictReader(file))
