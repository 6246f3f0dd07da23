"""Benchmarks made while somebody deletes what they are made of."""

from typing import Any

import pytest
from django.db import transaction

from apps.benchmarks.defining import creating
from apps.benchmarks.models import Benchmark
from apps.mappings.models import Mapping
from apps.retrieval.deleting import delete_index
from apps.retrieval.models import Index
from benchbench.errors import ConflictError
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark
from tests.sessions import elsewhere, until_waited_for

pytestmark = pytest.mark.django_db(transaction=True)
MATRIX = {"search_modes": ["dense"]}


@pytest.fixture
def mapping() -> Mapping:
    return make_library.__wrapped__(queries=2, documents=5)  # type: ignore[no-any-return]


def test_what_is_made_of_an_index_that_goes_at_that_moment_is_refused(
    mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, run_of = Index.objects.get(), creating.run_of

    def deleted_first(*parts: Any) -> Any:
        elsewhere(lambda: delete_index(index)).result(timeout=60)
        return run_of(*parts)

    monkeypatch.setattr(creating, "run_of", deleted_first)
    with pytest.raises(ConflictError, match="The benchmark was not made: something that it is made of was deleted"):
        create_benchmark(mapping, name="b", matrix=MATRIX)
    assert not Benchmark.objects.exists()


def test_whoever_deletes_waits_for_what_is_being_made_and_sees_it(mapping: Mapping) -> None:
    index = Index.objects.get()
    with transaction.atomic():
        create_benchmark(mapping, name="b", matrix=MATRIX)
        deleting = elsewhere(lambda: delete_index(Index.objects.get(pk=index.pk)))
        until_waited_for(deleting)
    with pytest.raises(ConflictError, match="is used by"):
        deleting.result(timeout=60)
    assert Index.objects.filter(pk=index.pk).exists()
