"""What is written and read again is what was written: runs, summaries. Datasets: tests/datasets/test_round_trips.py."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.files import flowbaby, trec
from benchbench.files.flowbaby_results import (
    Provenance,
    QueryFigures,
    compare_summaries,
    read_summary,
    results,
    summary,
    written,
)
from benchbench.ir.canonical import Run, RunEntry
from benchbench.ir.profiles import FLOWBABY_1_0, FLOWBABY_1_1
from benchbench.reading.strict_json import read_value
from tests.damages import EXAMPLES, drawn
from tests.datasets.drawn import FILLED
from tests.files.samples import write_file

SCORES = st.floats(allow_nan=False, allow_infinity=False)
ENTRIES = st.lists(st.builds(RunEntry, FILLED, FILLED, st.integers(1, 2**70), SCORES), max_size=5)
DRAWN = drawn(max(EXAMPLES // 20, 40))
COLUMN = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=5)


@pytest.mark.fuzz
@DRAWN
@given(run_id=FILLED, entries=ENTRIES)
def test_a_flowbaby_run(run_id: str, entries: list[RunEntry], tmp_path: Path) -> None:
    path = write_file(tmp_path / "run.json.gz", "".join(flowbaby.written_run(run_id, entries)))
    assert flowbaby.read_run(path) == Run(run_id, tuple(entries))


@pytest.mark.fuzz
@DRAWN
@given(truth=st.dictionaries(COLUMN, st.dictionaries(COLUMN, st.integers(-9, 9), min_size=1), min_size=1))
def test_trec_judgments(truth: dict[str, dict[str, int]], tmp_path: Path) -> None:
    rows = [(query, document, grade) for query, of in truth.items() for document, grade in of.items()]
    with TemporaryDirectory(dir=tmp_path) as folder:
        read = trec.read_qrels(write_file(Path(folder) / "qrels.txt", "".join(trec.write_qrels(rows))))
    assert {query: {name.decode(): grade for name, grade in of.items()} for query, of in read.items()} == truth


def test_flowbaby_results_and_summaries(tmp_path: Path) -> None:
    queries = [
        QueryFigures("q1", ("a", "b"), 3, {"mrr": 1 / 3, "ndcg@5": 0.1}),
        QueryFigures("ü", ("b",), 1, {"mrr": 1.0, "ndcg@5": 1e-300}),
    ]
    about: dict[str, Any] = {"run_id": "one", "timestamp": "2026-03-01T12:00:00Z", "dataset_id": "golden"}
    versions = {"dataset_version": "1.0", "canonicalization_version": "v1"}
    for profile in (FLOWBABY_1_0, FLOWBABY_1_1):
        content = results(queries, profile=profile, cutoffs=[5], judged=[0, 2])
        assert read_value(write_file(tmp_path / "results.json", written(content))) == content
        for others in (
            {},
            {"git_sha": "abc", "selection_split": "train", "evaluation_split": "test", "duration_ms": 7},
        ):
            short = summary(content, Provenance(**about, **versions, **others))
            read = read_summary(write_file(tmp_path / "summary.json", written(short)))
            known = {key: value for key, value in asdict(read).items() if value is not None}
            assert known.items() <= short.items()
            measures = compare_summaries(read, read)["measures"]
            assert measures.keys() == short["metrics"].keys()
            assert {of["difference"] for of in measures.values()} == {0}
