"""Vectors that are kept are not made again, and an index costs its work, no matter what the caches had of it."""

import time
from datetime import timedelta

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.retrieval import tasks
from apps.retrieval.deleting import clear_vectors
from apps.retrieval.encoders import load_encoder, vector_cache
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import CachedVector, ChunkSet, LexicalIndex, LLMAnswer, VectorSpace
from apps.retrieval.search.open_indexes import open_index
from benchbench.errors import ConflictError
from tests.retrieval.llm_server import RAPTOR
from tests.retrieval.opened import KEYWORDS, stored_vectors
from tests.retrieval.words import BAG

pytestmark = pytest.mark.django_db


@pytest.fixture
def space():
    return vector_cache.load_document_space(load_encoder(KEYWORDS))


def import_apples(collection, count=300, changed=()):
    texts = [f"{'pear' if n in changed else 'apple'} {n}" for n in range(count)]
    import_documents(collection, [DocumentRecord(f"{n:04}", "", text) for n, text in enumerate(texts)])
    collection.refresh_from_db()
    return collection


def vectors_of(count):
    angles = {hash_text(str(n)): n / count for n in range(count)}
    return {
        key: vector_cache.TextVector(np.array([np.sin(angle), 0, 0, np.cos(angle)], np.float32), 1.0)
        for key, angle in angles.items()
    }


class TestBuilding:
    def test_a_second_index_over_the_same_texts_encodes_nothing(self, built, encoded):
        collection = import_apples(create_collection("apples"))
        first = built(collection, name="first")
        assert len(encoded) == 300
        second = built(collection, name="second", lexical=False)
        assert len(encoded) == 300
        assert np.array_equal(stored_vectors(first), stored_vectors(second))
        assert (first.stats["cache_hits"], first.stats["embed_calls"]) == (0, 300)
        assert (second.stats["cache_hits"], second.stats["embed_calls"]) == (300, 300)

    def test_only_new_texts_are_encoded_after_an_edit(self, built, encoded):
        collection = import_apples(create_collection("apples"))
        built(collection)
        encoded.clear()
        changed = {3, 50, 51, 299}
        index = built(import_apples(collection, changed=changed))
        assert sorted(encoded) == sorted(f"pear {n}" for n in changed)
        assert index.stats["cache_hits"] == 296
        assert np.flatnonzero(stored_vectors(index)[:, 1] > 0.5).tolist() == sorted(changed)

    def test_batches_are_sized_by_new_texts(self, built, encoded, settings):
        settings.BENCHBENCH_BATCH_SECONDS = 0
        collection = import_apples(create_collection("apples"))
        built(collection)
        index = built(import_apples(collection, changed=range(0, 300, 2)))
        assert (index.status, index.stats["cache_hits"]) == ("ready", 150)
        assert len(encoded) == 450

    def test_a_text_that_many_chunks_have_is_encoded_once(self, built, encoded):
        collection = create_collection("copies")
        import_documents(collection, [DocumentRecord(f"{n}", "", "apple") for n in range(20)])
        (apple,) = load_encoder(KEYWORDS).embed_batch(["apple"])
        assert np.array_equal(stored_vectors(built(collection)), np.tile(apple, (20, 1)))
        assert encoded.count("apple") == 2  # the index's, and this test's

    def test_a_query_is_no_document(self, built, encoded, fruit):
        opened = open_index(built(fruit))
        encoded.clear()
        opened.encode(["plum"])
        assert encoded == ["plum"]
        assert set(VectorSpace.objects.values_list("kind", flat=True)) == {"query", "document"}

    def test_invalid_stored_vector_is_encoded_again(self, fruit, built, encoded):
        sound = stored_vectors(built(fruit))
        bad = {"plum": np.zeros(4), "pear": np.full(4, np.nan), "apple pear": np.ones(3)}
        for text, vector in bad.items():
            changed = CachedVector.objects.filter(text_hash=hash_text(text)).update(
                vector=vector.astype("<f4").tobytes()
            )
            assert changed == 1
        encoded.clear()
        assert np.array_equal(stored_vectors(built(fruit, name="second")), sound)
        assert sorted(encoded) == sorted(bad)
        assert CachedVector.objects.count() == 5

    def test_vector_replaced_by_another_worker_is_kept(self, space):
        vector_cache.add_vectors(space, vectors_of(1))
        (key,) = vectors_of(1)
        assert vector_cache.decode_vectors(space, {key: bytes(4 * space.dimension)}) == {}  # as it was read before
        assert vector_cache.find_vectors(space, [key]).keys() == {key}


