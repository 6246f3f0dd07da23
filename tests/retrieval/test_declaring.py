"""Declaring indexes: what is refused before anything is made."""

from dataclasses import replace

import pytest

from apps.collections.models import Collection
from apps.operations.working import wait
from apps.retrieval.availability import UnavailableError
from apps.retrieval.building import IndexingError
from apps.retrieval.indexing import build_index, create_index, index_of, unavailable_index
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.strategies import StrategyError, get_strategy
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


MADE_OF = Ingredients(strategy="flat", chunk_parameters={}, encoder=KEYWORDS)


def test_an_index_that_is_ready_stays_so_where_another_such_could_not_be_built_any_more(fruit: Collection) -> None:
    ready = index_of(fruit, MADE_OF, name="words")
    wait(build_index(ready))
    complete = replace(MADE_OF, chunk_parameters=get_strategy("flat").check({}))
    failed = unavailable_index(fruit, complete, name="words", reason="The backend is gone.")
    assert (failed.status, failed.error, failed.version) == (Index.Status.FAILED, "The backend is gone.", 2)
    assert unavailable_index(fruit, complete, name="words", reason="Still.") == failed
    ready.refresh_from_db()
    assert ready.status == Index.Status.READY
    assert index_of(fruit, MADE_OF, name="words") == ready
