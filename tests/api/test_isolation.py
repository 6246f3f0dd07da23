"""Every endpoint times everybody who may ask: everything that is added to the addresses is asked here too."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction

from apps.execution.launching import launch
from apps.experiments.manifests import build_manifest
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Run
from apps.retrieval.indexing import build_index, create_index
from apps.verdicts.gates.baselines import approve
from tests.api.addresses import POSTS_THAT_READ, UNKNOWN, addresses
from tests.api.callers import Caller, Callers
from tests.api.worlds import world
from tests.created import create_benchmark
from tests.factories import make_collection, make_dataset, make_mapping
from tests.library import make_library

NUMBERS = {"query_id", "judgment_id", "number", "item_id"}  # parameters that are whole numbers


def outcomes(caller: Caller, values: Callable[[str], Any]) -> dict[tuple[str, str], int]:
    """Ask everything as `caller`, with an empty object as the body, and undo what that did."""
    hits = {}
    for address in addresses():
        for method in address.acts:
            with transaction.atomic():
                answer = caller.ask(method, address.path(values), {} if method != "GET" else None)
                transaction.set_rollback(True)
            assert answer.status_code < 500, (address, answer.content)
            hits[method, address.name] = answer.status_code
    return hits


def unknown(name: str) -> UUID | int:
    return 0 if name in NUMBERS else UNKNOWN


@pytest.mark.parametrize(("name", "status"), [("anonymous", 401), ("visitor", 403), ("idle", 403)])
def test_unauthorised_callers_are_refused_everywhere(callers: Callers, name: str, status: int) -> None:
    result = outcomes(getattr(callers, name), unknown)
    assert result == dict.fromkeys(result, status)


def test_a_token_that_reads_may_do_nothing_else(callers: Callers) -> None:
    acts = {(method, address.name): act for address in addresses() for method, act in address.acts.items()}
    for requested, status in outcomes(callers.reader, unknown).items():
        assert (status == 403) == (acts[requested] != "view"), (requested, status)
    assert {name for (method, name), act in acts.items() if (method, act) == ("POST", "view")} == POSTS_THAT_READ


def test_view_only_user_can_make_every_read_request(callers: Callers) -> None:
    rows = world(callers.owner.user)
    callers.owner.user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    requests = {
        (method, address.name) for address in addresses() for method, act in address.acts.items() if act == "view"
    }
    for subject, status in outcomes(callers.reader, rows.__getitem__).items():
        assert (status != 403) == (subject in requests), (subject, status)


def test_rows_of_other_owners_are_refused_and_own_allowed(callers: Callers) -> None:
    rows = world(callers.owner.user)
    of_rows = {address.name for address in addresses() if address.parameters}
    for person in ("other", "owner", "overseer"):
        for (method, name), status in outcomes(getattr(callers, person), rows.__getitem__).items():
            assert (status == 403) == (person == "other" and name in of_rows), (person, method, name, status)
            assert status != 404, (person, method, name)


def test_an_unknown_id_is_not_found(callers: Callers) -> None:
    of_rows = {address.name for address in addresses() if address.parameters}
    for (method, name), status in outcomes(callers.owner, unknown).items():
        assert (status == 404) == (name in of_rows), (method, name, status)


SECRET = "not to be told"
BY_WORDS: dict[str, Any] = {"search_modes": ["sparse"]}


def build_bodies(mapping: Mapping, run: Run, manifest: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
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
    mapping, second = make_library(documents=6, queries=2), callers.other.user
    theirs: dict[str, Any] = {"name": SECRET, "owner": second}
    wait(build_index(create_index(mapping.collection, encoder="", **theirs)))
    collection, dataset = make_collection(SECRET, [{}], owner=second), make_dataset({"q": []}, SECRET, owner=second)
    make_mapping(mapping.dataset, collection, **theirs)
    make_mapping(dataset, mapping.collection, name=f"{SECRET} either", owner=second)
    for created in (theirs, {"name": "mine", "owner": callers.owner.user}):
        wait(launch(create_benchmark(mapping, matrix=BY_WORDS, **created)))
    Run.objects.filter(benchmark__name=SECRET).update(label=SECRET)
    approve(Run.objects.get(label=SECRET), name="main", reason=SECRET, by=second)
    return mapping


@pytest.mark.thorough
def test_no_answer_reveals_names_of_hidden_objects(callers: Callers, shared: Mapping) -> None:
    """Everything that is asked of what everybody sees, by id or by name: what others made of it is not there."""
    run = Run.objects.get(benchmark__name="mine")
    query = shared.dataset.queries.get(key="q000")
    manifest = json.dumps(build_manifest(shared.benchmarks.get(name=SECRET)))
    bodies = build_bodies(shared, run, json.loads(manifest.replace(SECRET, "unheard of")))
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
