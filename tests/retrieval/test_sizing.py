"""Chunks are cut as stated, and an index is bounded, and refused past the limit, before it is built."""

import pytest
from django.db import connection
from django.urls import reverse

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord, SectionRecord
from apps.retrieval.building import IndexingError, count_max_pieces
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.grids import Grid, plan_grid
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.strategies import STRATEGIES, TREES, get_strategy
from tests.factories import make_collection, plain_encoders

CUTS = [{"size": 1, "overlap": 0}, {"size": 7, "overlap": 3}, {"size": 20, "overlap": 0}, {"size": 500, "overlap": 50}]


@pytest.fixture
def texts(db):
    """Texts that are hard to bound: blank, of many bytes a character, cut at sections, ending in white space."""
    collection = create_collection("texts")
    places = (("a", 0, 9), ("b", 9, 31), ("c", 40, 41))
    sections = tuple(SectionRecord(key, start=start, end=end) for key, start, end in places)
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
def test_no_strategy_makes_more_pieces_than_foreseen(texts, strategy, cut):
    """Nor many less: the bound counts blank windows, and each section's edges as windows of their own."""
    for declared in (cut, cut | {"sections": True}) if strategy == "flat" else (cut,):
        parameters = get_strategy(strategy).check(declared)
        foreseen = count_max_pieces(texts, strategy, parameters)
        chunk_set = make_chunk_set(texts, strategy=strategy, parameters=parameters, models={"test": str(declared)})
        pieces = chunk_set.chunk_count + (0 if strategy in TREES else chunk_set.summary_count)
        assert pieces <= foreseen <= 2 * pieces + 20, (strategy, declared)


def test_oversized_index_is_rejected_before_anything_is_made(db, settings):
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
    answer = (
        r"A chunk size of 1 cuts the 20,000 documents of \"many\" into up to 6,000,000 chunks; an index must have "
        r"at most 2,000,000 \(BENCHBENCH_MAX_CHUNKS\)\. Choose larger chunks"
    )
    one = {"size": 1, "overlap": 0}
    with pytest.raises(IndexingError, match=answer):
        create_index(collection, name="letters", chunk_parameters=one)
    with pytest.raises(IndexingError, match=answer):
        plan_grid(collection, Grid([("flat", one)], plain_encoders([""])))
    with pytest.raises(IndexingError, match=answer):
        make_chunk_set(collection, strategy="flat", parameters=one)
    assert not Index.objects.exists()
    assert not ChunkSet.objects.exists()
    create_index(collection, name="words", chunk_parameters={"size": 100, "overlap": 0})


def test_pages_say_so_at_their_field(admin_client, settings):
    settings.BENCHBENCH_MAX_CHUNKS = 10
    collection = make_collection("library", [{"text": "apple pear " * 50}])
    fields = {"collection": collection.pk, "name": "a", "strategy": "flat", "size": "20", "lexical": "on"}
    answer = admin_client.post(reverse("admin:retrieval_index_add"), fields)
    assert "into up to 28 chunks; an index must have at most 10" in answer.content.decode()
    grid = {"collection": collection.pk, "strategies": "flat(size=20, overlap=0)", "lexical": "on"}
    for page in ("index_grid_preview", "index_grid"):
        answer = admin_client.post(reverse(f"admin:{page}"), grid)
        assert "into up to 28 chunks; an index must have at most 10" in answer.content.decode()
    assert not Index.objects.exists()


def test_build_checks_limits_against_the_current_documents(db, settings):
    collection = make_collection("library", [{"text": "apple pear " * 50}])
    index = create_index(collection, name="a", chunk_parameters={"size": 20, "overlap": 0})
    settings.BENCHBENCH_MAX_CHUNKS = 10
    with pytest.raises(IndexingError, match="up to 28 chunks"):
        build_index(index)
    index.refresh_from_db()
    assert index.status == Index.Status.PENDING


SIZED = {"size": 10, "overlap": 2, "title": False}


def chunked(collection, parameters=None):
    chunk_set = make_chunk_set(collection, strategy="flat", parameters=parameters or {})
    rows = chunk_set.chunks.order_by("position").values_list("document__external_id", "ordinal", "text", "start", "end")
    return chunk_set, list(rows)


