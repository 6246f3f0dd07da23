"""Index grids over HTTP: planned, then made as one."""

from typing import Any

import pytest

from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.retrieval.models import Index
from tests.api.callers import Callers
from tests.api.test_collections import owned

ENCODERS = ["keyword:apple", "keyword:apple,plum"]
GRID: dict[str, Any] = {
    "strategies": [{"strategy": "flat"}, {"strategy": "lod_embed", "chunk_parameters": {"doc_top_k": 2}}],
    "encoders": ENCODERS,
}


@pytest.fixture
def fruit(callers: Callers) -> Collection:
    return owned(callers.owner, "fruit", [{"text": "apple apple"}, {"text": "plum"}])


def test_it_is_planned_and_then_made(callers: Callers, fruit: Collection) -> None:
    path = f"/collections/{fruit.pk}/indexes/grid"
    planned = callers.owner.post(f"{path}/preview", GRID)
    assert planned.status_code == 200, planned.content
    cells = planned.json()["indexes"]
    assert cells[2] == {
        "name": f"lod_embed 500/50 doc_top_k=2 · {ENCODERS[0]}",
        "state": "new",
        "strategy": "lod_embed",
        "chunk_parameters": {"size": 500, "overlap": 50, "doc_top_k": 2, "section_top_k": 10},
        "encoder": ENCODERS[0],
        "llm": "",
        "llm_parameters": {},
        "index": None,
        "error": None,
    }
    assert not Index.objects.exists()
    made = callers.owner.post(path, GRID)
    assert made.status_code == 202, made.content
    facts = made.json()["indexes"]
    assert [row["name"] for row in facts] == [cell["name"] for cell in cells]
    assert {row["status"] for row in facts} == {"indexing"}
    assert {row["operation_uuid"] for row in facts} == {
        str(pk) for pk in Operation.objects.values_list("pk", flat=True)
    }
    there = callers.owner.post(f"{path}/preview", GRID).json()["indexes"]
    assert [(cell["state"], cell["index"]) for cell in there] == [("begun", row["id"]) for row in facts]
    assert Index.objects.filter(owner=callers.owner.user).count() == 4


@pytest.mark.parametrize(
    ("stated", "status", "told"),
    [
        ({"strategies": []}, 400, "strategies"),
        ({"encoders": ["/models/e5"]}, 400, "must be the name of a model"),
        ({"strategies": [{"strategy": "none"}]}, 400, "is not a valid choice."),
        ({"encoders": [""]}, 400, "name an encoder"),
        ({"strategies": [{"strategy": "flat", "chunk_parameters": {"size": "x"}}]}, 400, "Chunk parameters are"),
        ({"store": "memory"}, 400, "Unknown key"),
        ({"strategies": [{"strategy": "lod_llm"}]}, 409, "Nothing is made"),
    ],
)
def test_what_is_wrong_makes_nothing(
    callers: Callers, fruit: Collection, stated: dict[str, Any], status: int, told: str
) -> None:
    answer = callers.owner.post(f"/collections/{fruit.pk}/indexes/grid", GRID | stated)
    assert (answer.status_code, told in answer.content.decode()) == (status, True), answer.content
    assert not Index.objects.exists()


def test_who_may_what(callers: Callers, fruit: Collection) -> None:
    path = f"/collections/{fruit.pk}/indexes/grid"
    for name, planned, made in (("other", 403, 403), ("reader", 200, 403), ("overseer", 200, 202)):
        caller = getattr(callers, name)
        assert (caller.post(f"{path}/preview", GRID).status_code, caller.post(path, GRID).status_code) == (
            planned,
            made,
        )
