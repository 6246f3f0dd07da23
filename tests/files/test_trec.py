"""Files of TREC, and files of rankings that were made elsewhere, as `benchbench score` ranks them."""

import gzip
import hashlib
import json
import os

import numpy as np
import pytest

from benchbench.errors import BenchbenchError
from benchbench.files.runs import read_run_file
from benchbench.files.trec import Topic, decode_ids, read_qrels, read_run, read_topics, write_topics
from tests.files.samples import CLASSIC_TOPICS, XML_TOPICS


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (read_qrels, "q1 Q0 d1 1 2.5 bm25", r"rel are expected; six are those of a run, so the files may be swapped\."),
        (read_run, "q1 0 d1 1", r"a tag are expected; four are those of judgments, so the files may be swapped\."),
        (read_qrels, "q1 0 d1", r"file\.txt, line 1, has 3 columns: qid, iter, docno and rel are expected\."),
        (read_qrels, "q1 0 d1 1\nq1 0 d2 1 x", "line 2, has 5 columns"),
        (read_qrels, "q1 0 d1 1.5", r"line 1, has the grade '1\.5', which is not an integer"),
        (read_qrels, "q1 0 d1 1_0", "which is not an integer"),
        (read_qrels, "q1 0 d1 1\nq1 0 d1 1", "line 2, judges the document 'd1' of the query 'q1' again"),
        (read_qrels, b"q\xff 0 d 1", r"has the query 'q\\ufffd', which is not UTF-8"),
        (read_qrels, "\n", "contains no judgments"),
        (read_run, "q1 Q0 d1 1 .5", r"file\.txt, line 1, has 5 columns: qid, Q0, docno, rank, score and a tag are "),
        (read_run, "q1 Q0 d1 1 .5 t\nq1 Q0 d2 2 high t", "line 2, has the score 'high', which is not a number"),
        (read_run, "q1 Q0 d1 1 nan t", "query 'q1', has a score that is not a number"),
        (read_run, "q1 Q0 d1 1 1_0 t", "line 1, has the score '1_0'"),
        (
            read_run,
            "q1 Q0 my doc 1 0.5 tag",
            r"line 1, can be read as a result for the document 'my doc': columns end at ",
        ),
        (read_run, "q1 Q0 d1 1 1 t\nq1 Q0 my 2 1 0.5 t", "line 2, can be read as a result for the document 'my 2'"),
        (read_run, "q1 Q0 my doc 1 0.5", "can be read as a result for the document 'my doc'"),
        (read_run, "q 1 Q0 d1 1 0.5 tag", "can be read as a result for the document 'Q0 d1'"),
        (read_run, "q 1 Q0 5 1 0.5 tag", "can be read as a result for the document 'Q0 5'"),
        (read_run, "q1 Q0 a b c 3 -1e-3 two words", "can be read as a result for the document 'a b c'"),
        (read_run, "q1 Q0 a\tb 3 1 t", r"can be read as a result for the document 'a b'"),
        (read_run, b"q\xff Q0 d 1 1 t", r"has the query 'q\\ufffd', which is not UTF-8"),
        (read_run, "", "contains no results"),
        (read_topics, "1 no tab", r"file\.txt, line 1, has no tab"),
        (read_topics, "1\t ", "line 1, has a topic without a text"),
        (read_topics, " \ta", "line 1, has a topic without a number"),
        (read_topics, b"1\ta\n2\t\xff", r"file\.txt, line 2, is not UTF-8"),
        (read_topics, "1\ta\n1\tb", r"line 2, repeats the number '1' of file\.txt, line 1: give each topic its own"),
        (read_topics, "<top>\n<title> t\n</top>", "line 1, has a topic without a number"),
        (read_topics, "<top><num>1<title>t</top>\n<top><num>2<narr>t</top>", "line 2, has a topic without a text"),
        (read_topics, "<xml>", "contains no topics"),
    ],
)
def test_it_names_the_line_at_fault(written, read, content, sentence):
    with pytest.raises(BenchbenchError, match=sentence):
        read(written(content))


class TestQrels:
    def test_it_reads_any_white_space_and_any_integer(self, written):
        path = written("\ufeffq1 0 d1 2\r\n  q1\t0   d2\t-1  \n\nq2 Q0 d\u00a01 +0", "qrels.gz")
        assert read_qrels(path) == {"q1": {b"d1": 2, b"d2": -1}, "q2": {"d\u00a01".encode(): 0}}


class TestRun:
    def test_scattered_lines_of_a_query_are_grouped(self, written):
        run = read_run(written("q1 Q0 d1 1 .5 tag\nq2 Q0 d1 7 1e-3 tag and more\n\nq1 Q0 ü 1 -inf t", "run.gz"))
        assert {query: (owner.documents, owner.scores) for query, owner in run.items()} == {
            "q1": ([b"d1", "ü".encode()], [0.5, -float("inf")]),
            "q2": ([b"d1"], [0.001]),
        }

    @pytest.mark.parametrize("tag", ["my tag", "bm25 k1=.9 b=.4", "run 1", "7", "2.5 3"])
    @pytest.mark.parametrize("rank", ["1", "-1", "0", "x", "-"])
    def test_tags_have_any_words_and_ranks_any_text(self, written, rank, tag):
        path = written(f"q1 Q0 d1 {rank} 0.5 {tag}\n")
        assert read_run(path)["q1"].documents == [b"d1"]
        assert read_run_file(path, {"q1"}).tags == (tag,)

    def test_ids_of_any_bytes_rank_but_text_requires_utf8(self, written):
        ranked = read_run(written(b"q1 Q0 d\xff 1 1 t\nq1 Q0 d 1 1 t"))["q1"].rank()
        assert ranked == [b"d\xff", b"d"]
        with pytest.raises(BenchbenchError, match="Query q1 has a document whose id is not UTF-8"):
            decode_ids(ranked, location="Query q1")
        assert decode_ids(["ü".encode(), b"d"], location="Query q1") == ["ü", "d"]
        assert decode_ids([], location="Query q1") == []

    def test_a_broken_archive_is_a_sentence(self, tmp_path):
        path = tmp_path / "run.gz"
        path.write_bytes(gzip.compress(b"q1 Q0 d1 1 .5 t\n" * 1000)[:-9])
        with pytest.raises(BenchbenchError, match=r"run\.gz cannot be unpacked past line"):
            read_run(path)


