"""What is refused, or not available here, becomes no ready index, by whichever way it is asked for."""

from dataclasses import replace

import numpy as np
import pytest

from apps.operations.models import Operation
from apps.operations.working import OperationFailedError, wait
from apps.retrieval.availability import UnavailableError, name_encoder
from apps.retrieval.building import IndexingError
from apps.retrieval.grids import Grid, make_grid, plan_grid
from apps.retrieval.importing_vectors import import_vectors
from apps.retrieval.indexing import build_index, create_failed_index, create_index, get_or_create_index
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.strategies import StrategyError, get_strategy
from tests.factories import make_collection, plain_encoders
from tests.retrieval.opened import KEYWORDS

pytestmark = pytest.mark.django_db
MADE_OF = Ingredients(strategy="flat", chunk_parameters={}, encoder=KEYWORDS)
ABSENT = [
    ({"strategy": "graph"}, "the strategy graph is unknown; choose one of flat"),
    ({"encoder": "openai:ada"}, "the provider openai is unknown; choose one of sbert, sentence-transformers"),
]


@pytest.mark.parametrize(("absent", "message"), ABSENT, ids=["strategy", "provider"])
def test_it_is_neither_declared_nor_built(fruit, absent, message):
    with pytest.raises(UnavailableError, match=message):
        create_index(fruit, name="index", **absent)
    assert not Index.objects.exists()
    failed = create_failed_index(fruit, replace(MADE_OF, **absent), name="index", reason="It is not here.")
    with pytest.raises(UnavailableError, match=message):
        build_index(failed)
    failed.refresh_from_db()
    assert (failed.status, failed.error) == (Index.Status.FAILED, "It is not here.")
    assert not Operation.objects.exists()


def test_a_model_that_is_not_here_builds_nothing(fruit):
    index = create_index(fruit, name="index", encoder="nobody/nothing")
    message = "'nobody/nothing' is not on this machine, and HF_HUB_OFFLINE forbids the download: check the name, use"
    with pytest.raises(UnavailableError, match=message):
        build_index(index)
    index.refresh_from_db()
    assert (index.status, Operation.objects.count()) == (Index.Status.PENDING, 0)


def test_a_grid_says_which_model_is_not_here(fruit):
    grid = Grid([("flat", {})], plain_encoders([KEYWORDS, "nobody/nothing"]))
    assert [cell.state for cell in plan_grid(fruit, grid)] == ["new", "unavailable"]
    with pytest.raises(UnavailableError, match="'nobody/nothing' is not on this machine"):
        make_grid(fruit, grid)
    assert not Index.objects.exists()
    wait(build_index(create_index(fruit, name="made elsewhere", encoder=KEYWORDS)))
    Index.objects.update(encoder="nobody/nothing")
    assert [cell.state for cell in plan_grid(fruit, grid)] == ["new", "ready"]


def test_a_build_that_was_begun_makes_it_not_ready(fruit):
    index = create_index(fruit, name="index", encoder=KEYWORDS)
    operation = build_index(index)
    Index.objects.update(strategy="no_such")
    with pytest.raises(OperationFailedError, match="The retrieval strategy 'no_such' does not exist"):
        wait(operation)
    index.refresh_from_db()
    assert (index.status, index.ready_at) == (Index.Status.FAILED, None)


def test_imported_vectors_make_it_not_ready(fruit, tmp_path):
    index = create_index(fruit, name="index")
    Index.objects.update(encoder="openai:ada")
    index.refresh_from_db()
    ids, vectors = np.array(list("abcde")), np.eye(5, dtype=np.float32)
    file = tmp_path / "vectors.npz"
    np.savez(file, document_ids=ids, document_vectors=vectors, query_ids=ids, query_vectors=vectors)
    with pytest.raises(UnavailableError, match="the provider openai is unknown"):
        import_vectors(index, file)
    index.refresh_from_db()
    assert (index.status, index.vector_source) == (Index.Status.PENDING, "")


def test_models_of_other_providers_are_distinct_from_local_ones(fruit):
    kinds = ("sbert", "sentence-transformers", "openai")
    assert [name_encoder("ada", kind) for kind in kinds] == ["ada", "ada", "openai:ada"]
    ours = get_or_create_index(fruit, replace(MADE_OF, encoder="ada"), name="ada")
    theirs = create_failed_index(
        fruit, replace(MADE_OF, encoder=name_encoder("ada", "openai")), name="ada", reason="No."
    )
    assert theirs != ours


def test_versions_count_up_under_one_name(fruit):
    assert [create_index(fruit, name=name, encoder=KEYWORDS).version for name in ("a", "a", "b", " a ")] == [1, 2, 1, 3]


def test_it_needs_something_to_find_with(fruit):
    with pytest.raises(IndexingError, match="needs an encoder or BM25"):
        create_index(fruit, name="index", lexical=False)


def test_it_needs_documents():
    with pytest.raises(IndexingError, match="has no documents to index"):
        create_index(make_collection(), name="index")


def test_bad_options_are_refused_before_anything_is_made(fruit):
    with pytest.raises(StrategyError, match="Chunk parameters must be"):
        create_index(fruit, name="index", chunk_parameters={"size": "big"})
    assert not Index.objects.exists()


def test_ready_index_stays_ready_when_its_rebuild_is_unavailable(fruit):
    ready = get_or_create_index(fruit, MADE_OF, name="words")
    wait(build_index(ready))
    complete = replace(MADE_OF, chunk_parameters=get_strategy("flat").check({}))
    failed = create_failed_index(fruit, complete, name="words", reason="The backend is gone.")
    assert (failed.status, failed.error, failed.version) == (Index.Status.FAILED, "The backend is gone.", 2)
    assert create_failed_index(fruit, complete, name="words", reason="Still.") == failed
    ready.refresh_from_db()
    assert ready.status == Index.Status.READY
    assert get_or_create_index(fruit, MADE_OF, name="words") == ready
