import json
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from benchbench.files.flowbaby import list_rankings, read_run
from benchbench.ir.canonical import CURRENT, CanonicalizationError, RunEntry, export_retrieval_results_to_run, get_rules


def result(score, **fields):
    return {"topic_id": None, "topic": None, "summary_text": "generated", "score": score, **fields}


@pytest.mark.parametrize(
    ("topic_id", "topic", "expected"),
    [
        (None, "Auth", "7a87ae18-aef7-53e6-9b94-ae28c9772048"),
        ("", " auth\n", "7a87ae18-aef7-53e6-9b94-ae28c9772048"),
        (" ", "python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
        ("  id-123  ", "Auth", "id-123"),
        (" ", "\t", None),
        (None, None, None),
    ],
)
def test_it_names_an_item_by_its_topic(topic_id, topic, expected):
    assert get_rules(CURRENT)(topic_id, topic) == expected


def test_it_refuses_rules_that_it_does_not_know():
    with pytest.raises(CanonicalizationError, match=r"version 'v2' is not known; choose one of v1\."):
        get_rules("v2")


def test_results_are_exported_in_score_order():
    run = export_retrieval_results_to_run(
        {
            "q1": [
                result(0.2, topic_id="low"),
                result(0.9, topic_id="written", metadata={"source": "LLM-answer"}),
                result(0.8, topic_id="written too", metadata={"source": "chat.Completion"}),
                result(0.5, topic_id="first of equals", metadata={"source": "graph"}),
                result(0.5, topic="Auth", metadata=None),
                result(0.7),
                result(0.1, topic_id=" first of equals "),
            ],
            "q2": [SimpleNamespace(topic_id="object", topic=None, score=1)],
            "q3": [],
        },
        "nightly",
    )
    assert run.run_id == "nightly"
    assert run.entries == (
        RunEntry("q1", "first of equals", 1, 0.5),
        RunEntry("q1", "7a87ae18-aef7-53e6-9b94-ae28c9772048", 2, 0.5),
        RunEntry("q1", "low", 3, 0.2),
        RunEntry("q2", "object", 1, 1.0),
    )


def test_live_system_types_are_converted_to_json_types():
    query, topic = UUID(int=1), UUID(int=2)
    live = {
        query: [
            {"topic_id": topic, "topic": None, "score": np.float32(0.5), "rank": np.int64(1)},
            SimpleNamespace(topic_id=np.int64(7), topic=None, score=np.int32(0)),
        ],
        np.str_("q2"): [{"topic_id": None, "topic": np.str_("Auth"), "score": np.float64(0.25)}],
    }
    run = export_retrieval_results_to_run(live, run_id=UUID(int=3))
    assert json.loads(json.dumps(run.as_dict())) == {
        "run_id": str(UUID(int=3)),
        "entries": [
            {"query_id": str(query), "canonical_item_id": str(topic), "rank": 1, "score": 0.5},
            {"query_id": str(query), "canonical_item_id": "7", "rank": 2, "score": 0.0},
            {"query_id": "q2", "canonical_item_id": "7a87ae18-aef7-53e6-9b94-ae28c9772048", "rank": 1, "score": 0.25},
        ],
    }
    assert {type(value) for entry in run.entries for value in astuple(entry)} == {str, int, float}


def test_documented_example_writes_a_scorable_file(tmp_path, monkeypatch):
    documented = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(documented, {"results": {"q1": [result(0.5, topic_id="a")]}})
    assert list_rankings(read_run(tmp_path / "run.json")) == {"q1": ["a"]}


@pytest.mark.parametrize(
    ("results", "sentence"),
    [
        ({None: []}, "None is not a valid query id"),
        ({UUID(int=1): [], str(UUID(int=1)): []}, "Two queries have the id '00000000-"),
        (
            {"q1": [result(1.0, topic_id=2.5)]},
            r"2\.5 is not a valid topic_id: it must be a text, a UUID or a whole number",
        ),
    ],
)
def test_invalid_ids_are_rejected(results, sentence):
    with pytest.raises(CanonicalizationError, match=sentence):
        export_retrieval_results_to_run(results, "run")


@pytest.mark.parametrize("score", [None, "0.5", float("nan"), float("inf"), np.float32("nan"), True])
def test_it_refuses_a_result_without_a_score(score):
    with pytest.raises(CanonicalizationError, match="query 'q1' has the score"):
        export_retrieval_results_to_run({"q1": [result(score, topic_id="a")]}, "run")
