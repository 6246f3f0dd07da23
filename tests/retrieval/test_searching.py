"""An open index: what it finds, which vectors it holds, and what filters admit in Python and in PostgreSQL."""

import numpy as np
import pytest
from django.db import connection
from django.db.models import JSONField, Value
from psycopg import sql

from apps.retrieval.encoders import EncoderError
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.filters import build_condition, describe_filter, excludes, filter_rows
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.indexing import create_index
from apps.retrieval.models import CachedVector, VectorSpace
from apps.retrieval.search import vectors as tables
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.vectors import VectorsError, locate_vectors, map_vectors
from apps.retrieval.search.words import SearchError
from benchbench.process import reset_all
from tests.factories import make_collection
from tests.retrieval.opened import KEYWORDS, dense

pytestmark = pytest.mark.django_db
NAMES = np.array(list("abcde"))


def names(lists):
    return ["".join(NAMES[hit.ids]) for hit in lists]


class TestAnOpenIndex:
    @pytest.fixture
    def opened(self, fruit, built):
        return open_index(built(fruit))

    def test_a_filter_may_name_a_number_as_key(self, opened, fruit):
        fruit.documents.filter(external_id="d").update(metadata={"3": "yes"})
        assert names(dense(opened, opened.encode(["apple"]), 5, [{"3": "yes"}])) == ["d"]

    def test_positions_name_chunks_and_documents(self, opened, fruit):
        chunks = opened.index.chunk_set.chunks.order_by("position")
        assert opened.chunk_ids.tolist() == [chunk.pk for chunk in chunks]
        assert opened.document_ids.tolist() == list(fruit.documents.values_list("pk", flat=True))
        assert opened.load_texts([3, 0]) == ["plum", "Apples apple apple"]

    def test_dense_search_ranks_by_meaning(self, opened):
        assert names(dense(opened, opened.encode(["apple", "a pear", "apple pear"]), 3)) == ["abe", "cbe", "bca"]

    def test_lexical_search_ranks_by_words(self, opened):
        assert names(opened.search_words(["plums", "pears", "fig"], 10)) == ["d", "cb", ""]

    def test_filters_apply_to_each_query_before_ranking(self, opened):
        filters = [{"colour": "red"}, {}, {"colour": "green", "size": 2}, {"colour": "blue"}, {"size": None}]
        assert names(dense(opened, opened.encode(["pear"] * 5), 1, filters)) == ["b", "c", "c", "", ""]
        assert names(opened.search_words(["pear"] * 5, 1, filters)) == ["b", "c", "c", "", ""]

    def test_lists_do_not_depend_on_the_batch(self, opened):
        texts = ["apple", "pear plum", "nothing of the kind", ""]
        vectors = opened.encode(texts)
        filters = [{}, {"size": 2}, {}, {}]
        alone = [dense(opened, vectors[n : n + 1], 5, filters[n : n + 1])[0] for n in range(4)]
        assert dense(opened, vectors, 5, filters) == alone
        alone = [opened.search_words(texts[n : n + 1], 5, filters[n : n + 1])[0] for n in range(4)]
        assert opened.search_words(texts, 5, filters) == alone

    def test_no_queries_find_nothing(self, opened):
        assert opened.encode([]).shape == (0, 4)
        assert dense(opened, opened.encode([]), 5) == opened.search_words([], 5) == []

    def test_without_vectors_or_words_it_says_so(self, fruit, built):
        words_only = open_index(built(fruit, encoder=""))
        with pytest.raises(SearchError, match="has no vectors"):
            dense(words_only, np.ones((1, 4), np.float32), 5)
        vectors_only = open_index(built(fruit, lexical=False))
        with pytest.raises(SearchError, match="has no BM25 index"):
            vectors_only.search_words(["apple"], 5)

    def test_an_index_that_is_not_ready_is_not_opened(self, fruit):
        with pytest.raises(SearchError, match="is pending: build it"):
            open_index(create_index(fruit, name="index", encoder=KEYWORDS))


