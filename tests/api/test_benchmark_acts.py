"""Benchmarks that are there, over HTTP: cloned, measured by more, re-scored, told as manifests."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.manifests import manifest_of
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.operations.working import wait
from apps.retrieval.models import Index
from tests.api.callers import Callers
from tests.api.test_benchmarks import FIELDS
from tests.benchmarks.conftest import make_library
from tests.benchmarks.gated import GOOD, make_gated, search
from tests.created import create_benchmark


@pytest.fixture
def nightly(callers: Callers) -> Benchmark:
    return search(make_gated(), GOOD, owner=callers.owner.user)


@pytest.fixture
def library(db: None) -> Mapping:
    return make_library(documents=6, queries=2)


def act(benchmark: Benchmark, name: str) -> str:
    return f"/benchmarks/{benchmark.pk}/{name}"


def test_it_clones_every_option(callers: Callers, library: Mapping) -> None:
    options: dict[str, Any] = {"execution": "isolated", "runs_per_query": 2, "seed": 7, "empty_queries": "skip"}
    options |= {"experiment": {"id": "sections"}, "allow_missing": True}
    matrix = {"search_modes": ["sparse", "dense"], "top_k_values": [20, 30]}
    source = create_benchmark(
        library, name="x" * 200, matrix=matrix, measures=["ERR@10"], owner=callers.owner.user, **options
    )
    answer = callers.owner.post(act(source, "clone"), {})
    assert (answer.status_code, set(answer.json())) == (201, FIELDS), answer.content
    copy = Benchmark.objects.get(pk=answer.json()["id"])
    assert (copy.name, copy.status) == ("x" * 194 + ", copy", "pending")
    same = ("matrix", "measures", "mapping_id", "execution", "runs_per_query", "seed", "unresolved", "empty_queries")
    same += ("experiment", "allow_missing")
    assert [getattr(copy, name) for name in same] == [getattr(source, name) for name in same]
    assert [run.config_hash for run in copy.runs.all()] == [run.config_hash for run in source.runs.all()]
    named = callers.overseer.post(act(source, "clone"), {"name": "mine"}).json()
    assert (named["name"], named["owner_id"]) == ("mine", callers.overseer.user.pk)
    strict = callers.owner.post(act(source, "clone"), {"allow_missing": False}).json()
    assert not Benchmark.objects.get(pk=strict["id"]).allow_missing
    assert callers.owner.post(act(source, "clone"), {"named": "mine"}).status_code == 400
    rebuilt = Index.objects.get()
    rebuilt.pk, rebuilt.version, rebuilt.ready_at, rebuilt._state.adding = uuid4(), 2, timezone.now(), True
    rebuilt.save()
    other = Benchmark.objects.get(pk=callers.owner.post(act(source, "clone"), {}).json()["id"])
    assert {run.index for run in other.runs.all()} == {rebuilt}
    assert other.experiment == {}  # which says what was run
    Index.objects.update(status=Index.Status.FAILED)
    refused = callers.owner.post(act(source, "clone"))
    assert (refused.status_code, refused.json()["code"]) == (409, "cannot_clone")
    assert "has no index that is ready" in refused.json()["detail"]


def test_it_measures_by_more(callers: Callers, nightly: Benchmark) -> None:
    answer = callers.owner.post(act(nightly, "measures"), {"metrics_to_compute": ["map@10", "Success@5"]})
    assert answer.status_code == 200, answer.content
    assert answer.json()["added"][:2] == ["AP@10", "Success@5"]
    means = callers.owner.get(act(nightly, "results")).json()["runs"][0]["metrics_flat"]
    assert means["Success@5"] == pytest.approx(20 / 21)
    assert means["map@10"] == pytest.approx(15 / 21)
    for body, told in (
        ({"metrics_to_compute": ["mrr"]}, "already"),
        ({"metrics_to_compute": ["Hit@@"]}, "Hit"),
        ({"metrics_to_compute": []}, "at least 1 elements."),
        ({}, "This field is required."),
    ):
        refused = callers.owner.post(act(nightly, "measures"), body)
        assert (refused.status_code, set(refused.json()["errors"])) == (400, {"metrics_to_compute"})
        assert told in refused.json()["detail"]
    Benchmark.objects.update(status=Status.RUNNING)
    running = callers.owner.post(act(nightly, "measures"), {"metrics_to_compute": ["ERR@20"]})
    assert (running.status_code, running.json()["code"]) == (409, "conflict")


def test_much_is_measured_on_the_queue(callers: Callers, nightly: Benchmark, settings: Any) -> None:
    settings.BENCHBENCH_MEASURE_AT_ONCE = -1  # its version says nothing of its queries
    answer = callers.owner.post(act(nightly, "measures"), {"metrics_to_compute": ["ERR@20"]})
    told = answer.json()
    assert (answer.status_code, told["added"][0]) == (202, "ERR@20")
    again = callers.owner.post(act(nightly, "rescore"))
    assert (again.status_code, again.json()["code"]) == (409, "operation_active")
    operation = Operation.objects.get(pk=told["operation_uuid"])
    assert operation.started_by == nightly.owner
    wait(operation)
    ended = callers.owner.get(f"/operations/{operation.pk}").json()
    assert (ended["event"], ended["progress"]["stage"], ended["progress"]["versions"]) == (
        *("measuring_progress", "completed"),
        [1],
    )
    rescored = callers.owner.post(act(nightly, "rescore"))
    nothing_yet = dict.fromkeys(("measured_runs", "unsearched_queries", "dropped_queries"))
    assert (rescored.status_code, rescored.json() | nothing_yet) == (202, rescored.json())
    assert rescored.json()["operation_uuid"]


def test_it_rescores_what_can_be(callers: Callers, nightly: Benchmark) -> None:
    newest = callers.owner.post(act(nightly, "rescore"))
    assert (newest.status_code, newest.json()["dataset_version"], newest.json()["measured_runs"]) == (200, 1, 1)
    assert "nothing was searched" in newest.json()["message"]
    for version, field in ((7, "version"), (2**31, "version"), ("1", "version")):
        refused = callers.owner.post(act(nightly, "rescore"), {"version": version})
        assert (refused.status_code, set(refused.json()["errors"])) == (400, {field})
    Benchmark.objects.update(status=Status.RUNNING)
    running = callers.owner.post(act(nightly, "rescore"))
    assert (running.status_code, running.json()["code"]) == (409, "cannot_rescore")


def test_it_tells_a_manifest_once_it_has_ended(callers: Callers, nightly: Benchmark) -> None:
    assert callers.owner.get(act(nightly, "manifest")).json() == manifest_of(nightly)
    Benchmark.objects.update(status=Status.RUNNING)
    early = callers.owner.get(act(nightly, "manifest"))
    assert (early.status_code, early.json()["code"]) == (409, "manifest")


def test_it_runs_a_manifest_again_and_says_whether_it_is_the_same(callers: Callers, library: Mapping) -> None:
    source = create_benchmark(library, name="first", matrix={"search_modes": ["sparse"]}, owner=callers.owner.user)
    alone = callers.owner.get(act(source, "verification"))
    assert (alone.status_code, alone.json()["code"]) == (409, "manifest")
    wait(launch(source))
    manifest = callers.owner.get(act(source, "manifest")).json()
    answer = callers.owner.post("/benchmarks/manifest", {"manifest": manifest})
    assert (answer.status_code, answer.json()["name"], answer.json()["status"]) == (201, "first, again", "pending")
    again = Benchmark.objects.get(pk=answer.json()["id"])
    assert callers.owner.get(act(again, "verification")).status_code == 409
    wait(launch(again))
    told = callers.owner.get(act(again, "verification")).json()
    assert told == {"reproduces": True, "source": "first", "differences": [], "environment": []}


def test_a_clone_needs_the_mapping(callers: Callers, library: Mapping) -> None:
    source = create_benchmark(library, name="ours", matrix={"search_modes": ["sparse"]})
    Mapping.objects.update(owner=callers.other.user)
    assert callers.owner.post(act(source, "clone"), {}).status_code == 403
    assert callers.overseer.post(act(source, "clone"), {}).status_code == 201


def test_a_manifest_names_no_path_of_the_server(callers: Callers) -> None:
    answer = callers.owner.post("/benchmarks/manifest", {"manifest": {"matrix": {"rerankers": ["../models/x"]}}})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["rerankers"])


@pytest.mark.parametrize("manifest", [7, [], {}, "x", {"schema": "benchbench-experiment", "schema_version": "1.0"}])
def test_what_is_no_manifest_is_told(callers: Callers, manifest: Any) -> None:
    answer = callers.owner.post("/benchmarks/manifest", {"manifest": manifest})
    assert (answer.status_code, answer.json()["code"]) == (400, "manifest")


def test_a_damaged_manifest_is_told(callers: Callers, nightly: Benchmark) -> None:
    whole = manifest_of(nightly)
    for key in [*whole, "runs", "indexes"]:
        for value in (None, 10**30, -1, "x", [7], {"a": [None]}):
            answer = callers.owner.post("/benchmarks/manifest", {"manifest": whole | {key: value}})
            assert answer.status_code in (400, 409), (key, value, answer.content)


@pytest.mark.parametrize(
    ("name", "clone", "measures", "rescore", "manifest"),
    [
        ("anonymous", 401, 401, 401, 401),
        ("visitor", 403, 403, 403, 403),
        ("idle", 403, 403, 403, 403),
        ("other", 403, 403, 403, 403),
        ("reader", 403, 403, 403, 200),
        ("overseer", 409, 200, 200, 200),
        ("owner", 409, 200, 200, 200),
    ],
)
def test_each_may_do_what_is_theirs(
    callers: Callers, nightly: Benchmark, name: str, clone: int, measures: int, rescore: int, manifest: int
) -> None:
    caller = getattr(callers, name)
    answers = [
        caller.post(act(nightly, "clone")),  # whose collection has no index
        caller.post(act(nightly, "measures"), {"metrics_to_compute": ["ERR@20"]}),
        caller.post(act(nightly, "rescore")),
        caller.get(act(nightly, "manifest")),
    ]
    assert [answer.status_code for answer in answers] == [clone, measures, rescore, manifest]
