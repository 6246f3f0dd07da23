"""Declaring indexes: what is refused before anything is made."""

import pytest

from apps.retrieval.availability import UnavailableError
from apps.retrieval.building import IndexingError
from apps.retrieval.indexing import create_index
from apps.retrieval.models import Index
from apps.retrieval.strategies import StrategyError
from tests.factories import make_collection
from tests.retrieval.conftest import KEYWORDS

pytestmark = pytest.mark.django_db


def test_versions_count_up_under_one_name(fruit):
    versions = [create_index(fruit, name=name, encoder=KEYWORDS).version for name in ("a", "a", "b", " a ")]
    assert versions == [1, 2, 1, 3]


def test_it_needs_something_to_find_with(fruit):
    with pytest.raises(IndexingError, match="would find nothing"):
        create_index(fruit, name="index", lexical=False)


def test_it_needs_documents():
    with pytest.raises(IndexingError, match="has no documents to index"):
        create_index(make_collection(), name="index")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"encoder": "openai:ada"}, UnavailableError, "the provider openai is not known here"),
        ({"strategy": "graph"}, UnavailableError, "the strategy graph is not known here"),
        ({"chunk_parameters": {"size": "big"}}, StrategyError, "Chunk parameters are"),
    ],
)
def test_bad_options_are_refused_before_anything_is_made(fruit, options, error, message):
    with pytest.raises(error, match=message):
        create_index(fruit, name="index", **options)
    assert not Index.objects.exists()
