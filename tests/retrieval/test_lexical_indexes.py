import pytest
from django.db.models import F

from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.search import lexical_indexes
from apps.retrieval.search.lexical_indexes import LexicalIndexError, load_lexical_index, make_lexical_index
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def stored(monkeypatch):
    monkeypatch.setattr(lexical_indexes, "PIECE_BYTES", 500)
    collection = make_collection(documents=[{"text": "red apple"}, {"text": "green pear"}, {"text": "red pear"}])
    return make_lexical_index(make_chunk_set(collection, strategy="flat", parameters={}))


def test_it_is_loaded_as_it_was_stored(stored):
    assert stored.pieces.count() == -(-stored.size_bytes // 500) > 2
    assert load_lexical_index(stored).search(["apples"], 5)[0].ids.tolist() == [0]


def test_it_is_built_once_for_a_chunk_set(stored):
    assert make_lexical_index(stored.chunk_set) == stored


def test_a_damaged_piece_is_named(stored):
    piece = stored.pieces.get(ordinal=1)
    piece.data = b"!" + bytes(piece.data)[1:]
    piece.save()
    with pytest.raises(LexicalIndexError, match="piece 1 is damaged"):
        load_lexical_index(stored)


def test_a_missing_piece_is_named(stored):
    stored.pieces.filter(ordinal=1).delete()
    with pytest.raises(LexicalIndexError, match="piece 1 is missing"):
        load_lexical_index(stored)


def test_a_missing_end_is_noticed(stored):
    stored.pieces.order_by(F("ordinal").desc()).first().delete()
    with pytest.raises(LexicalIndexError, match="bytes are there"):
        load_lexical_index(stored)
