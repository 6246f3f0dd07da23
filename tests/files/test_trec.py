import gzip

import pytest

from benchbench.errors import BenchbenchError
from benchbench.files.trec import Topic, as_text, read_qrels, read_run, read_topics, write_topics

CLASSIC = """
<top>
<num> Number: 301
<title> International Organized Crime
<desc> Description:
Identify organizations that
participate & profit where x < y.
<narr> Narrative:
Topic: crime.
</top>

<TOP>
<num> Number: 302 <title> Poliomyelitis and Post-Polio
"""
XML = """<?xml version="1.0"?>
<topics task="x"><topic number="1"><title>Caf&eacute; &amp; bar</title><narrative>Where.</narrative></topic>
<topic number="2"><query>coronavirus origin</query><question>where from</question></topic></topics>
"""


class TestQrels:
    def test_it_reads_any_white_space_and_any_integer(self, written):
        path = written("\ufeffq1 0 d1 2\r\n  q1\t0   d2\t-1  \n\nq2 Q0 d\u00a01 +0", "qrels.gz")
        assert read_qrels(path) == {"q1": {b"d1": 2, b"d2": -1}, "q2": {"d\u00a01".encode(): 0}}

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("q1 0 d1", r"file\.txt, line 1, has 3 columns: qid, iter, docno and rel are expected\."),
            ("q1 0 d1 1\nq1 0 d2 1 x", "line 2, has 5 columns"),
            ("q1 0 d1 1.5", r"line 1, has the grade '1\.5', which is not an integer"),
            ("q1 0 d1 1_0", "which is not an integer"),
            ("q1 0 d1 1\nq1 0 d1 1", "line 2, judges the document 'd1' of the query 'q1' again"),
            (b"q\xff 0 d 1", r"has the query 'q\\ufffd', which is not UTF-8"),
            ("\n", "holds no judgment"),
        ],
    )
    def test_it_names_the_line_at_fault(self, written, content, sentence):
        with pytest.raises(BenchbenchError, match=sentence):
            read_qrels(written(content))


class TestRun:
    def test_it_groups_the_lines_of_a_query_wherever_they_are(self, written):
        run = read_run(written("q1 Q0 d1 1 .5 tag\nq2 Q0 d1 7 1e-3 tag and more\n\nq1 Q0 ü 1 -inf t", "run.gz"))
        assert {query: (of.documents, of.scores) for query, of in run.items()} == {
            "q1": ([b"d1", "ü".encode()], [0.5, -float("inf")]),
            "q2": ([b"d1"], [0.001]),
        }

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("q1 Q0 d1 1 .5", r"file\.txt, line 1, has 5 columns: qid, Q0, docno, rank, score and a tag are "),
            ("q1 Q0 d1 1 .5 t\nq1 Q0 d2 2 high t", "line 2, has the score 'high', which is not a number"),
            ("q1 Q0 d1 1 nan t", "query 'q1', has a score that is not a number"),
            ("q1 Q0 d1 1 1_0 t", "line 1, has the score '1_0'"),
            (b"q\xff Q0 d 1 1 t", r"has the query 'q\\ufffd', which is not UTF-8"),
            ("", "holds no result"),
        ],
    )
    def test_it_names_the_line_at_fault(self, written, content, sentence):
        with pytest.raises(BenchbenchError, match=sentence):
            read_run(written(content))

    def test_ids_of_any_bytes_can_be_measured_and_utf_8_kept(self, written):
        ranked = read_run(written(b"q1 Q0 d\xff 1 1 t\nq1 Q0 d 1 1 t"))["q1"].ranking()
        assert ranked == [b"d\xff", b"d"]
        with pytest.raises(BenchbenchError, match="Query q1 has a document whose id is not UTF-8"):
            as_text(ranked, where="Query q1")
        assert as_text(["ü".encode(), b"d"], where="Query q1") == ["ü", "d"]
        assert as_text([], where="Query q1") == []

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
        assert read_topics(written(CLASSIC)) == [
            Topic(
                "301",
                "International Organized Crime",
                "Identify organizations that participate & profit where x < y.",
                "Topic: crime.",
            ),
            Topic("302", "Poliomyelitis and Post-Polio"),
        ]

    def test_it_reads_xml(self, written):
        assert read_topics(written(XML, "topics.xml.gz")) == [
            Topic("1", "Café & bar", "", "Where."),
            Topic("2", "coronavirus origin"),
        ]

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("1 no tab", r"file\.txt, line 1, has no tab"),
            ("1\t ", "line 1, has a topic without a text"),
            (" \ta", "line 1, has a topic without a number"),
            (b"1\ta\n2\t\xff", r"file\.txt, line 2, is not UTF-8"),
            ("1\ta\n1\tb", r"line 2, has the number '1' of file\.txt, line 1: it names one topic"),
            ("<top>\n<title> t\n</top>", "line 1, has a topic without a number"),
            ("<top><num>1<title>t</top>\n<top><num>2<narr>t</top>", "line 2, has a topic without a text"),
            ("<xml>", "holds no topic"),
        ],
    )
    def test_it_names_the_line_at_fault(self, written, content, sentence):
        with pytest.raises(BenchbenchError, match=sentence):
            read_topics(written(content))
