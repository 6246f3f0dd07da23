"""The SPEC-002 baseline with its console, and the CSV files of the strategy benchmark."""

import csv
import io
from datetime import UTC, datetime

import pytest

from benchbench.files import spec002
from benchbench.files.spec002 import MEASURES, Answer, build_baseline, name_file, query_lines
from benchbench.files.strategy_results import (
    Configuration,
    Content,
    IndexStats,
    Search,
    compute_consistency,
    index_stats,
    render_summary,
    search_header,
    search_line,
    search_rows,
    summarise,
)

WHEN = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


def answer(expected, returned, **fields):
    created = {"query_id": 1, "query": "which?", "version": "2.1", "category": "a", "difficulty": "easy"}
    return Answer(**created | {"expected": expected, "returned": returned, "milliseconds": 5.0} | fields)


def test_it_measures_one_query():
    content = build_baseline(
        [answer(["mod1", "mod3", "mod5"], ["mod1", "mod2", "mod3", "mod4"])],
        when=WHEN,
        search_mode="dense",
        seconds=1.5,
    )
    result = content["detailed_results"][0]["metrics"]
    assert result["precision@3"] == pytest.approx(2 / 3)
    assert (result["precision@5"], result["mrr"]) == (0.4, 1.0)
    assert result["recall@10"] == pytest.approx(2 / 3)
    assert (result["hits_in_top_3"], result["hits_in_top_5"], result["first_relevant_position"]) == (2, 2, 1)
    assert content["metadata"]["search_mode"] == "vector"


def test_a_query_that_timed_out_is_in_no_mean():
    """P@3 of the others 2/3, 1/3, 0, 2/3 and MRR 1, .5, 0, 1."""
    answers = [
        answer(["a", "b"], ["a", "b", "x"]),
        answer(["a"], ["x", "a", "y"]),
        answer(["a"], ["x", "y", "z"], difficulty="hard"),
        answer(["a", "b"], ["a", "x", "b"]),
        answer(["a"], [], difficulty="hard", category="late", error="The query timed out."),
    ]
    content = build_baseline(answers, when=WHEN, search_mode="hybrid", seconds=None)
    assert content["aggregate_metrics"]["precision@3"] == pytest.approx(0.416667, abs=1e-6)
    assert content["aggregate_metrics"]["mrr"] == 0.625
    assert (content["metadata"]["valid_queries"], content["metadata"]["failed_queries"]) == (4, 1)
    assert content["detailed_results"][4]["metrics"] is None
    assert content["detailed_results"][2]["metrics"]["first_relevant_position"] is None
    assert {name: owner["count"] for name, owner in content["per_difficulty"].items()} == {"easy": 3, "hard": 1}
    assert content["per_category"]["late"] == {"count": 0, **dict.fromkeys(MEASURES)}
    assert content["per_category"]["a"]["count"] == 4


def test_only_results_within_the_limit_count():
    late = answer(["a"], [f"x{n}" for n in range(10)] + ["a"])
    content = build_baseline([late], when=WHEN, search_mode="dense", seconds=None)
    assert content["aggregate_metrics"]["mrr"] == 0
    assert len(content["detailed_results"][0]["returned_modules"]) == 10


def test_the_file_is_named_by_its_time_in_utc():
    assert name_file(WHEN) == "baseline_20260301_120005.json"


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
Which search? Benchmark Runner
================================================================================

Loading queries from: queries.json
✓ Loaded 3 queries successfully

Starting benchmark execution...

[1/3] Query: "facturación electrónica"
      Version: 16.0 | Category: localization | Difficulty: easy
      Expected: 2 modules
      ✓ Executed in 234ms
      Metrics: P@3=0.667 | P@5=0.40 | R@10=1.0 | MRR=1.0

[2/3] Query: "separate B2B [31mand B2C"
      Category: sales | Difficulty: medium
      Expected: 1 module
      ✓ Executed
      Metrics: P@3=0.333 | P@5=0.20 | R@10=1.0 | MRR=0.5

