"""Every endpoint times everybody who may ask: whatever is added to the addresses is asked here too."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.urls import URLPattern, reverse

from apps.api import urls
from apps.api.resource import Operation
from apps.benchmarks.gates.baselines import approve
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Run
from apps.benchmarks.repeating.manifests import build_manifest
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from tests.api.callers import ROOT, Caller, Callers
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round, make_schedule

POSTS_THAT_READ = {
    *("check_mapping", "preview_benchmark", "gate_benchmark", "gate_run", "preview_indexes", "preview_llm_judging")
}
NUMBERS = {"query_id", "judgment_id", "number", "item_id"}  # parameters that are whole numbers
UNKNOWN = UUID("00000000-0000-4000-8000-000000000000")


@dataclass(frozen=True)
class Address:
    """An address of the API, with the parameters that it has and the permission that each method needs."""

    name: str
    parameters: tuple[str, ...]
    acts: dict[str, str]

    def path(self, values: Callable[[str], Any]) -> str:
        whole = reverse(f"api:{self.name}", kwargs={name: values(name) for name in self.parameters})
        return whole.removeprefix(ROOT)


def addresses() -> Iterator[Address]:
    """Yield those that ask who is there."""
    for pattern in urls.urlpatterns:
        view = pattern.callback.cls if hasattr(pattern.callback, "actions") else None
        if view and view.permission_classes:
            acts = {act.method.upper(): act.permission for act in operations(pattern)}
            yield Address(str(pattern.name), tuple(pattern.pattern.converters), acts)


def operations(pattern: URLPattern) -> list[Operation]:
    """Return the operations of an address; none of one that is no resource's."""
    return [getattr(pattern.callback.cls, name).operation for name in getattr(pattern.callback, "actions", {}).values()]


def outcomes(caller: Caller, values: Callable[[str], Any]) -> dict[tuple[str, str], int]:
    """Ask everything as `caller`, with an empty object as the body, and undo what that did."""
    found = {}
    for address in addresses():
        for method in address.acts:
            with transaction.atomic():
                answer = caller.ask(method, address.path(values), {} if method != "GET" else None)
                transaction.set_rollback(True)
            assert answer.status_code < 500, (address, answer.content)
            found[method, address.name] = answer.status_code
    return found


def world(owner: User, name: str = "world") -> dict[str, Any]:
    """Return something of the owner's for each parameter that an address has: add yours."""
    collection = make_collection(name, [{}], owner=owner)
    dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]}, name, owner=owner)
    mapping = make_mapping(dataset, collection, name=name, owner=owner)
    benchmark = make_benchmark(mapping, [0.5], owner=owner)
    index = Index.objects.create(collection=collection, name="index", encoder="keyword:a", owner=owner)
    baseline = approve(benchmark.runs.get(), name="main", reason="Because.", by=owner)
    judged = make_round(benchmark.runs.get(), owner=owner)
    return {
        "collection_id": collection.pk,
        "dataset_id": dataset.pk,
        "mapping_id": mapping.pk,
        "query_id": dataset.queries.get().pk,
        "judgment_id": dataset.queries.get().judgments.get().pk,
        "number": 1,
        "benchmark_id": benchmark.pk,
        "document_id": collection.documents.get().uuid,
        "index_id": index.pk,
        "operation_id": build_index(index).pk,
        "run_id": benchmark.runs.get().pk,
        "baseline_id": baseline.pk,
        "round_id": judged.pk,
        "item_id": judged.items.get().pk,
        "schedule_id": make_schedule(benchmark, owner=owner).pk,
    }


def unknown(name: str) -> UUID | int:
    return 0 if name in NUMBERS else UNKNOWN


@pytest.mark.parametrize(("name", "status"), [("anonymous", 401), ("visitor", 403), ("idle", 403)])
def test_unauthorised_callers_are_refused_everywhere(callers: Callers, name: str, status: int) -> None:
    found = outcomes(getattr(callers, name), unknown)
    assert found == dict.fromkeys(found, status)


def test_a_token_that_reads_may_do_nothing_else(callers: Callers) -> None:
    acts = {(method, address.name): act for address in addresses() for method, act in address.acts.items()}
    for asked, status in outcomes(callers.reader, unknown).items():
        assert (status == 403) == (acts[asked] != "view"), (asked, status)
    assert {name for (method, name), act in acts.items() if (method, act) == ("POST", "view")} == POSTS_THAT_READ


def test_view_only_user_can_make_every_read_request(callers: Callers) -> None:
    rows = world(callers.owner.user)
    callers.owner.user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    asked = {(method, address.name) for address in addresses() for method, act in address.acts.items() if act == "view"}
    for what, status in outcomes(callers.reader, rows.__getitem__).items():
        assert (status != 403) == (what in asked), (what, status)


