"""Chunks and words that an index takes at the moment when another index that had them is deleted."""

import pytest
from django.db import connection, transaction

from apps.operations.ending import sweep
from apps.operations.launching import cancel_operation
from apps.operations.leasing import Lease, Stopped, claim, make_owner
from apps.operations.working import perform_batch, wait
from apps.retrieval.building import assign_chunk_set
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Chunk, ChunkSet, Index, LexicalIndex
from apps.retrieval.search.full_text import make_full_text
from apps.retrieval.search.lexical_indexes import make_lexical_index
from apps.retrieval.tasks import index_words
from tests.created import build
from tests.factories import make_collection
from tests.retrieval.opened import KEYWORDS
from tests.sessions import elsewhere, until_waited_for

pytestmark = pytest.mark.django_db(transaction=True)
INDEX_MODELS = (ChunkSet, Chunk, LexicalIndex)


@pytest.fixture
def few():
    return make_collection("few", [{"external_id": "a", "text": "apple"}, {"external_id": "b", "text": "pear"}])


def begun(collection, name="begun", encoder=""):
    """An index that has its chunks, and waits for its words."""
    index = create_index(collection, name=name, encoder=encoder)
    operation = build_index(index)
    perform_batch(operation.batches.get().pk, owner=make_owner())
    index.refresh_from_db()
    return index, operation


@pytest.mark.parametrize("make", [make_lexical_index, make_full_text])
def test_words_of_a_cancelled_build_go_too(few, make):
    index, operation = begun(few)
    assert index.chunk_set
    cancel_operation(operation)
    with transaction.atomic():
        make(index.chunk_set)
        elsewhere(sweep).result(timeout=60)
        assert all(model.objects.exists() for model in INDEX_MODELS), "what is held is left to the next time"
    sweep()
    assert not any(model.objects.exists() for model in INDEX_MODELS)


def test_a_cancelled_build_leaves_no_words(few):
    index, operation = begun(few)
    batch = claim(operation.batches.get(payload__part="lexical").pk, make_owner())
    assert batch
    cancel_operation(operation)
    with pytest.raises(Stopped):
        index_words(index, batch, Lease(batch))
    assert not LexicalIndex.objects.exists()
    sweep()
    assert not any(model.objects.exists() for model in INDEX_MODELS)


def test_cancelled_build_frees_resources_and_next_reuses_its_vectors(few):
    index, operation = begun(few, encoder=KEYWORDS)
    assert index.vector_table in connection.introspection.table_names()
    cancel_operation(operation)
    sweep()
    assert not any(model.objects.exists() for model in INDEX_MODELS)
    assert index.vector_table not in connection.introspection.table_names()
    build(index)
    assert (index.status, index.stats["num_vectors"], index.stats["cache_hits"]) == ("ready", 2, 2)


def test_parts_used_by_another_index_are_kept(few):
    wait(build_index(create_index(few, name="other")))
    _, operation = begun(few)
    cancel_operation(operation)
    sweep()
    assert [model.objects.count() for model in INDEX_MODELS] == [1, 2, 1]


def test_restarted_build_keeps_existing_parts(few):
    index, operation = begun(few)
    cancel_operation(operation)
    wait(again := build_index(index))
    sweep()
    assert again.batches.count() == 2
    assert Chunk.objects.count() == 2


def test_chunks_that_another_index_is_taking_stay(few):
    index, operation = begun(few)
    cancel_operation(operation)
    second = create_index(few, name="other")
    with transaction.atomic():
        taken = make_chunk_set(few, strategy="flat", parameters={})
        deleting = elsewhere(lambda: delete_index(Index.objects.get(pk=index.pk)))
        until_waited_for(deleting)
        assign_chunk_set(second, taken)
    deleting.result(timeout=60)
    assert Chunk.objects.filter(chunk_set=taken).count() == 2


def test_words_that_another_index_is_taking_stay(few):
    index = build(create_index(few, name="index"))
    second, _ = begun(few, "other")
    assert second.chunk_set
    with transaction.atomic():
        words = make_lexical_index(second.chunk_set)
        deleting = elsewhere(lambda: delete_index(Index.objects.get(pk=index.pk)))
        # It is not waited for before it has deleted the index, whose words are then no index's.
        until_waited_for(deleting)
        Index.objects.filter(pk=second.pk).update(lexical_index=words)
    deleting.result(timeout=60)
    assert LexicalIndex.objects.get() == words


def test_chunks_that_are_being_deleted_are_made_again(few):
    index, operation = begun(few)
    cancel_operation(operation)
    second = create_index(few, name="other")
    started = build_index(second)
    with transaction.atomic():
        delete_index(index)
        building = elsewhere(lambda: wait(started))
        until_waited_for(building)
    building.result(timeout=60)
    second.refresh_from_db()
    assert second.status == "ready"
    assert [ChunkSet.objects.get(), LexicalIndex.objects.get()] == [second.chunk_set, second.lexical_index]
    assert Chunk.objects.count() == 2


def test_concurrent_index_deletions_delete_their_shared_chunks(few):
    index = build(create_index(few, name="index"))
    second = build(create_index(few, name="other"))
    with transaction.atomic():
        delete_index(index)
        deleting = elsewhere(lambda: delete_index(Index.objects.get(pk=second.pk)))
        until_waited_for(deleting)
    deleting.result(timeout=60)
    assert not any(model.objects.exists() for model in INDEX_MODELS)


def test_tree_level_does_not_wait_for_the_lexical_index(transactional_db):
    texts = [f"{topic} {topic}. Number {index}." for topic in ("apple", "pear", "plum") for index in range(12)]
    orchard = make_collection("orchard", [{"external_id": f"{n:02}", "text": text} for n, text in enumerate(texts)])
    operation = build_index(create_index(orchard, name="tree", encoder=KEYWORDS, strategy="raptor_extractive"))
    perform_batch(operation.batches.get().pk, owner=make_owner())
    level = operation.batches.get(payload__part="grow")
    chunk_set = ChunkSet.objects.get()
    with transaction.atomic():
        make_lexical_index(chunk_set)
        assert elsewhere(lambda: perform_batch(level.pk, owner=make_owner())).result(timeout=60)
    assert chunk_set.chunks.filter(level=1).exists()


def test_reusing_chunks_does_not_wait_for_their_lexical_index(few):
    index, _ = begun(few)
    assert index.chunk_set
    with transaction.atomic():
        make_lexical_index(index.chunk_set)
        assert elsewhere(lambda: begun(few, "other")).result(timeout=60)[0].chunk_set == index.chunk_set
