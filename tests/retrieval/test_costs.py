"""What an index costs: its work, whatever the caches had of it, and nothing that it waited for."""

import time

import pytest

from apps.retrieval import tasks
from apps.retrieval.encoders import load_encoder
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.models import ChunkSet, LexicalIndex, LLMAnswer
from tests.retrieval.test_raptor import LLM
from tests.retrieval.words import BAG

pytestmark = pytest.mark.django_db
EACH = 0.1  # seconds that a text takes


@pytest.fixture
def slow(encoded, monkeypatch):
    """Let the keyword encoder take its time; return the texts that it encoded."""
    embed = KeywordEncoder.embed_batch

    def embed_slowly(encoder, batch, **options):
        time.sleep(EACH * len(batch))
        return embed(encoder, batch, **options)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", embed_slowly)
    return encoded


def test_vectors_from_the_cache_cost_what_they_took_when_they_were_made(fruit, built, slow):
    first = built(fruit).stats
    assert len(slow) == 5
    second = built(fruit, name="second").stats
    assert (len(slow), second["cache_hits"]) == (5, 5)
    assert first["duration_sec"] >= 5 * EACH
    assert second["duration_sec"] >= 5 * EACH


def test_to_load_the_model_and_to_wait_cost_nothing(fruit, built, monkeypatch):
    def load_slowly(name):
        time.sleep(2)
        return load_encoder(name)

    monkeypatch.setattr(tasks, "load_encoder", load_slowly)
    started = time.perf_counter()
    index = built(fruit)
    assert 0 < index.stats["duration_sec"] < time.perf_counter() - started - 2


def test_answers_that_are_kept_cost_what_they_took_when_they_were_given(words, built, server):
    server.answer = lambda prompt: "delta"
    first = built(words, encoder=BAG, **LLM)
    LLMAnswer.objects.update(ms=3_000.0)
    again = built(words, name="again", encoder=BAG, chunk_parameters={"max_layers": 1}, **LLM)
    assert (len(server.asked), first.chunk_set == again.chunk_set) == (1, False)
    assert first.stats["duration_sec"] < 3 <= again.stats["duration_sec"]


def test_what_indexes_share_costs_each_the_same(words, built, server):
    server.answer = lambda prompt: "delta"
    first = built(words, encoder=BAG, **LLM)
    ChunkSet.objects.update(made_sec=100)
    LexicalIndex.objects.update(made_sec=10)
    shares = built(words, name="shares", encoder=BAG, chunk_parameters={"search": "tree"}, **LLM)
    assert (shares.chunk_set, shares.lexical_index) == (first.chunk_set, first.lexical_index)
    assert 110 < shares.stats["duration_sec"] < 120
