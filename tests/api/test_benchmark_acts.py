"""Benchmarks that exist, over HTTP: run, cancelled, retried, cloned, measured by more, re-scored, told as manifests."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from apps.execution.launching import launch
from apps.experiments.manifests import build_manifest
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.operations.working import wait
from apps.records.models import Benchmark, QueryResult, Run
from apps.retrieval.models import Index
from tests.api.bodies import BENCHMARKS, post_benchmark
from tests.api.callers import Callers, assert_refused, checked_json
from tests.benchmarks.gated import GOOD, make_gated, search
from tests.created import create_benchmark
from tests.rankings import change_rankings


@pytest.fixture
def nightly(callers: Callers) -> Benchmark:
    return search(make_gated(), GOOD, owner=callers.owner.user)


def act(benchmark: Benchmark, name: str) -> str:
    return f"/benchmarks/{benchmark.pk}/{name}"


def test_it_clones_every_option(callers: Callers, library: Mapping) -> None:
    options: dict[str, Any] = {"execution": "isolated", "runs_per_query": 2, "seed": 7, "empty_queries": "skip"}
    options |= {"experiment": {"id": "sections"}, "allow_missing": True}
    matrix = {"search_modes": ["sparse", "dense"], "top_k_values": [20, 30]}
    source = create_benchmark(
        library, name="x" * 200, matrix=matrix, measures=["ERR@10"], owner=callers.owner.user, **options
    )
    copy = Benchmark.objects.get(pk=checked_json(callers.owner.post(act(source, "clone"), {}), 201)["id"])
    assert (copy.name, copy.status) == ("x" * 194 + ", copy", "pending")
    same = ("matrix", "measures", "mapping_id", "execution", "runs_per_query", "seed", "unresolved", "empty_queries")
    same += ("experiment", "allow_missing")
    assert [getattr(copy, name) for name in same] == [getattr(source, name) for name in same]
    assert [run.config_hash for run in copy.runs.all()] == [run.config_hash for run in source.runs.all()]
    answer = callers.overseer.post(act(source, "clone"), {"name": "mine"}).json()
    assert (answer["name"], answer["owner_id"]) == ("mine", callers.overseer.user.pk)
    strict = callers.owner.post(act(source, "clone"), {"allow_missing": False}).json()
    assert not Benchmark.objects.get(pk=strict["id"]).allow_missing
    assert callers.owner.post(act(source, "clone"), {"named": "mine"}).status_code == 400
    rebuilt = Index.objects.get()
    rebuilt.pk, rebuilt.version, rebuilt.ready_at, rebuilt._state.adding = uuid4(), 2, timezone.now(), True
    rebuilt.save()
    second = Benchmark.objects.get(pk=callers.owner.post(act(source, "clone"), {}).json()["id"])
    assert {run.index for run in second.runs.all()} == {rebuilt}
    assert second.experiment == {}  # which says what was run
    Index.objects.update(status=Index.Status.FAILED)
    assert_refused(callers.owner.post(act(source, "clone")), 409, "cannot_clone", "has no ready index")


def test_it_measures_by_more(callers: Callers, nightly: Benchmark) -> None:
    more = checked_json(
        callers.owner.post(act(nightly, "measures"), {"metrics_to_compute": ["map@10", "Success@5"]}), 200
    )
    assert more["added"][:2] == ["AP@10", "Success@5"]
    means = callers.owner.get(act(nightly, "results")).json()["runs"][0]["metrics_flat"]
    assert means["Success@5"] == pytest.approx(20 / 21)
    assert means["map@10"] == pytest.approx(15 / 21)
    for body, message in (
        ({"metrics_to_compute": ["mrr"]}, "already"),
        ({"metrics_to_compute": ["Hit@@"]}, "Hit"),
    ):
        assert_refused(
            callers.owner.post(act(nightly, "measures"), body), 400, message=message, field="metrics_to_compute"
        )
    Benchmark.objects.update(status=Status.RUNNING)
    assert_refused(callers.owner.post(act(nightly, "measures"), {"metrics_to_compute": ["ERR@20"]}), 409, "conflict")


def test_much_is_measured_on_the_queue(callers: Callers, nightly: Benchmark, settings: Any) -> None:
    settings.BENCHBENCH_MEASURE_AT_ONCE = -1  # its version says nothing of its queries
    answer = callers.owner.post(act(nightly, "measures"), {"metrics_to_compute": ["ERR@20"]})
    message = answer.json()
    assert (answer.status_code, message["added"][0]) == (202, "ERR@20")
    assert_refused(callers.owner.post(act(nightly, "rescore")), 409, "operation_active")
    operation = Operation.objects.get(pk=message["operation_uuid"])
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


def test_post_rescores_measurable_benchmarks(callers: Callers, nightly: Benchmark) -> None:
    newest = callers.owner.post(act(nightly, "rescore"))
    assert (newest.status_code, newest.json()["dataset_version"], newest.json()["measured_runs"]) == (200, 1, 1)
    assert "from stored rankings" in newest.json()["message"]
    for version in (7, 2**31, "1"):
        assert_refused(callers.owner.post(act(nightly, "rescore"), {"version": version}), 400, field="version")
    Benchmark.objects.update(status=Status.RUNNING)
    assert_refused(callers.owner.post(act(nightly, "rescore")), 409, "cannot_rescore")


def test_finished_benchmark_returns_its_manifest(callers: Callers, nightly: Benchmark) -> None:
    assert callers.owner.get(act(nightly, "manifest")).json() == build_manifest(nightly)
    Benchmark.objects.update(status=Status.RUNNING)
    assert_refused(callers.owner.get(act(nightly, "manifest")), 409, "manifest")


def test_manifest_can_be_rerun_and_verified(callers: Callers, library: Mapping) -> None:
    source = create_benchmark(library, name="first", matrix={"search_modes": ["sparse"]}, owner=callers.owner.user)
    assert_refused(callers.owner.get(act(source, "verification")), 409, "manifest")
    wait(launch(source))
    manifest = callers.owner.get(act(source, "manifest")).json()
    answer = callers.owner.post("/benchmarks/manifest", {"manifest": manifest})
    assert (answer.status_code, answer.json()["name"], answer.json()["status"]) == (201, "first, again", "pending")
    again = Benchmark.objects.get(pk=answer.json()["id"])
    assert callers.owner.get(act(again, "verification")).status_code == 409
    wait(launch(again))
    message = callers.owner.get(act(again, "verification")).json()
    assert message == {"reproduces": True, "source": "first", "differences": [], "environment": []}


def test_a_clone_needs_the_mapping(callers: Callers, library: Mapping) -> None:
    source = create_benchmark(library, name="ours", matrix={"search_modes": ["sparse"]})
    Mapping.objects.update(owner=callers.other.user)
    assert callers.owner.post(act(source, "clone"), {}).status_code == 403
    assert callers.overseer.post(act(source, "clone"), {}).status_code == 201


def test_a_manifest_names_no_path_of_the_server(callers: Callers) -> None:
    answer = callers.owner.post("/benchmarks/manifest", {"manifest": {"matrix": {"rerankers": ["../models/x"]}}})
    assert_refused(answer, 400, field="rerankers")


@pytest.mark.parametrize("manifest", [7, [], {}, "x", {"schema": "benchbench-experiment", "schema_version": "1.0"}])
def test_invalid_manifest_is_rejected(callers: Callers, manifest: Any) -> None:
    assert_refused(callers.owner.post("/benchmarks/manifest", {"manifest": manifest}), 400, "manifest")


def test_damaged_manifest_never_causes_a_server_error(callers: Callers, nightly: Benchmark) -> None:
    manifest = build_manifest(nightly)
    for key in [*manifest, "runs", "indexes"]:
        for value in (None, 10**30, -1, "x", [7], {"a": [None]}):
            answer = callers.owner.post("/benchmarks/manifest", {"manifest": manifest | {key: value}})
            assert answer.status_code in (400, 409), (key, value, answer.content)


def test_it_starts_and_ends_and_does_not_start_again(callers: Callers, library: Mapping) -> None:
    row = post_benchmark(callers.owner, library)
    started = checked_json(callers.owner.post(f"{BENCHMARKS}/{row.pk}/start"), 200)
    row.refresh_from_db()
    messages = {"id": str(row.pk), "status": "running", "operation_uuid": str(row.operation_id)}
    assert started == messages | {"message": "The benchmark is started."}
    assert row.operation is not None
    assert row.operation.started_by == callers.owner.user
    for act, message in (("start", "already running"), ("retry", "is running: wait")):
        assert_refused(callers.owner.post(f"{BENCHMARKS}/{row.pk}/{act}"), 409, "conflict", message)
    assert "cancel it before" in callers.owner.delete(f"{BENCHMARKS}/{row.pk}").json()["detail"]
    wait(row.operation)
    facts = callers.owner.get(f"{BENCHMARKS}/{row.pk}").json()
    assert (facts["status"], facts["completed_runs"]) == ("completed", 1)
    assert facts["operation_uuid"] == str(row.operation_id)
    assert facts["completed_at"] > facts["started_at"]
    for act in ("start", "retry", "cancel"):
        assert callers.owner.post(f"{BENCHMARKS}/{row.pk}/{act}").status_code == 409
    assert callers.owner.delete(f"{BENCHMARKS}/{row.pk}").status_code == 204
    assert callers.owner.get(f"{BENCHMARKS}/{row.pk}").status_code == 404


@pytest.mark.parametrize("act", ["start", "cancel", "retry"])
def test_act_with_an_unused_key_starts_nothing(callers: Callers, library: Mapping, act: str) -> None:
    row = post_benchmark(callers.owner, library)
    refused = callers.owner.post(f"{BENCHMARKS}/{row.pk}/{act}", {"dry_run": True})
    answer = "Unknown key: use priority." if act == "start" else "No key is allowed here: leave out 'dry_run'."
    assert_refused(refused, 400, message=answer)
    row.refresh_from_db()
    assert row.status == Status.PENDING


def test_it_starts_with_an_allowed_priority(callers: Callers, library: Mapping) -> None:
    row = post_benchmark(callers.owner, library)
    refused = callers.owner.post(f"{BENCHMARKS}/{row.pk}/start", {"priority": "high"})
    assert_refused(refused, 403, "permission_denied", "choose normal or low")
    operation = checked_json(callers.owner.post(f"{BENCHMARKS}/{row.pk}/start", {"priority": "low"}), 200)[
        "operation_uuid"
    ]
    assert callers.owner.get(f"/operations/{operation}").json()["priority"] == "low"


def test_it_cancels_and_resumes(callers: Callers, library: Mapping) -> None:
    row = post_benchmark(callers.owner, library)
    assert_refused(callers.owner.post(f"{BENCHMARKS}/{row.pk}/cancel"), 409, message="only a running benchmark")
    callers.owner.post(f"{BENCHMARKS}/{row.pk}/start")
    answer = callers.owner.post(f"{BENCHMARKS}/{row.pk}/cancel")
    assert checked_json(answer, 200)["status"] == "cancelled"
    assert callers.owner.post(f"{BENCHMARKS}/{row.pk}/start").json()["status"] == "running"


def test_retry_reruns_failed_queries(callers: Callers, library: Mapping) -> None:
    row = post_benchmark(callers.owner, library)
    callers.owner.post(f"{BENCHMARKS}/{row.pk}/start")
    row.refresh_from_db()
    assert row.operation is not None
    wait(row.operation)
    change_rankings(QueryResult.objects.filter(run__benchmark=row, query__key="q000"), error="The index was away.")
    row.runs.update(failed_queries=1)
    answer = callers.owner.post(f"{BENCHMARKS}/{row.pk}/retry")
    assert (answer.status_code, answer.json()["message"]) == (200, "The failed runs are started again.")
    wait(Operation.objects.get(pk=answer.json()["operation_uuid"]))
    assert not QueryResult.objects.exclude(error="").exists()
    assert row.runs.get().status == Run.Status.COMPLETED
