"""Two summaries: what changed, and what does not compare."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchbench.errors import BenchbenchError
from benchbench.files.flowbaby.summaries import IncomparableSummariesError, compare_summaries, read_summary

SUMMARY: dict[str, Any] = {
    "run_id": "one",
    "timestamp": "2026-03-01T12:00:00Z",
    "git_sha": "abc",
    "dataset_id": "topics",
    "dataset_version": "1.0",
    "canonicalization_version": "v1",
    "metrics": {"mrr": 0.5, "ndcg@5": 0.25},
    "query_count": 10,
    "duration_ms": 1500,
}


def test_it_tells_what_changed() -> None:
    later = SUMMARY | {"run_id": "two", "git_sha": "def", "metrics": {"mrr": 0.75, "ndcg@5": 0.25}, "duration_ms": 1000}
    found = compare_summaries(SUMMARY, later)
    assert {one.name: one.difference for one in found.metrics} == {"mrr": 0.25, "ndcg@5": 0.0}
    assert (found.runs, found.git_shas, found.duration.difference) == (("one", "two"), ("abc", "def"), -500)
    assert found.warnings == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("dataset_id", "different datasets: 'topics' and 'other'"),
        ("dataset_version", "different versions of the dataset: '1.0' and 'other'"),
        ("canonicalization_version", "different versions of the canonical ids: 'v1' and 'other'"),
        ("evaluation_split", "different splits: None and 'other'"),
    ],
)
def test_it_refuses_what_is_of_something_else(key: str, said: str) -> None:
    with pytest.raises(IncomparableSummariesError, match=said):
        compare_summaries(SUMMARY, SUMMARY | {key: "other"})


def test_figures_of_two_profiles_are_refused_where_both_state_theirs() -> None:
    with pytest.raises(IncomparableSummariesError, match=r"different aggregation profiles: 'flowbaby-1\.0' and"):
        compare_summaries(SUMMARY | {"profile": "flowbaby-1.0"}, SUMMARY | {"profile": "flowbaby-1.1"})
    assert compare_summaries(SUMMARY, SUMMARY | {"profile": "flowbaby-1.1"}).metrics


def test_it_warns_of_what_may_move_a_figure_besides() -> None:
    found = compare_summaries(SUMMARY, SUMMARY | {"query_count": 9, "metrics": {"mrr": 0.5, "map@5": 1}})
    assert "They count 10 and 9 queries" in found.warnings[0]
    assert found.warnings[1] == "Only one of them has ndcg@5, map@5."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset_id": None}, "'dataset_id' is missing"),
        ({"canonicalization_version": 1}, "'canonicalization_version' is missing, or is not a text"),
        ({"metrics": {"mrr": "high"}}, "'metrics' is missing, or is not an object of numbers"),
        ({"metrics": {"mrr": True}}, "not an object of numbers"),
        ({"duration_ms": "long"}, "'duration_ms' is not a number"),
    ],
)
def test_it_names_what_is_wrong_with_a_file(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(SUMMARY | change))
    with pytest.raises(BenchbenchError, match=f"summary.json: {said}|summary.json: .*{said}"):
        read_summary(path)


def test_a_list_is_no_summary(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("[]")
    with pytest.raises(BenchbenchError, match=r"summary\.json is no summary"):
        read_summary(path)


def test_a_summary_of_a_run_that_lost_too_many_queries_says_so() -> None:
    lost = SUMMARY | {"run_id": "nightly", "query_count": 6, "failed_queries": 29}
    (warning,) = compare_summaries(SUMMARY | {"query_count": 6, "failed_queries": 0}, lost).warnings
    assert warning.startswith("nightly: Not ranked: 29 of 35 queries have no value, more than 5 %")