class TestQueryVectors:
    def test_a_query_is_encoded_once_and_then_read(self, fruit, built, monkeypatch):
        opened = open_index(built(fruit))
        first = opened.encode(["apple", "pear", "apple"])
        assert CachedVector.objects.filter(space__kind="query").count() == 2
        monkeypatch.setattr(KeywordEncoder, "embed_batch", None)
        assert np.array_equal(opened.encode(["pear", "apple"]), first[[1, 0]])

    def test_both_workers_use_the_vector_stored_first(self, fruit, built, monkeypatch):
        opened = open_index(built(fruit))
        theirs = np.array([0, 0, 1, 0], np.float32)
        embed = KeywordEncoder.embed_batch

        def overtaken(encoder, texts, **options):
            space = VectorSpace.objects.get(encoder=KEYWORDS, revision="1", kind="query")
            CachedVector.objects.create(space=space, text_hash=hash_text(texts[0]), vector=theirs.tobytes())
            return embed(encoder, texts, **options)

        monkeypatch.setattr(KeywordEncoder, "embed_batch", overtaken)
        assert np.array_equal(opened.encode(["apple"])[0], theirs)

    def test_another_revision_of_the_model_is_refused(self, fruit, built, monkeypatch):
        opened = open_index(built(fruit))
        monkeypatch.setattr(KeywordEncoder, "revision", "2")
        reset_all()
        with pytest.raises(EncoderError, match=r"in revision 1, but revision 2 is installed"):
            opened.encode(["apple"])

    def test_only_queries_with_invalid_vectors_fail_and_are_unsaved(self, fruit, built, monkeypatch):
        opened = open_index(built(fruit))
        embed = KeywordEncoder.embed_batch
        broken = {"nan": np.nan, "zero": 0, "long": 3}

        def sometimes(encoder, texts, **options):
            factors = [[broken.get(text, 1)] for text in texts]
            return embed(encoder, texts, **options) * np.array(factors, np.float32)

        with monkeypatch.context() as patched:
            patched.setattr(KeywordEncoder, "embed_batch", sometimes)
            for text, flaw in {"nan": "not finite", "zero": "zero", "long": "of length 3 instead of 1"}.items():
                with pytest.raises(
                    EncoderError, match=f"keyword:.* made a vector of the query '{text}' that is {flaw}"
                ):
                    opened.encode(["apple", text, "pear"])
            assert CachedVector.objects.filter(space__kind="query").count() == 2
            assert opened.encode(["pear", "apple"]).shape == (2, 4)
        assert opened.encode(["nan", "zero", "long"]).shape == (3, 4)

    @pytest.mark.parametrize(
        "expected", [np.ones((2, 4)) / 2, np.eye(1, 5), np.ones(4) / 2], ids=["too many", "wider", "flat"]
    )
    def test_vectors_of_another_number_or_dimension_are_refused(self, fruit, built, monkeypatch, expected):
        opened = open_index(built(fruit))
        with monkeypatch.context() as patched:
            patched.setattr(KeywordEncoder, "embed_batch", lambda *args, **options: expected.astype(np.float32))
            with pytest.raises(EncoderError, match=r"made vectors of the shape .*, not \(1, 4\)"):
                opened.encode(["apple"])
        assert not CachedVector.objects.filter(space__kind="query").exists()

    @pytest.mark.parametrize("stored", [[np.nan] * 4, [0] * 4, [1, 1, 0, 0], [1, 0, 0], [1, 0, 0, 0, 0], []], ids=str)
    def test_invalid_stored_query_vector_is_encoded_again(self, fruit, built, stored):
        opened = open_index(built(fruit))
        sound = opened.encode(["apple", "pear"])
        retained = CachedVector.objects.filter(text_hash=hash_text("apple"), space__kind="query")
        retained.update(vector=np.array(stored, "<f4").tobytes())
        assert np.array_equal(opened.encode(["apple", "pear"]), sound)
        assert np.array_equal(np.frombuffer(retained.get().vector, "<f4"), sound[0])
        retained.update(vector=np.array(stored, "<f4").tobytes(), pinned=True)
        with pytest.raises(EncoderError, match="vector of the query 'apple' is damaged in the database: import"):
            opened.encode(["apple", "pear"])

    def test_changed_dimension_under_the_same_revision_is_rejected(self, fruit, built):
        index = built(fruit)
        VectorSpace.objects.create(encoder=KEYWORDS, revision="1", kind="query", dimension=5)
        with pytest.raises(EncoderError, match="with 5 dimensions, but it now makes 4"):
            open_index(index).encode(["apple"])


