"""The CSV files of the strategy benchmark: their columns, and what becomes of what was not run, found or answered."""

import csv
import io
from typing import Any

import pytest

from benchbench.files.strategy_results import (
    Configuration,
    Content,
    IndexStats,
    Search,
    consistency_of,
    index_stats,
    search_header,
    search_line,
    search_rows,
    summarised,
    summary,
)

FLAT = Configuration("flat", "memory", "mini")
STATS = IndexStats(1.5, 2, 6, 6, 0, 6)


def search(query: str = "q1", run: int = 1, **others: Any) -> Search:
    made: dict[str, Any] = {"question": "Why?", "expected_doc": "A", "doc_rank": 2, "documents": ("B", "A")}
    return Search(query_id=query, run=run, **(made | {"embed_calls": 1, "llm_calls": 0} | others))


def summary_row(searches: list[Search], cutoffs: list[int], **options: Any) -> dict[str, str]:
    rows = [row for search in searches for row in search_rows(search, cutoffs)]
    consistency = consistency_of(searches, max(cutoffs))
    made = summarised(FLAT, STATS, rows, consistency_score=consistency, runs_per_query=2, **options)
    return next(csv.DictReader(io.StringIO("".join(summary([made])))))


def test_the_columns_are_those_of_formats_md() -> None:
    told = "strategy,backend,embedding_model,llm_model"
    index, *_ = index_stats([(FLAT, STATS)])
    assert index == f"{told},duration_sec,num_documents,num_chunks,num_vectors,llm_calls,embed_calls\r\n"
    assert search_header() == (
        f"query_id,run,{told},question,expected_doc,expected_sections,top_k,doc_found,doc_rank,section_found,"
        "section_rank,search_time_ms,embed_calls,llm_calls,evidence_recall,answer_token_overlap,rouge_l,error,execution\r\n"
    )
    header, *_ = summary([summarised(FLAT, STATS, [], consistency_score=None, runs_per_query=1)])
    assert header == (
        f"{told},index_time_sec,num_vectors,doc_recall_at_1,doc_recall_at_3,doc_recall_at_5,doc_recall_at_10,"
        "section_recall_at_1,section_recall_at_3,section_recall_at_5,section_recall_at_10,doc_mrr,section_mrr,"
        "avg_search_time_ms,p50_search_time_ms,p95_search_time_ms,consistency_score,total_llm_calls,"
        "total_embed_calls,queries_evaluated,runs_per_query,execution\r\n"
    )


def test_an_error_has_a_column_where_there_is_one() -> None:
    header, row, failed = index_stats([(FLAT, STATS), (FLAT, IndexStats(error="Gone."))])
    assert header.endswith("embed_calls,error\r\n")
    assert (row, failed) == ("flat,memory,mini,,1.5,2,6,6,0,6,\r\n", "flat,memory,mini,,,,,,,,Gone.\r\n")
    row_of_failed = summary_row([], [1], error="Gone.")
    assert (row_of_failed["error"], row_of_failed["index_time_sec"], row_of_failed["total_embed_calls"]) == (
        *("Gone.", "1.5"),
        "",
    )


def test_a_search_has_a_line_a_cutoff_which_cuts_its_ranking() -> None:
    texts = {3: Content(0.5, 1, 0)}
    found = search(section_rank=3, expected_sections="s2,s1", search_time_ms=2.5, execution="shared", content=texts)
    first, third = (search_line(FLAT, row) for row in search_rows(found, [1, 3]))
    assert first == 'q1,1,flat,memory,mini,,Why?,A,"s2,s1",1,False,-1,False,-1,2.5,1,0,,,,,shared\r\n'
    assert third == 'q1,1,flat,memory,mini,,Why?,A,"s2,s1",3,True,2,True,3,2.5,1,0,0.5,1,0,,shared\r\n'
    [failed] = search_rows(search(doc_rank=None, error="=Late"), [1])
    assert search_line(FLAT, failed) == "q1,1,flat,memory,mini,,Why?,A,,1,,,,,,1,0,,,,'=Late,\r\n"


def test_recalls_are_shares_of_the_queries_that_were_answered() -> None:
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


def test_a_query_is_found_by_the_first_of_its_documents() -> None:
    row = summary_row([search(expected_doc="A"), search(expected_doc="C", doc_rank=-1), search("q2", doc_rank=-1)], [5])
    assert (row["doc_recall_at_5"], row["doc_mrr"]) == ("0.5", "0.25")


def test_each_search_counts_once_however_many_documents_it_was_to_find() -> None:
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
def test_consistency_is_of_what_all_repetitions_list(second: dict[str, Any], expected: str) -> None:
    failed = [search("q0", run, error="Late.") for run in (1, 2)]
    searches = [search("q1"), search("q1", 2, **second), search("q2"), search("q2", 2), *failed]
    assert summary_row(searches, [5])["consistency_score"] == expected


def test_consistency_looks_at_the_first_documents_alone() -> None:
    searches = [search(), search(run=2, documents=("B", "C"))]
    assert summary_row(searches, [1])["consistency_score"] == "1.0"