def test_rows_of_other_owners_are_refused_and_own_allowed(callers: Callers) -> None:
    rows = world(callers.owner.user)
    of_rows = {address.name for address in addresses() if address.parameters}
    for who in ("other", "owner", "overseer"):
        for (method, name), status in outcomes(getattr(callers, who), rows.__getitem__).items():
            assert (status == 403) == (who == "other" and name in of_rows), (who, method, name, status)
            assert status != 404, (who, method, name)


def test_an_unknown_id_is_not_found(callers: Callers) -> None:
    of_rows = {address.name for address in addresses() if address.parameters}
    for (method, name), status in outcomes(callers.owner, unknown).items():
        assert (status == 404) == (name in of_rows), (method, name, status)


SECRET = "not to be told"
BY_WORDS: dict[str, Any] = {"search_modes": ["sparse"]}


def named(mapping: Mapping, run: Run, manifest: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the bodies by which a request names something, or has it chosen for it: add yours."""
    searched = {"mapping_id": str(mapping.pk), "config_matrix": {**BY_WORDS, "indexes": ["unheard of"]}}
    against = {"rules": "against_baseline:\n  nDCG@10: {may_lose: 0.1}", "baseline": "unheard of"}
    return {
        ("POST", "list_benchmarks"): {**searched, "name": "b"},
        ("POST", "preview_benchmark"): searched,
        ("POST", "run_manifest"): {"manifest": manifest},
        ("POST", "list_mappings"): {"collection_id": str(mapping.collection_id)},
        ("POST", "gate_benchmark"): against,
        ("POST", "gate_run"): against,
        ("POST", "list_rounds"): {"run_ids": [str(run.pk)], "name": "r", "order": "depth"},
        ("POST", "list_schedules"): {"benchmark_id": str(run.benchmark_id), "name": "s", "cron": "@", "baseline": "b"},
        ("POST", "list_baselines"): {"run_id": str(run.pk), "name": "main", "reason": "It is good."},
    }


@pytest.fixture
def shared(callers: Callers) -> Mapping:
    """A mapping that everybody sees, and all that `other` alone made of its collection and its dataset."""
    mapping, other = make_library(documents=6, queries=2), callers.other.user
    theirs: dict[str, Any] = {"name": SECRET, "owner": other}
    wait(build_index(create_index(mapping.collection, encoder="", **theirs)))
    collection, dataset = make_collection(SECRET, [{}], owner=other), make_dataset({"q": []}, SECRET, owner=other)
    make_mapping(mapping.dataset, collection, **theirs)
    make_mapping(dataset, mapping.collection, name=f"{SECRET} either", owner=other)
    for made in (theirs, {"name": "mine", "owner": callers.owner.user}):
        wait(launch(create_benchmark(mapping, matrix=BY_WORDS, **made)))
    Run.objects.filter(benchmark__name=SECRET).update(label=SECRET)
    approve(Run.objects.get(label=SECRET), name="main", reason=SECRET, by=other)
    return mapping


@pytest.mark.thorough
def test_no_answer_reveals_names_of_hidden_objects(callers: Callers, shared: Mapping) -> None:
    """Whatever is asked of what everybody sees, by id or by name: what others made of it is not there."""
    run = Run.objects.get(benchmark__name="mine")
    query = shared.dataset.queries.get(key="q000")
    manifest = json.dumps(build_manifest(shared.benchmarks.get(name=SECRET)))
    bodies = named(shared, run, json.loads(manifest.replace(SECRET, "unheard of")))
    rows = {
        "collection_id": shared.collection_id,
        "document_id": shared.collection.documents.get(external_id="d000").uuid,
        "dataset_id": shared.dataset_id,
        "number": 1,
        "query_id": query.pk,
        "judgment_id": query.judgments.order_by("pk")[0].pk,
        "mapping_id": shared.pk,
        "benchmark_id": run.benchmark_id,
        "run_id": run.pk,
        "operation_id": run.benchmark.operation_id,
        "index_id": run.index_id,
        "baseline_id": UNKNOWN,
        "round_id": UNKNOWN,
        "item_id": 0,
        "schedule_id": UNKNOWN,
    }
    for address in addresses():
        for method in address.acts:
            body = bodies.pop((method, address.name), {}) if method != "GET" else None
            with transaction.atomic():
                answer = callers.owner.ask(method, address.path(rows.__getitem__), body)
                transaction.set_rollback(True)
            assert answer.status_code < 500, (address, answer.content)
            assert SECRET not in answer.content.decode(), (method, address.name, answer.content)
    assert not bodies, "no address answers these"
