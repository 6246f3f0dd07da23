"""The known answers of the SPEC-002 baseline, and its console."""

from datetime import UTC, datetime
from typing import Any

import pytest

from benchbench.files.spec002 import MEASURES, Answer, baseline, closing, file_name, opening, query_lines

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


def test_the_file_is_named_by_its_time_in_utc() -> None:
    assert file_name(WHEN) == "baseline_20260301_120005.json"


ANSWERS = [
    Answer(
        query_id=1,
        query="facturación electrónica",
        version="16.0",
        category="localization",
        difficulty="easy",
        expected=["einvoice", "tax"],
        returned=["einvoice", "tax", "a", "b", "c"],
        milliseconds=233.6,
    ),
    Answer(
        query_id=2,
        query="separate\nB2B \x1b[31mand B2C",
        version=None,
        category="sales",
        difficulty="medium",
        expected=["split"],
        returned=["a", "split"],
        milliseconds=None,
    ),
    Answer(
        query_id=3,
        query="cross-docking",
        version="18.0",
        category="inventory",
        difficulty="hard",
        expected=["dock", "dock_more", "gone"],
        returned=[],
        milliseconds=1.0,
        error="The query took 60 s.",
    ),
]
GOLDEN = """\
================================================================================
Which search?
================================================================================

Loading queries from: queries.json
✓ Loaded 3 queries successfully

Starting benchmark execution...

[1/3] Query: "facturación electrónica"
      Version: 16.0 | Category: localization | Difficulty: easy
      Expected: 2 modules
      ✓ Executed in 234ms
      Metrics: P@3=0.667 | P@5=0.400 | R@10=1.000 | MRR=1.000

[2/3] Query: "separate B2B [31mand B2C"
      Category: sales | Difficulty: medium
      Expected: 1 module
      ✓ Executed
      Metrics: P@3=0.333 | P@5=0.200 | R@10=1.000 | MRR=0.500

[3/3] Query: "cross-docking"
      Version: 18.0 | Category: inventory | Difficulty: hard
      Expected: 3 modules
      ✗ Failed: The query took 60 s.

================================================================================
BENCHMARK COMPLETED
================================================================================

Execution Time: 45.2 seconds
Total Queries: 3
Failed Queries: 1, in no mean

AGGREGATE METRICS:
  Precision@3:  50.0%  ████████████░░░░░░░░░░░░
  Precision@5:  30.0%  ███████░░░░░░░░░░░░░░░░░
  Recall@10:   100.0%  ████████████████████████
  Mean MRR:     0.750

BY DIFFICULTY:
  Easy   (1):  P@3=66.7% | P@5=40.0%
  Medium (1):  P@3=33.3% | P@5=20.0%

Results saved to: out/baseline_20251122_103045.json

================================================================================
"""


def content(answers: list[Answer], **options: int) -> dict:
    when = datetime(2025, 11, 22, 10, 30, 45, tzinfo=UTC)
    return baseline(answers, when=when, search_mode="dense", seconds=45.23, **options)


def test_it_tells_each_query_and_the_totals() -> None:
    found = content(ANSWERS)
    lines = opening("Which search?", source="queries.json", queries=3)
    for place, detail in enumerate(found["detailed_results"], start=1):
        lines += query_lines(detail, place, 3)
    lines += closing(found, written_to="out/baseline_20251122_103045.json")
    assert "\n".join(lines) + "\n" == GOLDEN


def test_lines_stand_under_their_query_however_long_its_number_is() -> None:
    first, second, *_ = query_lines(content(ANSWERS)["detailed_results"][0], 20, 20, noun="document")
    assert first.index("Query:") == second.index("Version:") == 8


def test_difficulties_come_in_their_order_and_counts_are_aligned() -> None:
    many = [Answer(**{field: getattr(ANSWERS[0], field) for field in ANSWERS[0].__slots__} | {"difficulty": name})
            for name in ("hard", "other", *["easy"] * 12)]  # fmt: skip
    rows = closing(content(many))
    start = rows.index("BY DIFFICULTY:")
    assert [row[:15] for row in rows[start + 1 : start + 4]] == [
        "  Easy  (12):  ",
        "  Hard   (1):  ",
        "  Other  (1):  ",
    ]


def test_without_a_query_that_succeeded_there_is_no_figure() -> None:
    told = closing(content([ANSWERS[2]]))
    assert "  Precision@3:      –" in told
    assert "  Mean MRR:         –" in told
    assert "BY DIFFICULTY:" not in told


def test_it_says_that_fewer_results_were_kept_than_its_measures_ask_for() -> None:
    said = "Results of a Query: 5, so that measures at a greater cutoff, up to 10, see no more"
    assert said in closing(content(ANSWERS, limit=5))
    assert not any(line.startswith("Results of a Query") for line in closing(content(ANSWERS)))
