"""A matrix without modes has all that its indexes can search."""

from typing import Any
from uuid import uuid4

import pytest

from apps.benchmarks.defining.choosing import with_modes
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.ir.planning.matrix import MatrixError
from tests.benchmarks.conftest import ENCODER, make_library

ALL = ["dense", "sparse", "hybrid"]


@pytest.fixture
def library(db: None) -> Mapping:
    """A mapping with "keywords", of both sides; "words", without vectors; "vectors", without BM25."""
    mapping = make_library(documents=6, queries=2)
    for name, options in (("words", {"encoder": ""}), ("vectors", {"encoder": ENCODER, "lexical": False})):
        wait(build_index(create_index(mapping.collection, name=name, **options)))
    return mapping


@pytest.mark.parametrize(
    ("matrix", "modes"),
    [
        ({"indexes": ["keywords"]}, ALL),
        ({"indexes": ["words"]}, ["sparse"]),
        ({"indexes": ["vectors"]}, ["dense"]),
        ({"indexes": ["keywords", "words"]}, ["sparse"]),
        ({"indexes": ["vectors"], "lexical": ["fts"]}, ALL),
        ({"indexes": ["words"], "search_modes": ["dense"]}, ["dense"]),  # refused when the benchmark is made
        ({"indexes": ["gone"]}, None),
        ({"indexes": [["keywords"]]}, None),
        ({"indexes": 7}, None),
    ],
)
def test_they_are_what_every_named_index_can(library: Mapping, matrix: dict[str, Any], modes: list[str] | None) -> None:
    assert with_modes(library, matrix) == ({**matrix, "search_modes": modes} if modes else matrix)


def test_the_newest_is_the_one_that_became_ready_last_and_is_current(library: Mapping) -> None:
    assert with_modes(library, {})["search_modes"] == ["dense"]  # vectors
    Index.objects.filter(name="vectors").update(status=Index.Status.FAILED)
    assert with_modes(library, {})["search_modes"] == ["sparse"]  # words
    stale = Index.objects.get(name="words").chunk_set
    assert stale is not None
    stale.pk, stale.fingerprint, stale.collection_fingerprint = uuid4(), "another", "of other documents"
    stale.save(force_insert=True)
    Index.objects.filter(name="words").update(chunk_set=stale)
    assert with_modes(library, {})["search_modes"] == ALL  # keywords


def test_indexes_without_a_mode_in_common_are_told(library: Mapping) -> None:
    with pytest.raises(MatrixError, match="the indexes vectors and words have no mode in common") as raised:
        with_modes(library, {"indexes": ["words", "vectors"]})
    assert raised.value.field == "search_modes"
