"""Files of rankings that were made elsewhere, as `benchbench score` ranks them."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchbench.errors import BenchbenchError
from benchbench.files.runs import read_run_file

TREC = "q1 Q0 b 1 0.5 mine\nq1 Q0 a 2 0.5 mine\nq9 Q0 a 1 1 mine\nq1 Q0 c 3 0.7 mine\n"
ENTRIES = [("q1", "b", 1, 0.9), ("q1", "a", 2, 0.5), ("q9", "a", 1, 1.0)]


def write(path: Path, content: str) -> Path:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def flowbaby(entries: list[tuple[str, str, int, float]]) -> str:
    keys = ("query_id", "canonical_item_id", "rank", "score")
    return json.dumps({"run_id": "ours", "entries": [dict(zip(keys, entry, strict=True)) for entry in entries]})


@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
def test_it_ranks_a_trec_run_by_score_and_then_by_id_descending(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, TREC)
    found = read_run_file(path, {"q1"})
    assert (found.format, found.tags, found.others, found.first_others) == ("trec", ("mine",), 1, ("q9",))
    assert found.rankings["q1"].documents == ["c", "b", "a"]
    assert found.rankings["q1"].scores.tolist() == [0.7, 0.5, 0.5]
    assert (found.tied, found.results) == (1, 3)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_pipe_is_refused_since_it_is_read_more_than_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for format in ("", "trec", "flowbaby"):
        with pytest.raises(BenchbenchError, match="pipe is a pipe, which gives its content once: write it to a file"):
            read_run_file(tmp_path / "pipe", {"q1"}, format=format)


def test_scores_that_are_equal_as_singles_are_ties(tmp_path: Path) -> None:
    path = write(tmp_path / "a.run", "q1 Q0 a 1 1.00000001 x\nq1 Q0 b 2 1.0 y\nq1 Q0 c 3 -inf y\n")
    found = read_run_file(path, {"q1"})
    assert found.rankings["q1"].documents == ["b", "a", "c"]
    assert found.rankings["q1"].scores.tolist() == [1.0, 1.00000001, -np.finfo(np.float64).max]
    assert (found.tied, found.tags) == (1, ("x", "y"))


def test_a_flowbaby_run_has_its_own_order_or_the_one_asked_for(tmp_path: Path) -> None:
    agreed = read_run_file(write(tmp_path / "a.json", flowbaby(ENTRIES)), {"q1"})
    assert (agreed.format, agreed.tags, agreed.others) == ("flowbaby", ("ours",), 1)
    assert agreed.rankings["q1"].documents == ["b", "a"]
    rising = write(tmp_path / "b.json", flowbaby([("q1", "b", 1, 0.1), ("q1", "a", 2, 0.5)]))
    with pytest.raises(BenchbenchError, match="ranks and scores that disagree"):
        read_run_file(rising, {"q1"})
    assert read_run_file(rising, {"q1"}, order_by="rank").rankings["q1"].scores.tolist() == [0.1, 0.5]
    assert read_run_file(rising, {"q1"}, order_by="score").rankings["q1"].documents == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.run", "q1 Q0 a 1 2 x\nq1 Q0 b 2 1 x\n\nq1 Q0 a 3 0 x\n", "a.run, line 4, ranks the document 'a' .* line 1"),
        ("a.json", flowbaby([*ENTRIES, ("q1", "b", 3, 0.1)]), r"a.json, entries\[3\], .* after entries\[0\]"),
        ("a.run", "q1 Q0 a 1 2 x\nq1 Q0 b 2 high x\n", "a.run, line 2, has the score"),
        ("qrels.txt", "\nq1 0 a 1\n", "does not look like a run: .*, and line 2 has 4 columns;"),
        ("empty.run", "\n", "empty.run is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    with pytest.raises(BenchbenchError, match=sentence):
        read_run_file(write(tmp_path / name, content), {"q1"})


def test_a_format_that_is_told_is_not_looked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.run", "q1 Q0 a 1 2\n")
    with pytest.raises(BenchbenchError, match=r"a\.run, line 1, has 5 columns"):
        read_run_file(path, {"q1"}, format="trec")
    with pytest.raises(BenchbenchError, match="leave the order out"):
        read_run_file(write(path, TREC), {"q1"}, order_by="rank")
    with pytest.raises(BenchbenchError, match="there are trec, flowbaby"):
        read_run_file(path, {"q1"}, format="csv")


def test_what_nobody_asked_for_cannot_stop_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.run", "q1 Q0 a 1 2 x\nq2 Q0 b 2 1 x\nq2 Q0 b 3 1 x\n")
    assert read_run_file(path, {"q1"}).others == 1