class TestResidence:
    def test_an_index_stays_open(self, fruit, built):
        index = built(fruit)
        assert open_index(index) is open_index(index)

    def test_the_least_recently_used_goes_when_room_is_short(self, fruit, built, settings):
        one, two, three = (built(fruit, name=name) for name in "123")
        opened = open_index(one)
        settings.BENCHBENCH_RESIDENT_BYTES = 2 * opened.nbytes
        open_index(two)
        open_index(one)
        open_index(three)  # puts out two
        assert open_index(one) is opened
        settings.BENCHBENCH_RESIDENT_BYTES = 1
        assert open_index(three) is open_index(three)


class TestLocalVectors:
    def test_the_file_is_written_once_and_mapped_by_all(self, fruit, built):
        index = built(fruit)
        first = map_vectors(index)
        assert first.shape == (5, 4)
        written = locate_vectors(index).stat()
        assert np.array_equal(map_vectors(index), first)
        assert locate_vectors(index).stat() == written
        folder = locate_vectors(index).parent
        assert [file.name for file in folder.iterdir() if file.is_file()] == [locate_vectors(index).name]

    def test_vectors_missing_from_the_database_are_an_error(self, fruit, built):
        index = built(fruit)
        tables._execute(f"DELETE FROM {index.vector_table} WHERE id = 2")
        with pytest.raises(VectorsError, match="does not hold one vector for each"):
            map_vectors(index)
        assert not [file for file in locate_vectors(index).parent.iterdir() if file.is_file()]


VERSIONS = [
    {},
    *({"version": value} for value in ("16.0", "17.0", ["16.0", "17.0"], ["18.0"], [], None, 17, 17.0, True, [[1, 2]])),
    {"version": "16.0", "lang": ["de", "en"]},
    {"lang": "de"},
]
FILTERS = [
    ({}, set(range(13))),
    ({"version": "16.0"}, {1, 3, 11}),
    ({"version": ["16.0", "17.0"]}, {1, 2, 3, 11}),
    ({"version": ["18.0", "17.0"]}, {2, 3, 4}),
    ({"version": ["19.0"]}, set()),
    ({"version": []}, {5}),
    ({"version": None}, {6}),
    ({"version": 17}, {7, 8}),
    ({"version": [True]}, {9}),
    ({"version": [1, 2]}, {10}),
    ({"version": "16.0", "lang": "de"}, {11}),
    ({"lang": ["fr", "de"]}, {11, 12}),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS, ids=[str(filter) for filter, _ in FILTERS])
def test_a_list_asks_for_any_of_its_values(db, filter, expected):
    documents = make_collection("modules", [{"metadata": metadata} for metadata in VERSIONS]).documents.order_by("pk")
    places = {pk: index for index, pk in enumerate(documents.values_list("pk", flat=True))}
    assert {places[one.pk] for one in filter_rows(documents, filter)} == expected
    stored = documents.annotate(asked=Value(filter, output_field=JSONField())).exclude(excludes("asked", "metadata"))
    assert {places[one.pk] for one in stored} == expected
    location, parameters = build_condition(filter)
    with connection.cursor() as cursor:
        table = sql.Identifier(documents.model._meta.db_table)
        cursor.execute(sql.SQL("SELECT id FROM {table} WHERE {where}").format(table=table, where=location), parameters)
        assert {places[pk] for (pk,) in cursor.fetchall()} == expected


def test_filter_is_described_in_plain_words():
    assert describe_filter({"version": ["16.0", "17.0"], "edition": "community", "size": 2}) == (
        "edition community, size 2, version 16.0 or 17.0"
    )
