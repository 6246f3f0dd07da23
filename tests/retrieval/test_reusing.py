"""Indexes found by what they are made of."""

from dataclasses import replace

import pytest

from apps.collections.models import Collection
from apps.operations.working import wait
from apps.retrieval.indexing import Ingredients, build_index, index_of, unavailable_index
from apps.retrieval.models import Index
from apps.retrieval.strategies import get_strategy
from tests.retrieval.conftest import KEYWORDS

pytestmark = pytest.mark.django_db
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
