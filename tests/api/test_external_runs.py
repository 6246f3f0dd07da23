"""Runs made elsewhere, uploaded: measured as any other, and refused with the line that is wrong."""

import gzip
import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from apps.datasets.models import Dataset
from apps.records.models import Benchmark, Run
from tests.api.callers import Callers, assert_refused, checked_json
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

RUN = "q1 Q0 d1 1 3.0 mine\nq1 Q0 d9 2 2.0 mine\nq2 Q0 d9 1 2.0 mine\nq2 Q0 d2 2 1.0 mine\nother Q0 d1 1 1.0 mine\n"
FLOWBABY = {"run_id": "theirs", "entries": [{"query_id": "q1", "canonical_item_id": "d1", "rank": 1, "score": 1.0}]}


@pytest.fixture
def dataset(callers: Callers) -> Dataset:
    judged = {"q1": [({"document_id": "d1"}, 1)], "q2": [({"document_id": "d2"}, 1)], "q3": []}
    return make_dataset(judged, owner=callers.owner.user)


def path(dataset: Dataset) -> str:
    return f"/benchmark-datasets/{dataset.pk}/external-runs"


def upload(callers: Callers, dataset: Dataset, content: Any = RUN, file_name: str = "mine.run", **fields: Any) -> Any:
    return callers.owner.upload(path(dataset), content, file_name=file_name, **fields)


def test_it_measures_rankings_in_a_new_benchmark(callers: Callers, dataset: Dataset) -> None:
    facts = checked_json(
        upload(callers, dataset, name="From outside", k=[3, 5], measures=["ndcg", "map@3", "ERR@20"]), 201
    )
    run = Run.objects.get()
    benchmark = run.benchmark
    assert facts["benchmark"] == {"id": str(benchmark.pk), "name": "From outside"}
    assert (benchmark.owner, benchmark.is_external, benchmark.k_values) == (callers.owner.user, True, [3, 5, 10])
    metrics = facts["run"].pop("metrics_flat")
    assert facts["run"] == {"id": str(run.pk), "run_order": 1, "label": "mine"}
    assert metrics["mrr"] == pytest.approx((1 + 0.5) / 3)
    assert {"ndcg@3", "ndcg@5", "map@3", "ndcg@10", "ERR@20"} <= set(metrics)
    notes = facts["report"].pop("notes")
    assert facts["report"] == {
        **{"file": "mine.run", "format": "trec", "tags": ["mine"], "queries": 3, "answered": 2, "results": 4},
        **{"documents": 3, "missing": 0, "unjudged": 1, "unknown": 1, "first_unknown": ["other"], "tied": 0},
        **{"unjudged_documents": 1, "first_unjudged": ["d9"]},
    }
    assert notes[:2] == [
        "Queries of mine.run that the dataset does not have, left out: 1 of 3 (other).",
        "Documents of mine.run that no judgment of the dataset names, counted as not relevant: 1 of 3 (d9).",
    ]


def test_it_adds_to_a_benchmark(callers: Callers, dataset: Dataset) -> None:
    first = upload(callers, dataset).json()
    assert_refused(upload(callers, dataset, benchmark_id=first["benchmark"]["id"]), 409, "run_imported")
    second = upload(callers, dataset, FLOWBABY, "run.json", benchmark_id=first["benchmark"]["id"], order_by="score")
    assert second.status_code == 201, second.content
    assert (second.json()["run"]["run_order"], second.json()["report"]["format"]) == (2, "flowbaby")
    packed = upload(callers, dataset, gzip.compress(RUN.replace("3.0", "1.5").encode()), "mine.run.gz")
    assert packed.json()["benchmark"]["id"] != first["benchmark"]["id"]


@pytest.mark.parametrize(
    ("content", "fields", "field", "message"),
    [
        ("q1 Q0 d1 1 3.0 mine\nq1 Q0 d9 2 high mine\n", {}, "", "mine.run, line 2"),
        (json.dumps({"runs": []}), {}, "format", "mine.run"),
        (RUN, {"version": "7"}, "version", "has no version 7"),
    ],
)
def test_invalid_run_file_is_rejected_with_a_location(
    callers: Callers, dataset: Dataset, content: str, fields: dict[str, Any], field: str, message: str
) -> None:
    assert_refused(upload(callers, dataset, content, **fields), 400, message=message, field=field)
    assert not Run.objects.exists()


def test_it_refuses_a_file_that_is_too_large(callers: Callers, dataset: Dataset, settings: Any) -> None:
    settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES = 1000
    for size in (1001, 3_000_000):  # found when it is read, and from Content-Length before
        assert_refused(upload(callers, dataset, b" " * size), 413, "too_large", "manage.py import_run")
    packed = upload(callers, dataset, gzip.compress(RUN.encode() * 100), "mine.run.gz")
    assert_refused(packed, 400, "invalid_file", "unpacks to more than the allowed 1,000 bytes")


def test_an_error_names_the_keys_that_a_request_has(callers: Callers, dataset: Dataset) -> None:
    entries = [("d1", 1, 0.1), ("d2", 2, 0.9)]
    keys = ("canonical_item_id", "rank", "score")
    run = {"run_id": "r", "entries": [{"query_id": "q1"} | dict(zip(keys, entry, strict=True)) for entry in entries]}
    unclear = upload(callers, dataset, json.dumps(run), "run.json").json()
    assert "Order it by rank or by score." in unclear["errors"]["order_by"][0], unclear
    answer = upload(callers, dataset).json()
    mapping = Benchmark.objects.get(pk=answer["benchmark"]["id"]).mapping
    requests = {"name": "n", "mapping_id": str(mapping.pk), "config_matrix": {}}
    assert set(callers.owner.post("/benchmarks", requests).json()["errors"]) == {"mapping_id"}
    second = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="another")
    collection = {"collection_id": str(mapping.collection_id)}
    refused = callers.owner.post(f"/benchmark-datasets/{second.pk}/mappings", collection)
    assert_refused(refused, 409, field="collection_id")


def test_unsuitable_targets_reject_the_run(callers: Callers, dataset: Dataset) -> None:
    draft = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="draft")
    draft.versions.update(frozen_at=None)
    assert_refused(upload(callers, draft), 409, "conflict", "freeze its draft", field="")
    searched = make_benchmark(make_mapping(dataset, make_collection()), [0.5], owner=callers.owner.user)
    assert_refused(upload(callers, dataset, benchmark_id=searched.pk), 409, field="benchmark_id")
    first = upload(callers, dataset).json()
    answer = upload(callers, dataset, FLOWBABY, "run.json", benchmark_id=first["benchmark"]["id"], k=[5])
    assert_refused(answer, 400, field="benchmark_id")
    second = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="others")
    assert upload(callers, second, benchmark_id=first["benchmark"]["id"]).status_code == 404
    assert Run.objects.count() == 2


def test_adding_needs_the_right_to_change_benchmarks(callers: Callers, dataset: Dataset) -> None:
    first = Benchmark.objects.get(pk=upload(callers, dataset).json()["benchmark"]["id"])
    callers.owner.user.user_permissions.remove(Permission.objects.get(codename="change_benchmark"))
    added = upload(callers, dataset, FLOWBABY, "run.json", benchmark_id=first.pk)
    assert added.status_code == 403
