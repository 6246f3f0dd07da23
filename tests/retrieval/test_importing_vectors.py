import numpy as np
import pytest

from apps.retrieval.describing import describe_identity
from apps.retrieval.encoders import EncoderError
from apps.retrieval.importing_vectors import VectorFileError, VectorImport, import_vectors, read_vector_file
from apps.retrieval.indexing import create_index
from apps.retrieval.models import CachedVector, Index
from apps.retrieval.search.open_indexes import open_index
from benchbench.errors import ConflictError
from tests.factories import make_collection
from tests.retrieval.opened import KEYWORDS, dense

IDS = ["c", "a", "b", "e", "d"]  # in an order of its own
VECTORS = {"a": [2, 0, 0, 0], "b": [1, 1, 0, 0], "c": [0, 3, 0, 0], "d": [0, 0, 1, 0], "e": [0, 0, 0, 1]}
QUERIES = {"q1": "apple", "q2": "pear", "q3": "plum"}


@pytest.fixture
def write(tmp_path):
    """Write a good file of vectors for the collection `fruit`, with `changes` made to it."""

    def write(**changes):
        arrays = {
            "document_ids": np.array(IDS),
            "document_vectors": np.array([VECTORS[id] for id in IDS], np.float16),
            "query_ids": np.array(["q1", "q2", "other"]),
            "query_vectors": np.array([[5, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]], np.float16),
            **changes,
        }
        file = tmp_path / "vectors.npz"
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
        return file

    return write


@pytest.mark.django_db
class TestImporting:
    def test_it_makes_the_index_ready(self, fruit, write):
        index = create_index(fruit, name="index")
        report = import_vectors(index, write(), queries=QUERIES)
        assert report == VectorImport(documents=5, queries=2, unknown_queries=1, missing_queries=1)
        index.refresh_from_db()
        assert (index.status, index.dimension, index.encoder) == ("ready", 4, "")
        assert index.encoder_revision == f"imported:{index.vector_source[:16]}"
        assert (index.stats["num_vectors"], index.stats["embed_calls"]) == (5, 0)
        opened = open_index(index)
        lists = dense(opened, opened.encode(["pear", "apple"]), 2)
        assert [hit.ids.tolist() for hit in lists] == [[2, 1], [0, 1]]
        assert lists[0].scores == pytest.approx([1, 0.5**0.5])
        assert opened.search_words(["plum"], 5)[0].ids.tolist() == [3]

    def test_its_query_vectors_are_kept_for_good(self, fruit, write):
        import_vectors(create_index(fruit, name="index"), write(), queries=QUERIES)
        assert list(CachedVector.objects.values_list("pinned", flat=True)) == [True, True]

    def test_queries_of_one_text_need_one_vector(self, fruit, write):
        same = {"q1": "apple", "q2": "apple"}
        both = r"query_vectors differ for the query 'q2' and the query 'q1', which have the same text"
        with pytest.raises(VectorFileError, match=both):
            import_vectors(create_index(fruit, name="index"), write(), queries=same)
        assert not CachedVector.objects.exists()
        near = np.array([[5, 0, 0, 0], [5, 1e-7, 0, 0], [1, 1, 1, 1]], np.float32)
        report = import_vectors(create_index(fruit, name="index"), write(query_vectors=near), queries=same)
        assert (report.queries, report.missing_queries) == (2, 0)
        assert dense(open_index(Index.objects.get(status="ready")), near[:1], 1)[0].ids.tolist() == [0]

    def test_an_earlier_import_keeps_its_vectors(self, fruit, write):
        """Two datasets, in whose queries one file has two vectors for one text."""
        first = create_index(fruit, name="first")
        import_vectors(first, write(), queries={"q1": "apple"})
        before = open_index(first).encode(["apple"]).tolist()
        with pytest.raises(VectorFileError, match=r"the query 'q2' and the query of an earlier import of the file"):
            import_vectors(create_index(fruit, name="second"), write(), queries={"q2": "apple"})
        import_vectors(create_index(fruit, name="third"), write(), queries={"q1": "apple", "q2": "pear"})
        assert open_index(first).encode(["apple"]).tolist() == before

    def test_documents_of_one_text_keep_their_own_vectors(self, write):
        twins = make_collection("twins", [{"external_id": id, "title": "", "text": "apple"} for id in sorted(IDS)])
        index = create_index(twins, name="index")
        import_vectors(index, write(), queries={"q1": "apple", "q2": "pear"})
        opened = open_index(index)
        result = dense(opened, opened.encode(["apple", "pear"]), 1)
        assert [ranked.ids.tolist() for ranked in result] == [[0], [2]]

    def test_it_leaves_the_vectors_alone_that_were_made_here(self, fruit, write, built):
        opened = open_index(built(fruit, name="encoded"))
        before = opened.encode(["apple"])
        declared = write(model=np.array(KEYWORDS), revision=np.array(opened.index.encoder_revision))
        import_vectors(create_index(fruit, name="imported"), declared, queries=QUERIES)
        assert opened.encode(["apple"]).tolist() == before.tolist()

    def test_a_query_without_a_vector_needs_a_model(self, fruit, write):
        index = create_index(fruit, name="index")
        import_vectors(index, write(), queries=QUERIES)
        with pytest.raises(EncoderError, match=r"1 query \(such as 'plum'\) had no vector .* names no model"):
            open_index(index).encode(["apple", "plum"])

    @pytest.mark.parametrize("labelled", ["by the caller", "by the index", "by the file"])
    def test_the_named_model_encodes_it(self, fruit, write, labelled):
        index = create_index(fruit, name="index", encoder=KEYWORDS if labelled == "by the index" else "")
        file = write(model=np.array(KEYWORDS), revision=np.array("7")) if labelled == "by the file" else write()
        import_vectors(index, file, queries=QUERIES, model=KEYWORDS if labelled == "by the caller" else "")
        opened = open_index(index)
        assert index.encoder == KEYWORDS
        revision = f"imported:{index.vector_source[:16]}"
        assert index.encoder_revision == (f"{revision} (7)" if labelled == "by the file" else revision)
        assert describe_identity(index)["query_encoder_revision"] == "unknown", "as a manifest says"
        assert dense(opened, opened.encode(["plum"]), 1)[0].ids.tolist() == [3]

    def test_model_of_another_dimension_is_rejected_on_first_use(self, fruit, write):
        index = create_index(fruit, name="index")
        import_vectors(index, write(), queries=QUERIES, model="keyword:apple")
        assert open_index(index).encode(["pear"]).shape == (1, 4)
        with pytest.raises(EncoderError, match=r"makes vectors of 2 dimensions, the index \"index\" has 4"):
            open_index(index).encode(["plum"])

    def test_fingerprint_depends_on_the_imported_file(self, fruit, write):
        def imported(**changes):
            index = create_index(fruit, name="index")
            import_vectors(index, write(**changes))
            return index.fingerprint

        assert imported() == imported() != imported(query_ids=np.array(["q1", "q2", "q3"]))

    def test_vectors_are_for_whole_documents(self, fruit, write):
        index = create_index(fruit, name="index", chunk_parameters={"size": 5})
        with pytest.raises(ConflictError, match="whole documents only"):
            import_vectors(index, write())

    def test_a_ready_index_never_changes(self, fruit, write, built):
        with pytest.raises(ConflictError, match="is ready"):
            import_vectors(built(fruit), write())

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            (["a", "b", "c", "d", "x"], r"vectors of 1 id \('x'\) that are not in the collection"),
            (["a", "b", "c", "d"], r"no vectors of 1 id \('e'\) of the collection"),
            (["c"], r"no vectors of 4 ids \('a', 'b', 'd' …\) of the collection"),
        ],
    )
    def test_import_with_missing_vectors_changes_nothing(self, fruit, write, ids, message):
        index = create_index(fruit, name="index")
        file = write(document_ids=np.array(ids), document_vectors=np.eye(5, 4)[: len(ids)] + 1)
        with pytest.raises(VectorFileError, match=message):
            import_vectors(index, file, queries=QUERIES)
        index = Index.objects.get()
        assert (index.status, index.vector_source, index.chunk_set) == ("pending", "", None)
        assert not CachedVector.objects.exists()


