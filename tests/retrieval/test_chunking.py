import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.fingerprints import text_hash
from tests.factories import make_collection

SIZED = {"size": 10, "overlap": 2, "title": False}


def chunked(collection, parameters=None):
    chunk_set = make_chunk_set(collection, strategy="flat", parameters=parameters or {})
    rows = chunk_set.chunks.order_by("position").values_list("document__external_id", "ordinal", "text", "start", "end")
    return chunk_set, list(rows)


@pytest.mark.django_db
class TestMakingAChunkSet:
    def test_a_whole_document_is_one_chunk_of_title_and_text(self):
        collection = make_collection(
            documents=[
                {"external_id": "a", "title": "Title", "text": "text"},
                {"external_id": "b", "text": " untitled "},
                {"external_id": "c", "title": "empty"},
                {"external_id": "d"},
            ]
        )
        chunk_set, rows = chunked(collection)
        assert rows == [
            ("a", 0, "Title text", 0, 4),
            ("b", 0, "untitled", 0, 10),
            ("c", 0, "empty", 0, 0),
            ("d", 0, "", 0, 0),
        ]
        assert (chunk_set.chunk_count, chunk_set.completed_at is not None) == (4, True)
        assert [chunk.text_hash for chunk in chunk_set.chunks.all()] == [text_hash(row[2]) for row in rows]

    def test_windows_overlap_and_may_carry_the_title(self):
        collection = make_collection(
            documents=[
                {"external_id": "a", "title": "T", "text": "0123456789abcdefgh"},
                {"external_id": "b", "title": "only title", "text": "  "},
                {"external_id": "c", "text": " \n"},
            ]
        )
        assert chunked(collection, SIZED)[1] == [
            ("a", 0, "0123456789", 0, 10),
            ("a", 1, "89abcdefgh", 8, 18),
            ("b", 0, "only title", 0, 0),
        ]
        assert [row[2] for row in chunked(collection, SIZED | {"title": True})[1]] == [
            "T 0123456789",
            "T 89abcdefgh",
            "only title",
        ]

    def test_positions_go_by_external_id_in_code_point_order_then_place(self):
        ids = ["ä", "b", "B", "10", "9", "\U0001f600", "\uffee", "a"]
        collection = make_collection(documents=[{"external_id": id, "text": "x" * 15} for id in ids])
        expected = [(id, ordinal) for id in sorted(ids) for ordinal in (0, 1)]
        assert [row[:2] for row in chunked(collection, SIZED)[1]] == expected

    def test_removed_documents_are_left_out(self):
        collection = create_collection("library")
        import_documents(collection, [DocumentRecord("a", "", "a"), DocumentRecord("b", "", "b")])
        import_documents(collection, [DocumentRecord("b", "", "b")])
        assert [row[0] for row in chunked(collection)[1]] == ["b"]

    def test_it_is_shared_by_all_who_chunk_the_same_state_alike(self):
        collection = create_collection("library")
        import_documents(collection, [DocumentRecord("a", "", "text")])
        first = chunked(collection, SIZED)[0]
        assert chunked(collection, {"overlap": 2, "size": 10})[0] == first
        assert chunked(collection)[0] != first
        import_documents(collection, [DocumentRecord("a", "", "other text")])
        assert chunked(collection, SIZED)[0] != first

    def test_what_interrupts_it_leaves_nothing(self):
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
