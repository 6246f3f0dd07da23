import re

import numpy as np
import pytest
from django.contrib import admin

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.operations.handlers import find_handler
from apps.operations.launching import OperationActiveError, cancel_operation
from apps.operations.leasing import Stopped, make_owner
from apps.operations.models import Batch, Operation
from apps.operations.progress import compute_progress
from apps.operations.working import OperationFailedError, perform_batch, wait
from apps.retrieval import tasks
from apps.retrieval.building import cut_ranges
from apps.retrieval.encoders import load_encoder, registry
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import CachedVector, Chunk, ChunkSet, Index, LexicalIndex
from benchbench.errors import ConflictError
from benchbench.process import reset_all
from tests.created import build
from tests.factories import make_collection
from tests.retrieval.opened import KEYWORDS, stored_vectors

pytestmark = pytest.mark.django_db


def many(count=200):
    texts = [f"{'apple ' * (n % 7)}{n}" for n in range(count)]
    return make_collection(documents=[{"external_id": f"{n:04}", "text": text} for n, text in enumerate(texts)])


class TestBuilding:
    def test_it_ends_ready_with_stats(self, fruit, built):
        index = built(fruit)
        assert (index.status, index.dimension, index.encoder_revision) == ("ready", 4, "1")
        stats = index.stats
        assert stats.pop("duration_sec") > stats.pop("vectors_sec") > 0
        counts = dict.fromkeys(("num_documents", "num_chunks", "num_vectors", "embed_calls"), 5)
        size = 5 * 4 * 4 + index.lexical_index.size_bytes
        assert stats.pop("empty") == {"chunks": 1, "document": "e"}
        assert stats == {**counts, "llm_calls": 0, "cache_hits": 0, "bytes": size}
        texts = list(index.chunk_set.chunks.order_by("position").values_list("text", flat=True))
        assert np.array_equal(stored_vectors(index), load_encoder(KEYWORDS).embed_batch(texts))

    def test_work_is_cut_into_batches_by_the_rate_measured(self, built, settings):
        settings.BENCHBENCH_BATCH_SECONDS = 0
        index = built(many())
        assert list(Batch.objects.order_by("ordinal").values_list("payload", flat=True)) == [
            {"part": "chunk"},
            {"part": "lexical"},
            {"part": "encode", "start": 64, "end": 128, "may_run_twice": True},
            {"part": "encode", "start": 128, "end": 192, "may_run_twice": True},
            {"part": "encode", "start": 192, "end": 200, "may_run_twice": True},
        ]
        assert index.stats["num_vectors"] == 200

    def test_words_alone_make_an_index_without_vectors(self, fruit, built):
        index = built(fruit, encoder="")
        assert (index.dimension, index.stats["num_vectors"], index.has_vectors) == (None, 0, False)

    def test_vectors_alone_make_an_index_without_words(self, fruit, built):
        assert built(fruit, lexical=False).lexical_index is None

    def test_indexes_that_chunk_alike_share_chunks_and_words(self, fruit, built):
        one, second = built(fruit), built(fruit, encoder="keyword:fig")
        assert (one.chunk_set, one.lexical_index) == (second.chunk_set, second.lexical_index)
        assert one.fingerprint != second.fingerprint
        assert built(fruit).fingerprint == one.fingerprint

    def test_chunks_of_a_size(self, fruit, built):
        assert built(fruit, chunk_parameters={"size": 5}).stats["num_chunks"] == 3 + 2 + 1 + 1

    def test_a_ready_index_is_never_built_again(self, fruit, built):
        with pytest.raises(ConflictError, match="never changes"):
            build_index(built(fruit))

    def test_it_is_built_once_at_a_time(self, fruit):
        index = create_index(fruit, name="index", encoder=KEYWORDS)
        build_index(index)
        assert index.status == "indexing"
        with pytest.raises(OperationActiveError):
            build_index(index)

    def test_a_model_that_went_fails_it_with_a_sentence(self, fruit, tmp_path):
        folder = tmp_path / "model"
        folder.mkdir()
        operation = build_index(create_index(fruit, name="index", encoder=str(folder)))
        folder.rmdir()
        with pytest.raises(OperationFailedError, match="is not on this machine"):
            wait(operation)
        index = Index.objects.get()
        assert index.status == "failed"
        assert "is not on this machine" in index.error