class TestReadingAFile:
    def test_vectors_are_scaled_to_unit_length_in_float32(self, write):
        vector_file = read_vector_file(write())
        assert vector_file.document_vectors.dtype == np.float32
        assert np.linalg.norm(vector_file.document_vectors, axis=1) == pytest.approx(1)
        assert (vector_file.document_ids, vector_file.model, vector_file.revision) == (IDS, "", "")

    def test_whole_numbers_and_bytes_may_be_ids(self, write):
        vector_file = read_vector_file(write(document_ids=np.arange(5), query_ids=np.array([b"q1", b"q2", b"q3"])))
        assert (vector_file.document_ids, vector_file.query_ids) == (["0", "1", "2", "3", "4"], ["q1", "q2", "q3"])

    def test_there_may_be_no_queries(self, write):
        assert read_vector_file(write(query_ids=np.array([], str), query_vectors=np.empty((0, 0)))).query_ids == []

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"query_vectors": None}, "vectors.npz has no array 'query_vectors'"),
            ({"extra": np.ones(3)}, "has an unknown array 'extra'"),
            ({"document_ids": np.array(IDS[:4])}, "document_vectors has 5 rows for 4 document_ids"),
            ({"document_ids": np.array(list("aabbc"))}, r"document_ids repeats 2 ids \('a', 'b'\)"),
            ({"document_ids": np.ones(5)}, "document_ids must be a one-dimensional array of strings or whole numbers"),
            ({"document_vectors": np.ones(5)}, "document_vectors must be a matrix of floats"),
            ({"document_vectors": np.ones((5, 4), int)}, "document_vectors must be a matrix of floats"),
            ({"document_vectors": np.eye(5, 4)}, "document_vectors has a vector that is zero, in row 4"),
            ({"document_vectors": np.full((5, 4), np.nan)}, "document_vectors has a vector that is not finite"),
            ({"query_vectors": np.ones((3, 7))}, "query_vectors has 7 dimensions, document_vectors 4"),
            ({"model": np.array(["one", "two"])}, "model must be one string"),
            ({"document_ids": np.array(IDS, object)}, "is not an .npz file of plain arrays"),
        ],
    )
    def test_a_fault_is_named_with_file_and_array(self, write, changes, message):
        with pytest.raises(VectorFileError, match=message):
            read_vector_file(write(**changes))

    @pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 broken"])
    def test_another_kind_of_file_is_refused(self, tmp_path, content):
        file = tmp_path / "vectors.npz"
        file.write_bytes(content)
        with pytest.raises(VectorFileError, match=r"is not an \.npz file of plain"):
            read_vector_file(file)

    def test_a_single_array_is_refused(self, tmp_path):
        np.save(tmp_path / "vectors.npy", np.ones((2, 2)))
        with pytest.raises(VectorFileError, match=r"is not an \.npz file of plain"):
            read_vector_file(tmp_path / "vectors.npy")

    def test_a_file_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(VectorFileError, match=r"none\.npz cannot be read: No such file"):
            read_vector_file(tmp_path / "none.npz")
