"""Answers mapped to hits: other shapes, and errors that name the path and what it found."""

import json

import pytest

from apps.engines.answers import Hit, Paths, compile_path, map_answer, parse_body
from apps.engines.errors import AnswerError

PLAIN = Paths(hits="hits", id="id", score="score", title="title", snippet="text", total="total")


def refuse(answer, paths=PLAIN):
    with pytest.raises(AnswerError) as refused:
        map_answer(answer, paths)
    return refused.value


class TestHits:
    def test_the_engine_decides_the_order(self):
        hits = [
            {"id": "b", "score": 1},
            {"id": 7, "score": "2.5", "title": ["a", "b"], "text": "x" * 3000},
            {"id": "c"},
        ]
        result, total = map_answer({"hits": hits, "total": "3"}, PLAIN)
        assert result == [Hit("b", 1.0), Hit("7", 2.5, "a … b", "x" * 1999 + "…"), Hit("c")]
        assert total == 3

    def test_parallel_lists_are_hits(self):
        answer = {"ids": [["a", "b"]], "distances": [[0.1, 0.2]], "metadatas": [[{"t": "A"}, None]]}
        paths = Paths(id="ids[0]", score="distances[0]", title="metadatas[0][].{t: t}[].t")
        assert refuse(answer, paths).message.startswith(
            "The path title (metadatas[0][].{t: t}[].t) must find as many values"
        )
        assert map_answer(answer, Paths(id="ids[0]", score="distances[0]"))[0] == [Hit("a", 0.1), Hit("b", 0.2)]

    def test_rows_of_lists_are_hits(self):
        answer = [[0], [[[2], [["_id"]], ["a", 3], ["b", 2]]]]
        paths = Paths(hits="[1][0][2:]", id="[0]", score="[1]", total="[1][0][0][0]")
        assert map_answer(answer, paths, "file:///{id}.md") == ([Hit("file:///a.md", 3.0), Hit("file:///b.md", 2.0)], 2)

    def test_texts_lose_what_cannot_be_stored(self):
        assert map_answer({"hits": [{"id": "a", "title": "x\0\ud800y"}]}, PLAIN)[0] == [
            Hit("a", None, "x\ufffd\ufffdy")
        ]


class TestErrors:
    @pytest.mark.parametrize(
        ("answer", "path", "message"),
        [
            (
                {"error": "no", "took": 1},
                "hits",
                "The path hits (hits) must find a list; it found null in an object, among the keys error, took.",
            ),
            ({"hits": {"a": 1}}, "hits", 'must find a list; it found {"a": 1}'),
            (
                {"hits": [{"id": "a"}, {"ID": "b"}]},
                "id",
                "The path id (id) of hit 2 must find a text or a whole number; it found null in an object, among the "
                "keys ID.",
            ),
            ({"hits": [{"id": ""}]}, "id", 'it found "" in an object'),
            ({"hits": [{"id": True}]}, "id", "it found true"),
            ({"hits": [{"id": "a\0b"}]}, "id", "that can be stored"),
            ({"hits": [{"id": 1, "score": "high"}]}, "score", 'must find a number; it found "high"'),
            ({"hits": [{"id": 1, "score": float("inf")}]}, "score", "must find a number; it found Infinity"),
            ({"hits": [{"id": 1, "title": {"en": "x"}}]}, "title", "must find a text"),
            ({"hits": [], "total": {"value": 1}}, "total", 'must find a whole number; it found {"value": 1}'),
            ({"hits": [None]}, "id", "it found null in null"),
        ],
    )
    def test_an_error_names_path_and_finding(self, answer, path, message):
        error = refuse(answer)
        assert message in error.message
        assert error.path == path

    def test_part_of_an_answer_is_an_error(self):
        paths = Paths(hits="hits", id="id", complete_when="timed_out == `false` && failed == `0`")
        assert map_answer({"timed_out": False, "failed": 0, "hits": []}, paths) == ([], None)
        for answer in ({"timed_out": True, "failed": 0}, {"timed_out": False, "failed": 1}, {}):
            error = refuse({**answer, "hits": [{"id": 1}]}, paths)
            assert error.message.startswith("The engine gave only part of its answer: complete_when (timed_out ==")

    def test_an_expression_that_fails_is_named(self):
        error = refuse({"hits": [{"id": 5}]}, Paths(hits="hits", id="join('-', id)"))
        assert error.message.startswith("The path join('-', id) fails: ")
        assert error.looked_at == {"id": 5}

    @pytest.mark.parametrize("body", [b"<html>", b"", b"\xff", b"[" * 100_000])
    def test_a_body_that_is_no_json_is_an_error(self, body):
        with pytest.raises(AnswerError, match="The answer is not JSON"):
            parse_body(body)


@pytest.mark.parametrize("path", ["a", "a.b", "a.b.c", "x.b"])
@pytest.mark.parametrize("value", [{"a": {"b": {"c": 1}}}, {"a": [1]}, [], None, {"a": {"b": 0}}])
def test_plain_paths_agree_with_the_library(path, value):
    import jmespath

    assert compile_path(path)(value) == jmespath.search(path, json.loads(json.dumps(value)))
