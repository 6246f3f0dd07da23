"""A sectioned collection with questions, as files of the retrieval-strategy benchmark, really indexed and searched.

Chunks are as long as a section, and what a question finds is how often it says "apple" or "pear": see SECTIONS.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.sources import find_sectioned, read_sectioned
from apps.datasets.formats import sectioned
from apps.datasets.importing import import_dataset
from apps.mappings.creating import create_mapping
from apps.mappings.resolving import resolve
from apps.operations.working import OperationFailedError, wait
from apps.records.models import Benchmark, QueryResult, Run, StageList
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from tests.created import build, run_benchmark
from tests.files.samples import write_file

WIDTH = 18  # of a section; two line feeds go between sections
SECTIONS = {
    "A": {"s1": "fig fig", "s2": "apple pear pear", "s9": "apple apple pear"},
    "B": {"s1": "apple apple apple", "s2": "pear pear pear"},
    "C": {"s1": "fig"},
}
QUESTIONS = [
    # Finds (B,s1), (A,s9), (A,s2), so its document has rank 2 and its section rank 3.
    {
        **{"id": "q1", "question": "apple", "answer": "Apple, pear.", "document_id": "A"},
        **{"section_ids": ["s1", "s2"], "evidence": ["apple pear pear", "fig fig"], "difficulty": "easy"},
    },
    {"id": "q2", "question": "=pear()", "answer": "", "document_id": "B", "section_ids": ["s2"], "evidence": []},
    {"id": "q3", "question": "apple?", "answer": "Fig.", "document_id": "C", "section_ids": ["s1"], "evidence": []},
    {"id": "q4", "question": "pear", "answer": "", "document_id": "gone", "section_ids": ["s1"], "evidence": []},
    {"id": "q5", "question": "pear?", "answer": "", "document_id": "A", "section_ids": [], "evidence": []},
]


def write_sectioned(directory: Path) -> Path:
    """Write documents/*.json and ground_truth.json, and return where."""
    documents = directory / "documents"
    documents.mkdir(parents=True)
    for name, pieces in SECTIONS.items():
        declared = [
            {"id": key, "heading": "", "level": 1, "content": f"{text:.<{WIDTH}}"} for key, text in pieces.items()
        ]
        write_file(documents / f"{name}.json", {"id": name, "title": name, "sections": declared})
    write_file(directory / "ground_truth.json", QUESTIONS)
    return directory


def make_sectioned(directory: Path) -> Benchmark:
    """Return a completed, isolated benchmark of cutoffs 1 and 3: a run that searches, one whose index cannot be built.

    Each query was asked twice. Times, which differ from run to run, are set: 10 ms, 20 ms and so on.
    """
    write_sectioned(directory)
    collection = create_collection("library")
    import_documents(collection, read_sectioned(find_sectioned(directory)))
    dataset = import_dataset(sectioned.read_sectioned(directory), name="questions").version.dataset
    collection.refresh_from_db()
    size = {"size": WIDTH + 2, "overlap": 0}
    flat = build(create_index(collection, name="flat", encoder="keyword:apple,pear", chunk_parameters=size))
    broken = create_index(collection, name="broken", encoder="keyword:", chunk_parameters=size)
    with pytest.raises(OperationFailedError):
        wait(build_index(broken))
    for index in (flat, broken):
        index.refresh_from_db()
    mapping = create_mapping(dataset, collection, name="library")
    resolve(mapping)
    mapping.refresh_from_db()
    benchmark = run_benchmark(
        mapping,
        name="Which strategy?",
        matrix={"indexes": ["flat", "broken"], "top_k_values": [3], "k_values_for_metrics": [1, 3], "primary_k": 3},
        indexes={"flat": flat, "broken": broken},
        execution="isolated",
        runs_per_query=2,
    )
    _set_times(benchmark)
    benchmark.refresh_from_db()
    return benchmark


def _set_times(benchmark: Benchmark) -> None:
    started = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ended = started.replace(second=2)
    Benchmark.objects.filter(pk=benchmark.pk).update(started_at=started, completed_at=ended)
    benchmark.runs.update(completed_at=ended)
    benchmark.runs.filter(started_at__isnull=False).update(started_at=started)
    for position, result in enumerate(QueryResult.objects.order_by("query__key", "repetition"), start=1):
        StageList.objects.filter(pk=result.stage_list_id).update(total_ms=10.0 * position)
    index = Index.objects.get(name="flat")
    index.stats["duration_sec"] = 1.5
    Index.objects.filter(pk=index.pk).update(stats=index.stats)


def searching(benchmark: Benchmark) -> Run:
    """Return the run that did not fail."""
    return benchmark.runs.get(status=Run.Status.COMPLETED)
