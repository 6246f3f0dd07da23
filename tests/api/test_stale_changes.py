"""If-Match with the ETag of a row: a change of a row that was changed since is refused, with who changed what."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import get_resolver

from apps.api.resource import Resource
from apps.datasets.models import Query
from apps.judging.models import Round
from tests.api.bodies import fruit, path_of
from tests.api.callers import Caller, Callers, assert_refused, checked_json
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"


def draft_query(caller: Caller) -> str:
    _, path = fruit(caller)
    caller.post(f"{path}/queries", {"query_key": "new", "query_text": "new fruit"})
    return path_of(path, "new")


def draft_judgment(caller: Caller) -> str:
    path = draft_query(caller)
    created = checked_json(
        caller.post(f"{path}/judgments", {"doc_ref": {"document_id": "d"}, "relevance_grade": 1}), 201
    )
    return f"{path}/judgments/{created['id']}"


def collection(caller: Caller) -> str:
    return f"/collections/{make_collection(owner=caller.user).pk}"


def schedule(caller: Caller) -> str:
    dataset, documents = make_dataset(owner=caller.user), make_collection(owner=caller.user)
    benchmark = make_benchmark(make_mapping(dataset, documents, owner=caller.user), owner=caller.user)
    return f"/schedules/{make_schedule(benchmark, owner=caller.user).pk}"


def round_path(caller: Caller) -> str:
    dataset, documents = make_dataset(owner=caller.user), make_collection(owner=caller.user)
    mapping = make_mapping(dataset, documents, owner=caller.user)
    created = Round.objects.create(
        owner=caller.user,
        name="r",
        mapping=mapping,
        dataset_version=mapping.dataset_version,
        depth=1,
        measure="nDCG@10",
        scale=[],
    )
    return f"/judging-rounds/{created.pk}"


# By the model of a resource: how to make a row, the method, a change and another one.
ROWS: dict[str, Any] = {
    "query": (draft_query, "PATCH", {"query_text": "first"}, {"query_text": "second"}),
    "judgment": (draft_judgment, "PUT", {"relevance_grade": 2}, {"relevance_grade": 3}),
    "collection": (collection, "PATCH", {"description": "first"}, {"description": "second"}),
    "schedule": (schedule, "PATCH", {"cron": "1 1 * * *"}, {"cron": "2 2 * * *"}),
    "round": (round_path, "PATCH", {"guidelines": "first"}, {"guidelines": "second"}),
}


def test_every_address_that_changes_a_row_is_covered() -> None:
    assert get_resolver()
    editing = [
        path.name
        for kind in Resource.kinds
        for path in kind.list_addresses()
        if {"patch", "put"} & set(getattr(path.callback, "actions", {}))
    ]
    assert len(editing) == len(ROWS), editing


def test_schema_has_both_headers_of_each_row_that_changes() -> None:
    schema = yaml.load(SCHEMA.read_text(), yaml.CSafeLoader)
    having: dict[str, set[str]] = {"get": set(), "patch": set(), "put": set(), "delete": set()}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            declared = {parameter["name"] for parameter in operation.get("parameters", ())}
            supplied = set(operation["responses"].get("200", {}).get("headers", {}))
            if method in having and {"If-Match", "ETag"} & (declared | supplied):
                having[method].add(path)
    assert having["patch"] | having["put"] == having["get"]
    assert len(having["get"]) == len(ROWS)
    assert having["delete"] <= having["get"]


@pytest.mark.parametrize("kind", ROWS)
def test_stale_change_is_refused_with_its_author(kind: str, callers: Callers) -> None:
    make, method, first, second = ROWS[kind]
    path, owner = make(callers.owner), callers.owner
    tag = owner.get(path)["ETag"]
    checked_json(owner.ask(method, path, first, if_match=tag), 200)
    refused = owner.ask(method, path, second, if_match=tag)
    assert_refused(refused, 409, "stale", "read it again", field="If-Match")
    if kind != "judgment":
        assert owner.user.username in refused.json()["detail"]
        assert next(iter(first)) in refused.json()["detail"]
    assert_refused(owner.ask("DELETE", path, if_match=tag), 409, "stale")
    assert owner.get(path)["ETag"] != tag
    checked_json(owner.ask(method, path, second, if_match=owner.get(path)["ETag"]), 200)
    checked_json(owner.ask(method, path, first), 200)  # without the header, the last one wins
    checked_json(owner.ask(method, path, second, if_match="*"), 200)


def test_changes_of_other_fields_stay_without_the_header(callers: Callers) -> None:
    path = draft_query(callers.owner)
    checked_json(callers.owner.patch(path, {"query_text": "changed"}), 200)
    checked_json(callers.owner.patch(path, {"notes": "noted"}), 200)
    query = Query.objects.get(key="new")
    assert (query.text, query.notes) == ("changed", "noted")