[3/3] Query: "cross-docking"
      Version: 18.0 | Category: inventory | Difficulty: hard
      Expected: 3 modules
      ✗ Failed: The query took 60 s.

================================================================================
BENCHMARK COMPLETED
================================================================================

Execution Time: 45.2 seconds
Total Queries: 3
Failed Queries: 1, not in the means

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


def content(answers, **options):
    when = datetime(2025, 11, 22, 10, 30, 45, tzinfo=UTC)
    return build_baseline(answers, when=when, search_mode="dense", seconds=45.23, **options)


def test_report_shows_each_query_and_the_totals():
    result = content(ANSWERS)
    lines = spec002.render_opening("Which search?", source="queries.json", queries=3)
    for position, detail in enumerate(result["detailed_results"], start=1):
        lines += query_lines(detail, position, 3)
    lines += spec002.render_closing(result, written_to="out/baseline_20251122_103045.json")
    assert "\n".join(lines) + "\n" == GOLDEN
    first, second, *_ = query_lines(content(ANSWERS)["detailed_results"][0], 20, 20, noun="document")
    assert first.index("Query:") == second.index("Version:") == 8


def test_difficulties_come_in_their_order_and_counts_are_aligned():
    many = [Answer(**{field: getattr(ANSWERS[0], field) for field in ANSWERS[0].__slots__} | {"difficulty": name})
            for name in ("hard", "other", *["easy"] * 12)]  # fmt: skip
    rows = spec002.render_closing(content(many))
    start = rows.index("BY DIFFICULTY:")
    assert [row[:15] for row in rows[start + 1 : start + 4]] == [
        "  Easy  (12):  ",
        "  Hard   (1):  ",
        "  Other  (1):  ",
    ]


def test_totals_report_missing_and_truncated_results():
    answer = spec002.render_closing(content([ANSWERS[2]]))
    assert "  Precision@3:      –" in answer
    assert "  Mean MRR:         –" in answer
    assert "BY DIFFICULTY:" not in answer
    message = "Results per Query: 5; measures at greater cutoffs, up to 10, use no more"
    assert message in spec002.render_closing(content(ANSWERS, limit=5))
    assert not any(line.startswith("Results per Query") for line in spec002.render_closing(content(ANSWERS)))


FLAT = Configuration("flat", "memory", "mini")
STATS = IndexStats(1.5, 2, 6, 6, 0, 6)


def search(query="q1", run=1, **remaining):
    created = {"question": "Why?", "expected_doc": "A", "doc_rank": 2, "documents": ("B", "A")}
    return Search(query_id=query, run=run, **(created | {"embed_calls": 1, "llm_calls": 0} | remaining))


def summary_row(searches, cutoffs, **options):
    rows = [row for search in searches for row in search_rows(search, cutoffs)]
    consistency = compute_consistency(searches, max(cutoffs))
    created = summarise(FLAT, STATS, rows, consistency_score=consistency, runs_per_query=2, **options)
    return next(csv.DictReader(io.StringIO("".join(render_summary([created])))))


def test_the_columns_are_those_of_formats_md():
    answer = "strategy,backend,embedding_model,llm_model"
    index, *_ = index_stats([(FLAT, STATS)])
    assert index == f"{answer},duration_sec,num_documents,num_chunks,num_vectors,llm_calls,embed_calls\r\n"
    assert search_header() == (
        f"query_id,run,{answer},question,expected_doc,expected_sections,top_k,doc_found,doc_rank,section_found,"
        "section_rank,search_time_ms,embed_calls,llm_calls,evidence_recall,answer_token_overlap,rouge_l,error,execution\r\n"
    )
    header, *_ = render_summary([summarise(FLAT, STATS, [], consistency_score=None, runs_per_query=1)])
    assert header == (
        f"{answer},index_time_sec,num_vectors,doc_recall_at_1,doc_recall_at_3,doc_recall_at_5,doc_recall_at_10,"
        "section_recall_at_1,section_recall_at_3,section_recall_at_5,section_recall_at_10,doc_mrr,section_mrr,"
        "avg_search_time_ms,p50_search_time_ms,p95_search_time_ms,consistency_score,total_llm_calls,"
        "total_embed_calls,queries_evaluated,runs_per_query,execution\r\n"
    )


