"""Answers of engines that cannot be stored as they are, that are too long, or that have too many hits."""

import json

import pytest
from django.db import connection

from apps.engines.answers import Paths, map_answer
from apps.engines.errors import AnswerError
from apps.engines.models import EngineAnswer
from apps.records.models import StageList
from benchbench.texts.storable import is_storable
from tests.created import run_benchmark

HALF = b'"\\ud800"'  # of a surrogate pair
MATRIX = {"search_modes": ["sparse", "engine"], "engines": ["shop"], "top_k_values": [10], "k_values_for_metrics": [5]}
HITS = b'{"done": true, "hits": [%s]}'
BODIES = {
    "an id": HITS % (b'{"id": %s}' % HALF),
    "an id with NUL": HITS % b'{"id": "a\\u0000b"}',
    "a long id": HITS % (b'{"id": "%s"}' % (b"x" * 1_000_000)),
    "keys": HITS % (b"{%s: 1}" % HALF),
    "a long key": HITS % (b'{"%s": 1}' % (b"k" * 4_000_000)),
    "a sign of the end": b'{"done": %s, "hits": []}' % HALF,
    "a key of the answer": b'{"done": true, %s: 1}' % HALF,
    "no JSON": b'{"\xed\xa0\x80": \x00',
    "a hit": HITS % HALF,
    "an error": b'"\\ud800 \\u0000 \x00 \xed\xa0\x80' + b"x" * 1_000_000,
}


@pytest.mark.parametrize("answer", BODIES)
def test_answer_that_cannot_be_stored_fails_its_arm_alone(shop_library, shop, answer):
    shop.body, shop.failing = BODIES[answer], answer == "an error"
    benchmark = run_benchmark(shop_library, name="b", matrix=MATRIX)
    ours, engine = benchmark.runs.order_by("run_order")
    assert ours.status == "completed"
    assert engine.error_message.startswith("Every query failed; the first: The engine")
    errors = list(StageList.objects.exclude(error="").values_list("error", flat=True))
    assert len(errors) == 3
    assert max(map(len, errors)) <= 2000
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(octet_length(error)) FROM benchmarks_stagelist")
        assert cursor.fetchone()[0] < 10_000


def test_titles_and_snippets_are_stored_cleaned(shop_library, shop):
    hits = [{"id": one, "title": "a\0\ud800b", "text": "<b>c</b>\ud83d" + "x" * 1_000_000} for one in shop.ranking]
    shop.body = json.dumps({"done": True, "hits": hits[:3]}).encode()
    benchmark = run_benchmark(shop_library, name="b", matrix=MATRIX)
    assert {run.status for run in benchmark.runs.all()} == {"completed"}
    for answer in EngineAnswer.objects.all():
        for _, _, title, snippet in answer.hits:
            assert title == "a\ufffd\ufffdb"
            assert snippet.startswith("c\ufffdxxx")
            assert is_storable(snippet)
            assert len(snippet) == 2000


def test_hits_beyond_those_asked_for_are_not_read():
    """They would be refused: those beyond have no id."""
    answer = {"hits": [{"id": "a", "title": "<b>t</b>", "score": 1.0}] * 11 + [{}] * 400_000}
    lists = {"ids": ["a"] * 11 + [None] * 400_000, "titles": ["t"] * 400_011}
    for hit, paths in (
        (answer, Paths(hits="hits", id="id", title="title", score="score")),
        (lists, Paths(id="ids", title="titles")),
    ):
        assert len(map_answer(hit, paths, limit=11)[0]) == 11
        with pytest.raises(AnswerError):
            map_answer(hit, paths, limit=12)