@pytest.mark.parametrize(("factor", "flaw"), [(0, "zero"), (np.nan, "not finite"), (0.5, "of length 0.5 instead of 1")])
def test_invalid_vector_fails_the_build_and_names_its_document(fruit, monkeypatch, factor, flaw):
    embed = KeywordEncoder.embed_batch

    def broken(encoder, texts, **options):
        factors = [[factor if text == "plum" else 1] for text in texts]
        return embed(encoder, texts, **options) * np.array(factors, np.float32)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", broken)
    index = create_index(fruit, name="index", encoder=KEYWORDS)
    with pytest.raises(OperationFailedError, match=rf"made a vector of chunk 3 \(document 'd'\) that is {flaw}"):
        wait(build_index(index))
    index.refresh_from_db()
    assert index.status == "failed"
    assert not CachedVector.objects.exists()


def test_vectors_of_another_number_fail_the_build(fruit, monkeypatch):
    embed = KeywordEncoder.embed_batch
    monkeypatch.setattr(KeywordEncoder, "embed_batch", lambda *args, **options: embed(*args, **options)[:1])
    with pytest.raises(OperationFailedError, match=r"made vectors of the shape \(1, 4\), not \(5, 4\)"):
        wait(build_index(create_index(fruit, name="index", encoder=KEYWORDS)))


class Counting(KeywordEncoder):
    """A keyword encoder that counts what it encodes, in a revision that a test may change."""

    PREFIX = "counting:"
    encoded = 0

    def embed_batch(self, texts, **options):
        type(self).encoded += len(texts)
        return super().embed_batch(texts, **options)


