import pytest
from django.db import connection

from apps.operations.launching import OperationActiveError, cancel_operation
from apps.operations.working import perform_batch
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Chunk, ChunkSet, Index, LexicalIndex, LexicalPiece
from apps.retrieval.search import vectors as tables
from apps.retrieval.search.vectors import locate_vectors, map_vectors
from benchbench.errors import ConflictError
from tests.created import create_benchmark
from tests.factories import make_collection
from tests.library import make_library
from tests.retrieval.opened import KEYWORDS

pytestmark = pytest.mark.django_db


def test_everything_that_only_it_used_goes(fruit, built, django_capture_on_commit_callbacks):
    index = built(fruit)
    map_vectors(index)
    table, file = index.vector_table, locate_vectors(index)
    with django_capture_on_commit_callbacks(execute=True):
        delete_index(index)
    assert tables.count_rows(table) == 0
    assert not file.exists()
    assert [model.objects.count() for model in (Index, ChunkSet, Chunk, LexicalIndex, LexicalPiece)] == [0] * 5
    assert fruit.documents.count() == 5


def test_parts_used_by_another_index_are_kept(fruit, built):
    one, second = built(fruit), built(fruit, encoder="keyword:fig")
    delete_index(one)
    second.refresh_from_db()
    assert second.chunk_set.chunks.count() == 5
    assert second.lexical_index.pieces.exists()
    assert tables.count_rows(second.vector_table) == 5


def test_chunks_go_in_a_few_statements_with_their_links(built, django_assert_max_num_queries):
    """However many they are: the ORM takes a statement for every hundred, and loads them first."""
    index = built(make_collection("many", [{"text": "apple " * 30} for _ in range(300)]), chunk_parameters={"size": 20})
    chunks = index.chunk_set.chunks
    assert chunks.count() > 2000
    first, *remaining = chunks.all()[:500]
    first.children.add(*remaining)
    with django_assert_max_num_queries(40):
        delete_index(index)
    assert not Chunk.objects.exists()
    assert not Chunk.children.through.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # nothing points at what is gone


def test_an_index_that_was_only_declared_can_go(fruit):
    delete_index(create_index(fruit, name="index"))
    assert not Index.objects.exists()


def test_not_while_runs_point_at_it():
    benchmark = create_benchmark(make_library(documents=5, queries=2), name="b", matrix={"search_modes": ["dense"]})
    index = benchmark.runs.get().index
    with pytest.raises(ConflictError, match='The index "keywords" cannot be deleted: it is used by'):
        delete_index(index)
    assert tables.count_rows(index.vector_table) == 5


def test_not_while_it_is_being_built(fruit):
    index = create_index(fruit, name="index", encoder=KEYWORDS)
    operation = build_index(index)
    perform_batch(operation.batches.get().pk, owner="worker")
    with pytest.raises(OperationActiveError, match='The index "index" is being built: cancel the build first'):
        delete_index(index)
    assert tables.count_rows(index.vector_table) == 5
    cancel_operation(operation)
    delete_index(index)
    assert not Index.objects.exists()