@pytest.mark.django_db
class TestMakingAChunkSet:
    def test_each_document_is_cut_at_its_sections(self):
        """Stored in another order than that of their ids; some without sections, one removed."""
        collection = create_collection("sections")
        two = (SectionRecord("1", start=0, end=2), SectionRecord("2", start=3, end=5))
        records = [DocumentRecord(key, "", "ab cd", sections=two if key in "cbf" else ()) for key in "dcbaf"]
        import_documents(collection, records)
        import_documents(collection, records[:-1])
        collection.refresh_from_db()
        chunk_set = make_chunk_set(
            collection, strategy="flat", parameters={"size": 9, "overlap": 0, "title": False, "sections": True}
        )
        rows = chunk_set.chunks.order_by("position").values_list(
            "document__external_id", "section__document__external_id", "section__section_id", "text"
        )
        assert list(rows) == [
            ("a", None, None, "ab cd"),
            *(("b", "b", "1", "ab"), ("b", "b", "2", "cd")),
            *(("c", "c", "1", "ab"), ("c", "c", "2", "cd")),
            ("d", None, None, "ab cd"),
        ]

    def test_whole_document_is_one_chunk_with_its_title(self):
        collection = make_collection(
            documents=[
                {"external_id": "a", "title": "Title", "text": "text"},
                {"external_id": "b", "text": " untitled "},
                {"external_id": "c", "title": "empty"},
                {"external_id": "d"},
            ]
        )
        chunk_set, rows = chunked(collection)
        texts = [("a", 0, "Title text", 0, 4), ("b", 0, "untitled", 0, 10)]
        assert rows == [*texts, ("c", 0, "empty", 0, 0), ("d", 0, "", 0, 0)]
        assert (chunk_set.chunk_count, chunk_set.completed_at is not None) == (4, True)
        assert [chunk.text_hash for chunk in chunk_set.chunks.all()] == [hash_text(row[2]) for row in rows]

    def test_windows_overlap_and_may_carry_the_title(self):
        collection = make_collection(
            documents=[
                {"external_id": "a", "title": "T", "text": "0123456789abcdefgh"},
                {"external_id": "b", "title": "only title", "text": "  "},
                {"external_id": "c", "text": " \n"},
            ]
        )
        cut = [("a", 0, "0123456789", 0, 10), ("a", 1, "89abcdefgh", 8, 18), ("b", 0, "only title", 0, 0)]
        assert chunked(collection, SIZED)[1] == cut
        texts = [row[2] for row in chunked(collection, SIZED | {"title": True})[1]]
        assert texts == ["T 0123456789", "T 89abcdefgh", "only title"]

    def test_positions_follow_external_id_code_points_then_place(self):
        ids = ["ä", "b", "B", "10", "9", "\U0001f600", "\uffee", "a"]
        collection = make_collection(documents=[{"external_id": id, "text": "x" * 15} for id in ids])
        expected = [(id, ordinal) for id in sorted(ids) for ordinal in (0, 1)]
        assert [row[:2] for row in chunked(collection, SIZED)[1]] == expected

    def test_removed_documents_are_left_out(self):
        collection = create_collection("library")
        import_documents(collection, [DocumentRecord("a", "", "a"), DocumentRecord("b", "", "b")])
        import_documents(collection, [DocumentRecord("b", "", "b")])
        assert [row[0] for row in chunked(collection)[1]] == ["b"]

    def test_chunk_set_is_shared_for_equal_documents_and_parameters(self):
        collection = create_collection("library")
        import_documents(collection, [DocumentRecord("a", "", "text")])
        first = chunked(collection, SIZED)[0]
        assert chunked(collection, {"overlap": 2, "size": 10})[0] == first
        assert chunked(collection)[0] != first
        import_documents(collection, [DocumentRecord("a", "", "other text")])
        assert chunked(collection, SIZED)[0] != first

    def test_interrupted_chunking_leaves_nothing_behind(self):
        collection = make_collection(documents=[{"text": "a"}])

        def interrupt():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make_chunk_set(collection, strategy="flat", parameters={}, on_part=interrupt)
        assert collection.chunk_sets.count() == 0

    def test_thousands_of_documents_keep_their_order(self):
        collection = create_collection("library")
        import_documents(collection, (DocumentRecord(f"{n:05}", "", str(n)) for n in range(2500)))
        assert [row[2] for row in chunked(collection)[1]] == [str(n) for n in range(2500)]

    def test_positions_are_found_before_postgresql_has_statistics(self):
        """A set that is new since ANALYZE counts as one row, for which any index on the set alone would do."""
        old, new = create_collection("old"), create_collection("new")
        for collection in (old, new):
            import_documents(collection, (DocumentRecord(f"{n:05}", "", str(n)) for n in range(1500)))
        chunked(old)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE retrieval_chunk")
        plan = chunked(new)[0].chunks.filter(position__range=(10, 19)).order_by().explain(analyze=True)
        assert "using chunk_position" in plan
        assert "Rows Removed" not in plan
