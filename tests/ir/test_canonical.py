from types import SimpleNamespace

import pytest

from benchbench.ir.canonical import (
    CanonicalizationError,
    RunEntry,
    canonical_id,
    export_retrieval_results_to_run,
    rules,
)


def result(score, **fields) -> dict:
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
    assert canonical_id(topic_id=topic_id, topic=topic) == expected


def test_it_refuses_rules_that_it_does_not_know():
    with pytest.raises(CanonicalizationError, match=r"version 'v2' is not known: known is v1\."):
        rules("v2")


def test_it_exports_what_was_retrieved_in_order_of_score():
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


@pytest.mark.parametrize("score", [None, "0.5", float("nan"), True])
def test_it_refuses_a_result_without_a_score(score):
    with pytest.raises(CanonicalizationError, match="query 'q1' has the score"):
        export_retrieval_results_to_run({"q1": [result(score, topic_id="a")]}, "run")