@pytest.fixture
def counting(monkeypatch, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 0
    monkeypatch.setitem(registry.ENCODERS, "counting:", lambda name: Counting(name.removeprefix("counting:")))
    monkeypatch.setattr(Counting, "encoded", 0)
    yield Counting
    reset_all()


class TestABuildThatIsBrokenOff:
    def start(self, collection):
        """Do the chunk batch and one of the encoding batches."""
        index = create_index(collection, name="index", encoder="counting:apple")
        operation = build_index(index)
        perform_batch(operation.batches.get().pk, owner=make_owner())
        perform_batch(operation.batches.filter(payload__part="encode").last().pk, owner=make_owner())
        return index, operation

    def test_it_goes_on_and_encodes_nothing_twice(self, counting):
        index, operation = self.start(many())
        assert counting.encoded == 64 + 8
        cancel_operation(operation)
        index.refresh_from_db()
        assert index.status == "cancelled"
        wait(build_index(index))
        assert counting.encoded == 200
        index.refresh_from_db()
        assert (index.status, index.stats["num_vectors"]) == ("ready", 200)

    def test_its_vectors_are_those_of_an_undisturbed_build(self, counting, built):
        collection = many()
        index, operation = self.start(collection)
        cancel_operation(operation)
        build(index)
        assert np.array_equal(stored_vectors(index), stored_vectors(built(collection, encoder="counting:apple")))

    def test_build_starts_over_after_documents_changed(self, counting):
        collection = create_collection("library")
        import_documents(collection, [DocumentRecord(f"{n:03}", "", f"apple {n}") for n in range(70)])
        index, operation = self.start(collection)
        cancel_operation(operation)
        import_documents(collection, [DocumentRecord(f"{n:03}", "", f"apple pear {n}") for n in range(80)])
        build(index)
        assert (index.stats["num_vectors"], counting.encoded) == (80, 70 + 80)

    @pytest.mark.parametrize("batches_done", [0, 1, 2])
    def test_chunks_of_documents_that_have_changed_go(self, counting, monkeypatch, batches_done):
        """Those of a build that ended as it tried the encoder, when it had cut, or with vectors and words too."""
        collection = create_collection("library")
        import_documents(collection, [DocumentRecord(f"{n:03}", "", f"apple {n}") for n in range(70)])
        index = create_index(collection, name="index", encoder="counting:apple")
        operation = build_index(index)

        def cancelled(*_):
            cancel_operation(operation)
            raise Stopped

        if batches_done == 0:
            with monkeypatch.context() as patched:
                patched.setattr(tasks, "encode_chunks", cancelled)
                perform_batch(operation.batches.get().pk, owner=make_owner())
        else:
            perform_batch(operation.batches.get().pk, owner=make_owner())
            for batch in operation.batches.all()[1:batches_done]:
                perform_batch(batch.pk, owner=make_owner())
            cancel_operation(operation)
        assert ChunkSet.objects.get().chunk_count == 70
        import_documents(collection, [DocumentRecord(f"{n:03}", "", f"apple pear {n}") for n in range(80)])
        build(index)
        assert len(stored_vectors(index)) == 80
        assert [ChunkSet.objects.get(), LexicalIndex.objects.get()] == [index.chunk_set, index.lexical_index]
        assert Chunk.objects.count() == 80

    def test_model_revision_change_within_a_build_is_rejected(self, counting, monkeypatch):
        _, operation = self.start(many())
        monkeypatch.setattr(Counting, "revision", "2")
        with pytest.raises(OperationFailedError, match=r"in revision 1, but revision 2 is installed\. Install that"):
            wait(operation)

    def test_model_revision_change_restarts_the_next_build(self, counting, monkeypatch):
        index, operation = self.start(many())
        cancel_operation(operation)
        monkeypatch.setattr(Counting, "revision", "2")
        build(index)
        assert (index.encoder_revision, counting.encoded) == ("2", 72 + 200)


class TestProgress:
    def test_it_follows_the_build_from_start_to_end(self, settings):
        settings.BENCHBENCH_BATCH_SECONDS = 0
        index = create_index(many(), name="index", encoder=KEYWORDS)
        operation = build_index(index)
        seen = []
        wait(operation, on_progress=lambda data: seen.append((data["stage"], data["processed_documents"])))
        assert list(dict.fromkeys(stage for stage, _ in seen)) == ["starting", "encoding", "completed"]
        assert [finished for _, finished in seen] == sorted(completed for _, completed in seen)
        kind, data = find_handler(operation).build_event(operation)
        assert kind == "index_progress"
        assert data == {
            "operation_id": str(operation.pk),
            "index_id": str(index.pk),
            "collection_id": str(index.collection_id),
            "status": "completed",
            "stage": "completed",
            "error": None,
            "total_documents": 200,
            "processed_documents": 200,
            "chunks": 200,
            "eta_seconds": 0.0,
            "queue_position": None,
            "waiting_for": None,
        }

    def test_its_words_count_chunks_and_no_steps(self, settings):
        settings.BENCHBENCH_BATCH_SECONDS = 0
        operation = build_index(create_index(many(), name="index", encoder=KEYWORDS))
        seen = []
        wait(operation, on_progress=lambda _: seen.append(compute_progress(Operation.objects.get()).words))
        counts = [match for words in seen for match in re.findall(r"%; encoded (\d+) of (\d+) chunks$", words)]
        assert {chunks for _, chunks in counts} == {"200"}
        assert 1 < len(counts) == len([words for words in seen if "of" in words])

    def test_progress_shows_the_queue_position(self):
        collection = many(1)
        first, second = (build_index(create_index(collection, name=name, encoder=KEYWORDS)) for name in ("a", "b"))
        assert [find_handler(one).build_event(one)[1]["queue_position"] for one in (first, second)] == [0, 1]


def test_ranges_have_no_gaps_and_respect_their_size():
    assert cut_ranges(np.array([0, 1, 2, 3, 4, 7, 9, 10]), np.ones(8, bool), 3) == [(0, 3), (3, 5), (7, 8), (9, 11)]
    assert cut_ranges(np.array([], int), np.array([], bool), 3) == []


def test_cached_texts_do_not_count_towards_range_size():
    new = np.array([False, True, False, True, False, True, False])
    assert cut_ranges(np.arange(7), new, 1) == [(0, 3), (3, 5), (5, 7)]
    assert cut_ranges(np.arange(15_000), np.zeros(15_000, bool), 1) == [(0, 10_000), (10_000, 15_000)]


@pytest.mark.parametrize(("status", "word"), [("pending", "queued"), ("running", "indexing"), (None, "queued")])
def test_index_is_queued_until_a_worker_starts_it(fruit, status, word):
    index = create_index(fruit, name="words", encoder=KEYWORDS)
    name_status = admin.site.get_model_admin(Index).name_status
    assert name_status(index) == "pending"
    Index.objects.update(status=Index.Status.INDEXING)
    index.refresh_from_db()
    if status:
        Operation.objects.create(kind="index", subject_id=index.pk, status=status)
    assert name_status(index) == word
