"""Sizes of indexes before they are built: bounded, and refused past the limit wherever one is declared or foreseen."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord, SectionRecord
from apps.retrieval.building import IndexingError, most_pieces
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.grids import Grid, plan_grid
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.strategies import STRATEGIES, TREES, get_strategy
from tests.factories import make_collection

CUTS = [{"size": 1, "overlap": 0}, {"size": 7, "overlap": 3}, {"size": 20, "overlap": 0}, {"size": 500, "overlap": 50}]


@pytest.fixture
def texts(db: None) -> Collection:
    """Texts that are hard to bound: blank, of many bytes a character, cut at sections, ending in white space."""
    collection = create_collection("texts")
    sections = (
        SectionRecord("a", start=0, end=9),
        SectionRecord("b", start=9, end=31),
        SectionRecord("c", start=40, end=41),
    )
    records = [
        DocumentRecord("a", "Title", "word " * 20, sections=sections),
        DocumentRecord("b", "", "ü" * 60 + "\n" * 30),
        DocumentRecord("c", "Blank", ""),
        DocumentRecord("d", "One", "x"),
    ]
    import_documents(collection, records)
    collection.refresh_from_db()
    return collection


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_strategy_makes_more_pieces_than_foreseen(texts: Collection, strategy: str, cut: dict[str, Any]) -> None:
    """Nor many less: the bound counts blank windows, and each section's edges as windows of their own."""
    for stated in (cut, cut | {"sections": True}) if strategy == "flat" else (cut,):
        parameters = get_strategy(strategy).check(stated)
        foreseen = most_pieces(texts, strategy, parameters)
        made = make_chunk_set(texts, strategy=strategy, parameters=parameters, grown_by={"test": str(stated)})
        pieces = made.chunk_count + (0 if strategy in TREES else made.summary_count)
        assert pieces <= foreseen <= 2 * pieces + 20, (strategy, stated)


def test_what_would_explode_is_refused_before_anything_is_made(db: None, settings: Any) -> None:
    collection = Collection.objects.create(name="many", document_count=20_000)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO collections_document
            (uuid, collection_id, external_id, uri, content_hash, file_name, title, text, metadata, created_at,
             updated_at)
            SELECT gen_random_uuid(), %s, n, '', '', '', '', repeat('word ', 60), '{}', now(), now()
            FROM generate_series(1, 20000) AS n
            """,
            [collection.pk],
        )
    told = (
        r"A chunk size of 1 cuts the 20,000 documents of \"many\" into up to 6,000,000 chunks, and an index has at "
        r"most 2,000,000 \(BENCHBENCH_MAX_CHUNKS\): choose larger chunks"
    )
    one = {"size": 1, "overlap": 0}
    with pytest.raises(IndexingError, match=told):
        create_index(collection, name="letters", chunk_parameters=one)
    with pytest.raises(IndexingError, match=told):
        plan_grid(collection, Grid([("flat", one)], [""]))
    with pytest.raises(IndexingError, match=told):
        make_chunk_set(collection, strategy="flat", parameters=one)
    assert not Index.objects.exists()
    assert not ChunkSet.objects.exists()
    create_index(collection, name="words", chunk_parameters={"size": 100, "overlap": 0})


def test_pages_say_so_at_their_field(admin_client: Client, settings: Any) -> None:
    settings.BENCHBENCH_MAX_CHUNKS = 10
    collection = make_collection("library", [{"text": "apple pear " * 50}])
    fields = {"collection": collection.pk, "name": "a", "strategy": "flat", "size": "20", "lexical": "on"}
    answer = admin_client.post(reverse("admin:retrieval_index_add"), fields)
    assert "into up to 28 chunks, and an index has at most 10" in answer.content.decode()
    grid = {"collection": collection.pk, "strategies": "flat(size=20, overlap=0)", "lexical": "on"}
    for page in ("index_grid_preview", "index_grid"):
        answer = admin_client.post(reverse(f"admin:{page}"), grid)
        assert "into up to 28 chunks, and an index has at most 10" in answer.content.decode()
    assert not Index.objects.exists()


def test_an_index_is_held_to_the_documents_of_now_when_it_is_built(db: None, settings: Any) -> None:
    collection = make_collection("library", [{"text": "apple pear " * 50}])
    index = create_index(collection, name="a", chunk_parameters={"size": 20, "overlap": 0})
    settings.BENCHBENCH_MAX_CHUNKS = 10
    with pytest.raises(IndexingError, match="up to 28 chunks"):
        build_index(index)
    index.refresh_from_db()
    assert index.status == Index.Status.PENDING
