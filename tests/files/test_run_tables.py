"""Rankings in tables, and in JSON by query and document, as other programs write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchbench.errors import BenchbenchError
from benchbench.files.ratings import build_text_key
from benchbench.files.runs import read_run_file
from tests.files.samples import write_file

PEAR = build_text_key("Pear pie")
QUERIES = {"q1", "q2", PEAR}


def read(path: Path, **options: Any) -> dict[str, tuple[list[str], list[float]]]:
    run = read_run_file(path, QUERIES, **options)
    assert run.format == "table"
    return {query: (list(ranked.documents), ranked.scores.tolist()) for query, ranked in run.rankings.items()}


SCORED: dict[str, tuple[str, Any]] = {
    "ranx": ("run.json", {"q1": {"d1": 0.5, "d2": 0.75}}),
    "ranks and scores": ("run.csv", "query_id,doc_id,rank,score\nq1,d1,2,0.5\nq1,d2,1,0.75\n"),
    "scores in any order": ("run.tsv", "query\turl\tscore\nq1\td1\t.5\nq1\td2\t.75\n"),
    "lines of JSON": (
        "run.jsonl",
        '{"qid": "q1", "docid": "d1", "score": 0.5}\n{"qid": "q1", "docid": "d2", "score": 0.75}\n',
    ),
    "a list": (
        "run.json",
        [{"query": "q1", "document": "d2", "score": 0.75}, {"query": "q1", "document": "d1", "score": 0.5}],
    ),
    "Windows-1252": ("run.csv", "query;doc;score;Größe\nq1;d1;0.5;ä\nq1;d2;0.75;\n".encode("cp1252")),
}


@pytest.mark.parametrize("name", SCORED)
def test_scores_of_many_programs_rank_documents(name: str, tmp_path: Path) -> None:
    file, content = SCORED[name]
    assert read(write_file(tmp_path / file, content)) == {"q1": (["d2", "d1"], [0.75, 0.5])}


def test_ranks_alone_are_an_order(tmp_path: Path) -> None:
    path = write_file(tmp_path / "run.csv", "query;document;position\nPear pie;d1;3\nPear pie;d2;1\nq9;d1;1\n")
    assert read(path) == {PEAR: (["d2", "d1"], [3.0, 1.0])}
    assert read_run_file(path, QUERIES).first_unknown == ("q9",)


def test_ranks_and_scores_that_disagree_need_an_order(tmp_path: Path) -> None:
    path = write_file(tmp_path / "run.csv", "query,doc,rank,score\nq1,d1,1,0.5\nq1,d2,2,0.75\n")
    with pytest.raises(BenchbenchError, match=r"ranks and scores that disagree.* Order it by rank or by score\."):
        read(path)
    assert read(path, order_by="rank")["q1"][0] == ["d1", "d2"]
    assert read(path, order_by="score")["q1"][0] == ["d2", "d1"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "a.csv",
            "query,doc,grade\nq1,d1,2\n",
            "no column of scores or ranks: it has query, doc, grade. It seems to hold",
        ),
        ("a.json", json.dumps({"q1": {"d1": 1}}), "whole numbers for all documents, as judgments have"),
        ("a.json", json.dumps({"q1": {"d1": 0.5}, "q2": ["d1"]}), "'q2' must be an object with scores, not a list"),
        ("a.csv", "query,doc,score\nq1,d1,nan\n", "a.csv, line 2 has no number in 'score'"),
        ("a.csv", "query,doc,score\nq1,d1,\n", "a.csv, line 2 has no number in 'score'"),
        ("a.csv", "query,doc,score\nq1,,1\n", "a.csv, line 2 has no text in its column 'doc'"),
        ("a.csv", "query,doc,rank\nq1,d1,0\n", "a.csv, line 2 has the rank 0: ranks are whole numbers from 1"),
        ("a.csv", "query,doc,rank\nq1,d1,1\nq1,d1,2\n", "ranks the item 'd1' of the query 'q1' again"),
        ("a.csv", "query,doc,rank\nq1,d1,1\nq1,d2,1\n", "has the rank 1 twice"),
        ("a.csv", "Frage,Was\nq1,d1\n", "no column of documents, no scores or ranks"),
    ],
)
def test_other_tables_are_refused_with_a_remedy(file: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BenchbenchError) as refused:
        read(write_file(tmp_path / file, content))
    assert message in refused.value.message