def test_an_error_has_a_column_where_there_is_one():
    header, row, failed = index_stats([(FLAT, STATS), (FLAT, IndexStats(error="Gone."))])
    assert header.endswith("embed_calls,error\r\n")
    assert (row, failed) == ("flat,memory,mini,,1.5,2,6,6,0,6,\r\n", "flat,memory,mini,,,,,,,,Gone.\r\n")
    row_of_failed = summary_row([], [1], error="Gone.")
    assert (row_of_failed["error"], row_of_failed["index_time_sec"], row_of_failed["total_embed_calls"]) == (
        *("Gone.", "1.5"),
        "",
    )


def test_search_has_one_line_per_cutoff():
    texts = {3: Content(0.5, 1, 0)}
    hits = search(section_rank=3, expected_sections="s2,s1", search_time_ms=2.5, execution="shared", content=texts)
    first, third = (search_line(FLAT, row) for row in search_rows(hits, [1, 3]))
    assert first == 'q1,1,flat,memory,mini,,Why?,A,"s2,s1",1,False,-1,False,-1,2.5,1,0,,,,,shared\r\n'
    assert third == 'q1,1,flat,memory,mini,,Why?,A,"s2,s1",3,True,2,True,3,2.5,1,0,0.5,1,0,,shared\r\n'
    [failed] = search_rows(search(doc_rank=None, error="=Late"), [1])
    assert search_line(FLAT, failed) == "q1,1,flat,memory,mini,,Why?,A,,1,,,,,,1,0,,,,'=Late,\r\n"


def test_recalls_are_shares_of_the_queries_that_were_answered():
    searches = [
        search("q1", section_rank=2, expected_sections="s1,s2"),
        search("q2", doc_rank=-1, section_rank=-1, expected_sections="s1"),
        search("q3", doc_rank=7),
        search("q4", doc_rank=None, error="Late."),
    ]
    row = summary_row(searches, [1, 5])
    assert [row[f"doc_recall_at_{k}"] for k in (1, 3, 5, 10)] == ["0.0", "", str(1 / 3), ""]
    assert [row[f"section_recall_at_{k}"] for k in (1, 3, 5, 10)] == ["0.0", "", "0.5", ""], (
        "one right section is enough"
    )
    assert (row["doc_mrr"], row["section_mrr"]) == (str(0.5 / 3), "0.25"), "rank 7 is past the greatest cutoff"
    assert row["queries_evaluated"] == "3"


def test_a_query_is_found_and_a_search_counted_once():
    row = summary_row([search(expected_doc="A"), search(expected_doc="C", doc_rank=-1), search("q2", doc_rank=-1)], [5])
    assert (row["doc_recall_at_5"], row["doc_mrr"]) == ("0.5", "0.25")
    searches = [search(run=run, expected_doc=name, search_time_ms=10.0 * run) for run in (1, 2) for name in "AB"]
    row = summary_row(searches, [5])
    assert (row["total_embed_calls"], row["avg_search_time_ms"], row["p50_search_time_ms"]) == ("2", "15.0", "20.0")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"documents": ("B", "A")}, "1.0"),
        ({"documents": ("B", "C")}, "0.5"),
        ({"error": "Late.", "documents": ()}, "0.5"),
    ],
)
def test_consistency_compares_results_of_all_repetitions(second, expected):
    failed = [search("q0", run, error="Late.") for run in (1, 2)]
    searches = [search("q1"), search("q1", 2, **second), search("q2"), search("q2", 2), *failed]
    assert summary_row(searches, [5])["consistency_score"] == expected


def test_consistency_looks_at_the_first_documents_alone():
    searches = [search(), search(run=2, documents=("B", "C"))]
    assert summary_row(searches, [1])["consistency_score"] == "1.0"
