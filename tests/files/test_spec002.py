"""The known answers of the SPEC-002 baseline."""

from datetime import UTC, datetime
from typing import Any

import pytest

from benchbench.files.spec002 import MEASURES, Answer, baseline, file_name

WHEN = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


def answer(expected: list[str], returned: list[str], **fields: Any) -> Answer:
    made: dict[str, Any] = {"query_id": 1, "query": "which?", "version": "2.1", "category": "a", "difficulty": "easy"}
    return Answer(**made | {"expected": expected, "returned": returned, "milliseconds": 5.0} | fields)


def test_it_measures_one_query() -> None:
    content = baseline(
        [answer(["mod1", "mod3", "mod5"], ["mod1", "mod2", "mod3", "mod4"])],
        when=WHEN,
        search_mode="dense",
        seconds=1.5,
    )
    found = content["detailed_results"][0]["metrics"]
    assert found["precision@3"] == pytest.approx(2 / 3)
    assert (found["precision@5"], found["mrr"]) == (0.4, 1.0)
    assert found["recall@10"] == pytest.approx(2 / 3)
    assert (found["hits_in_top_3"], found["hits_in_top_5"], found["first_relevant_position"]) == (2, 2, 1)
    assert content["metadata"]["search_mode"] == "vector"


def test_a_query_that_timed_out_is_in_no_mean() -> None:
    """P@3 of the others 2/3, 1/3, 0, 2/3 and MRR 1, .5, 0, 1."""
    answers = [
        answer(["a", "b"], ["a", "b", "x"]),
        answer(["a"], ["x", "a", "y"]),
        answer(["a"], ["x", "y", "z"], difficulty="hard"),
        answer(["a", "b"], ["a", "x", "b"]),
        answer(["a"], [], difficulty="hard", category="late", error="The query timed out."),
    ]
    content = baseline(answers, when=WHEN, search_mode="hybrid", seconds=None)
    assert content["aggregate_metrics"]["precision@3"] == pytest.approx(0.416667, abs=1e-6)
    assert content["aggregate_metrics"]["mrr"] == 0.625
    assert (content["metadata"]["valid_queries"], content["metadata"]["failed_queries"]) == (4, 1)
    assert content["detailed_results"][4]["metrics"] is None
    assert content["detailed_results"][2]["metrics"]["first_relevant_position"] is None
    assert {name: of["count"] for name, of in content["per_difficulty"].items()} == {"easy": 3, "hard": 1}
    assert content["per_category"]["late"] == {"count": 0, **dict.fromkeys(MEASURES)}
    assert content["per_category"]["a"]["count"] == 4


def test_only_what_the_limit_returns_counts() -> None:
    late = answer(["a"], [f"x{n}" for n in range(10)] + ["a"])
    content = baseline([late], when=WHEN, search_mode="dense", seconds=None)
    assert content["aggregate_metrics"]["mrr"] == 0
    assert len(content["detailed_results"][0]["returned_modules"]) == 10


def test_without_an_answer_there_is_no_mean() -> None:
    content = baseline([answer(["a"], [], error="gone")], when=WHEN, search_mode="dense", seconds=None)
    assert set(content["aggregate_metrics"].values()) == {None}


def test_the_file_is_named_by_its_time_in_utc() -> None:
    assert file_name(WHEN) == "baseline_20260301_120005.json"