class TestTheBound:
    def test_eviction_is_least_recently_used_sparing_pinned_and_queries(self, space, settings):
        vector_cache.add_vectors(space, vectors_of(100))
        old = timezone.now() - timedelta(days=9)
        aged = [hash_text(str(n)) for n in range(60)]
        CachedVector.objects.filter(text_hash__in=aged).update(used_at=old)
        CachedVector.objects.filter(text_hash=aged[0]).update(pinned=True)
        queries = VectorSpace.objects.create(encoder="e", revision="1", kind="query", dimension=4)
        CachedVector.objects.create(space=queries, text_hash="q", vector=b"\0" * 16)
        vector_cache.find_vectors(space, aged[1:11])
        settings.BENCHBENCH_VECTOR_CACHE_BYTES = 51 * 16
        assert vector_cache.trim_cache() == 49
        stored = set(CachedVector.objects.values_list("text_hash", flat=True))
        assert len(stored) == 52
        assert stored == {"q", *aged[:11], *(hash_text(str(n)) for n in range(60, 100))}
        assert vector_cache.trim_cache() == 0

    def test_a_build_larger_than_the_cache_is_whole(self, built, settings):
        settings.BENCHBENCH_VECTOR_CACHE_BYTES = 10 * 16
        index = built(import_apples(create_collection("apples"), 100))
        assert (index.status, index.stats["num_vectors"]) == ("ready", 100)
        assert CachedVector.objects.count() == 10

    def test_thousands_are_kept_and_found_whole(self, space):
        vectors = vectors_of(5_000)
        vector_cache.add_vectors(space, vectors)
        vector_cache.add_vectors(
            space, {key: one._replace(vector=one.vector[::-1]) for key, one in vectors.items()}
        )  # what is there stays
        result = vector_cache.find_vectors(space, [*vectors, "unknown"])
        assert result.keys() == vectors.keys()
        assert all(np.array_equal(result[key].vector, vectors[key].vector) for key in vectors)


class TestClearing:
    def test_documents_go_and_queries_and_imported_vectors_stay(self, fruit, built):
        open_index(built(fruit)).encode(["plum"])
        assert clear_vectors(VectorSpace.objects.get(kind="document")) == 5
        assert [space.kind for space in VectorSpace.objects.all()] == ["query"]
        CachedVector.objects.update(pinned=True)
        assert clear_vectors(VectorSpace.objects.get()) == 0
        assert CachedVector.objects.count() == 1

    def test_not_while_an_index_is_built(self, fruit, space):
        build_index(create_index(fruit, name="index", encoder=KEYWORDS))
        with pytest.raises(ConflictError, match="The cache is in use"):
            clear_vectors(space)

    def test_in_the_admin(self, fruit, built, admin_client):
        built(fruit)
        space = VectorSpace.objects.get()
        listed = reverse("admin:retrieval_vectorspace_changelist")
        assert KEYWORDS in admin_client.get(listed).content.decode()
        page = admin_client.get(reverse("admin:retrieval_vectorspace_change", args=[space.pk]))
        assert "clear_selected" in page.content.decode()
        posted = admin_client.post(listed, {"action": "clear_selected", "_selected_action": [space.pk]}, follow=True)
        assert "Deleted 5 document vectors" in posted.content.decode()
        assert not CachedVector.objects.exists()


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


def test_cached_vectors_are_charged_at_their_original_cost(fruit, built, slow):
    first = built(fruit).stats
    assert len(slow) == 5
    second = built(fruit, name="second").stats
    assert (len(slow), second["cache_hits"]) == (5, 5)
    assert first["duration_sec"] >= 5 * EACH
    assert second["duration_sec"] >= 5 * EACH


def test_to_load_the_model_and_to_wait_cost_nothing(fruit, built, monkeypatch):
    def load_slowly(*model):
        time.sleep(2)
        return load_encoder(*model)

    monkeypatch.setattr(tasks, "load_encoder", load_slowly)
    started = time.perf_counter()
    assert 0 < built(fruit).stats["duration_sec"] < time.perf_counter() - started - 2


def test_cached_answers_are_charged_at_their_original_cost(words, built, server):
    server.answer = lambda prompt: "delta"
    first = built(words, encoder=BAG, **RAPTOR)
    LLMAnswer.objects.update(ms=3_000_000.0)
    again = built(words, name="again", encoder=BAG, chunk_parameters={"max_layers": 1}, **RAPTOR)
    assert (len(server.asked), first.chunk_set == again.chunk_set) == (1, False)
    assert first.stats["duration_sec"] < 3_000 <= again.stats["duration_sec"]


def test_shared_parts_are_charged_to_each_index(words, built, server):
    server.answer = lambda prompt: "delta"
    first = built(words, encoder=BAG, **RAPTOR)
    ChunkSet.objects.update(build_seconds=100_000)
    LexicalIndex.objects.update(build_seconds=10_000)
    shares = built(words, name="shares", encoder=BAG, chunk_parameters={"search": "tree"}, **RAPTOR)
    assert (shares.chunk_set, shares.lexical_index) == (first.chunk_set, first.lexical_index)
    assert 110_000 < shares.stats["duration_sec"] < 111_000
