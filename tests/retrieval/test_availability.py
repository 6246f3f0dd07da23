"""What is not to be had here becomes no index that is ready, by whichever way it is asked for."""

from dataclasses import replace

import numpy as np
import pytest

from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.operations.working import OperationFailedError, wait
from apps.retrieval.availability import UnavailableError, encoder_of
from apps.retrieval.grids import Grid, make_grid, plan_grid
from apps.retrieval.importing_vectors import import_vectors
from apps.retrieval.indexing import build_index, create_index, index_of, unavailable_index
from apps.retrieval.models import Index, Ingredients
from tests.retrieval.conftest import KEYWORDS

pytestmark = pytest.mark.django_db
MADE_OF = Ingredients(strategy="flat", chunk_parameters={}, encoder=KEYWORDS)
ABSENT = [
    ({"strategy": "graph"}, "the strategy graph is not known here, known are flat"),
    ({"encoder": "openai:ada"}, "the provider openai is not known here, known are sbert, sentence-transformers"),
]


@pytest.mark.parametrize(("absent", "said"), ABSENT, ids=["strategy", "provider"])
def test_it_is_neither_declared_nor_built(fruit: Collection, absent: dict[str, str], said: str) -> None:
    with pytest.raises(UnavailableError, match=said):
        create_index(fruit, name="index", **absent)
    failed = unavailable_index(fruit, replace(MADE_OF, **absent), name="index", reason="It is not here.")
    with pytest.raises(UnavailableError, match=said):
        build_index(failed)
    failed.refresh_from_db()
    assert (failed.status, failed.error) == (Index.Status.FAILED, "It is not here.")
    assert not Operation.objects.exists()


def test_a_model_that_is_not_here_builds_nothing(fruit: Collection) -> None:
    index = create_index(fruit, name="index", encoder="nobody/nothing")
    said = "'nobody/nothing' is not on this machine, and HF_HUB_OFFLINE forbids to download it: download it once"
    with pytest.raises(UnavailableError, match=said):
        build_index(index)
    index.refresh_from_db()
    assert (index.status, Operation.objects.count()) == (Index.Status.PENDING, 0)


def test_a_grid_says_which_model_is_not_here(fruit: Collection) -> None:
    grid = Grid([("flat", {})], [KEYWORDS, "nobody/nothing"])
    assert [cell.state for cell in plan_grid(fruit, grid)] == ["new", "unavailable"]
    with pytest.raises(UnavailableError, match="'nobody/nothing' is not on this machine"):
        make_grid(fruit, grid)
    assert not Index.objects.exists()
    wait(build_index(create_index(fruit, name="made elsewhere", encoder=KEYWORDS)))
    Index.objects.update(encoder="nobody/nothing")
    assert [cell.state for cell in plan_grid(fruit, grid)] == ["new", "ready"]


def test_a_build_that_was_begun_makes_it_not_ready(fruit: Collection) -> None:
    index = create_index(fruit, name="index", encoder=KEYWORDS)
    operation = build_index(index)
    Index.objects.update(strategy="no_such")
    with pytest.raises(OperationFailedError, match="There is no retrieval strategy 'no_such'"):
        wait(operation)
    index.refresh_from_db()
    assert (index.status, index.ready_at) == (Index.Status.FAILED, None)


def test_imported_vectors_make_it_not_ready(fruit: Collection, tmp_path) -> None:
    index = create_index(fruit, name="index")
    Index.objects.update(encoder="openai:ada")
    index.refresh_from_db()
    ids, vectors = np.array(list("abcde")), np.eye(5, dtype=np.float32)
    file = tmp_path / "vectors.npz"
    np.savez(file, document_ids=ids, document_vectors=vectors, query_ids=ids, query_vectors=vectors)
    with pytest.raises(UnavailableError, match="the provider openai is not known here"):
        import_vectors(index, file)
    index.refresh_from_db()
    assert (index.status, index.vector_source) == (Index.Status.PENDING, "")


def test_a_model_of_another_provider_is_never_taken_for_ours(fruit: Collection) -> None:
    assert [encoder_of("ada", provider) for provider in ("sbert", "sentence-transformers", "openai")] == [
        "ada",
        "ada",
        "openai:ada",
    ]
    ours = index_of(fruit, replace(MADE_OF, encoder="ada"), name="ada")
    theirs = unavailable_index(fruit, replace(MADE_OF, encoder=encoder_of("ada", "openai")), name="ada", reason="No.")
    assert theirs != ours