class TestTopics:
    def test_it_reads_lines(self, written):
        assert read_topics(written("1\twhat is it\n2\ta\ttab")) == [Topic("1", "what is it"), Topic("2", "a\ttab")]

    def test_only_ascii_white_space_is_not_part_of_them(self, written):
        topics = [Topic("1\u00a0", "\u2003what is it\u00a0"), Topic("2", "\u3000x")]
        assert read_topics(written("".join(write_topics(topics)))) == topics
        for topic in (Topic("1 ", "a"), Topic("1", "a\r"), Topic("1", "\va"), Topic("1", "\u3000")):
            with pytest.raises(BenchbenchError, match="does not fit on a line"):
                list(write_topics([topic]))

    def test_it_reads_open_tags(self, written):
        assert read_topics(written(CLASSIC_TOPICS)) == [
            Topic(
                "301",
                "International Organized Crime",
                "Identify organizations that participate & profit where x < y.",
                "Topic: crime.",
            ),
            Topic("302", "Poliomyelitis and Post-Polio"),
        ]

    def test_it_reads_xml(self, written):
        assert read_topics(written(XML_TOPICS, "topics.xml.gz")) == [
            Topic("1", "Café & bar", "", "Where."),
            Topic("2", "coronavirus origin"),
        ]


TREC_RUN = "q1 Q0 b 1 0.5 mine\nq1 Q0 a 2 0.5 mine\nq9 Q0 a 1 1 mine\nq1 Q0 c 3 0.7 mine\n"
ENTRIES = [("q1", "b", 1, 0.9), ("q1", "a", 2, 0.5), ("q9", "a", 1, 1.0)]


def write(path, content):
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def flowbaby(entries):
    keys = ("query_id", "canonical_item_id", "rank", "score")
    return json.dumps({"run_id": "ours", "entries": [dict(zip(keys, entry, strict=True)) for entry in entries]})


@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
def test_trec_run_ranks_by_score_then_id_descending(tmp_path, name):
    path = write(tmp_path / name, TREC_RUN)
    run_file = read_run_file(path, {"q1"})
    assert (run_file.format, run_file.tags, run_file.unknown_count, run_file.first_unknown) == (
        "trec",
        ("mine",),
        1,
        ("q9",),
    )
    assert run_file.rankings["q1"].documents == ["c", "b", "a"]
    assert run_file.rankings["q1"].scores.tolist() == [0.7, 0.5, 0.5]
    assert (run_file.tied, run_file.results) == (1, 3)
    assert run_file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for format in ("", "trec", "flowbaby"):
        with pytest.raises(BenchbenchError, match="pipe is a pipe, which can be read only once: save it to a file"):
            read_run_file(tmp_path / "pipe", {"q1"}, format=format)


def test_scores_that_are_equal_as_singles_are_ties(tmp_path):
    path = write(tmp_path / "a.run", "q1 Q0 a 1 1.00000001 x\nq1 Q0 b 2 1.0 y\nq1 Q0 c 3 -inf y\n")
    run_file = read_run_file(path, {"q1"})
    assert run_file.rankings["q1"].documents == ["b", "a", "c"]
    assert run_file.rankings["q1"].scores.tolist() == [1.0, 1.00000001, -np.finfo(np.float64).max]
    assert (run_file.tied, run_file.tags) == (1, ("x", "y"))


def test_flowbaby_run_uses_its_own_or_the_requested_order(tmp_path):
    agreed = read_run_file(write(tmp_path / "a.json", flowbaby(ENTRIES)), {"q1"})
    assert (agreed.format, agreed.tags, agreed.unknown_count) == ("flowbaby", ("ours",), 1)
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
        ("qrels.txt", "\nq1 0 a 1\n", r"does not look like a run\. .*, but line 2 has 4 columns\."),
        ("empty.run", "\n", "empty.run is empty"),
    ],
)
def test_errors_name_their_location(tmp_path, name, content, sentence):
    with pytest.raises(BenchbenchError, match=sentence):
        read_run_file(write(tmp_path / name, content), {"q1"})


def test_explicit_format_skips_detection(tmp_path):
    path = write(tmp_path / "a.run", "q1 Q0 a 1 2\n")
    with pytest.raises(BenchbenchError, match=r"a\.run, line 1, has 5 columns"):
        read_run_file(path, {"q1"}, format="trec")
    with pytest.raises(BenchbenchError, match="leave out the order"):
        read_run_file(write(path, TREC_RUN), {"q1"}, order_by="rank")
    with pytest.raises(BenchbenchError, match="choose one of trec, flowbaby"):
        read_run_file(path, {"q1"}, format="csv")
    path = write(tmp_path / "a.run", "q1 Q0 a 1 2 x\nq2 Q0 b 2 1 x\nq2 Q0 b 3 1 x\n")
    assert read_run_file(path, {"q1"}).unknown_count == 1
