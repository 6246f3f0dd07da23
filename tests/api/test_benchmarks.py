"""Benchmarks over HTTP: planned, made, listed, deleted."""

from typing import Any

import pytest
from django.contrib.auth.models import Group

from apps.collections.models import Collection
from apps.mappings.models import Mapping
from apps.operations.models import Status
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from benchbench.ir.planning.matrix import KEYS
from tests.api.bodies import BENCHMARKS, HALF, benchmark_body, post_benchmark
from tests.api.callers import Caller, Callers, assert_refused, checked_json
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

CLASSIC = {
    "search_modes": ["dense", "hybrid"],
    "use_reranker": [False],
    "top_k_values": [20, 50],
    "rrf_k_values": [60],
    "score_thresholds": [None, 0.5],
    "primary_k": 10,
    "k_values_for_metrics": [5, 10],
}


def planned(body: dict[str, Any]) -> dict[str, Any]:
    """Return what of a new benchmark a preview is asked."""
    return {key: value for key, value in body.items() if key != "name"}


def store_benchmark(caller: Caller, **fields: Any) -> Benchmark:
    """Return a benchmark in the tables alone, with a run that completed and one that failed."""
    number = Collection.objects.count()
    dataset = make_dataset({"q": []}, name=f"questions {number}")
    mapping = make_mapping(dataset, make_collection(f"library {number}"), name=f"mapping {number}")
    return make_benchmark(mapping, [0.5, None], owner=caller.user, **fields)


def test_post_creates_a_benchmark_and_returns_its_fields(callers: Callers, library: Mapping) -> None:
    body = benchmark_body(
        library,
        CLASSIC,
        description="Two.",
        tags=["nightly", "nightly"],
        top_k=10,
        metrics_to_compute=["precision", "mrr", "map@10"],
    )
    facts = checked_json(callers.owner.post(BENCHMARKS, body), 201)
    row = Benchmark.objects.get()
    assert facts == {
        "created_at": facts["created_at"],
        "id": str(row.pk),
        "name": "which",
        "description": "Two.",
        "tags": ["nightly"],
        "owner_id": callers.owner.user.pk,
        "mapping_id": str(library.pk),
        "status": "pending",
        "total_runs": 8,
        "completed_runs": 0,
        "failed_runs": 0,
        "weighting": "equal",
        "exclude_self": False,
        "identical_texts": "different",
        "started_at": None,
        "completed_at": None,
        "operation_uuid": None,
    }
    assert (row.matrix["top_k_values"], row.k_values) == ([20, 50], [5, 10])
    usual = ["nDCG@5", "nDCG@10", "P@5", "P@10", "R@5", "R@10", "RR", "AP"]
    assert row.measures == [*usual, "Judged@5", "Judged@10", "Judged", "AP@10"]
    assert callers.owner.get(f"{BENCHMARKS}/{row.pk}").json() == facts
    assert callers.owner.get(BENCHMARKS).json() == {"benchmarks": [facts], "total": 1, "page": 1, "per_page": 50}


def test_it_takes_every_option(callers: Callers, library: Mapping) -> None:
    options = {"execution": "isolated", "runs_per_query": 3, "seed": 7, "unresolved": "drop", "empty_queries": "skip"}
    row = post_benchmark(callers.owner, library, description=None, **options)
    assert {name: getattr(row, name) for name in options} == options


@pytest.mark.parametrize(
    ("matrix", "top_k", "depths", "cutoffs"),
    [
        ({}, None, [100], [5, 10, 20]),
        ({}, 10, [10], [5, 10]),
        ({"top_k_values": [10, 50]}, 100, [10, 50], [5, 10]),
        ({"top_k_values": [3], "primary_k": 3}, None, [3], [3]),
        ({"k_values_for_metrics": [10]}, 10, [10], [10]),
    ],
)
def test_depth_and_cutoffs_are_those_of_the_earlier_api(
    callers: Callers, library: Mapping, matrix: dict[str, Any], top_k: int | None, depths: list[int], cutoffs: list[int]
) -> None:
    declared = {} if top_k is None else {"top_k": top_k}
    row = post_benchmark(callers.owner, library, matrix, **declared)
    assert (row.matrix["top_k_values"], row.k_values) == (depths, cutoffs)


def test_unavailable_models_are_rejected_before_anything_is_created(callers: Callers, library: Mapping) -> None:
    body = benchmark_body(library, HALF | {"use_reranker": [True], "rerankers": ["no/such-reranker"]})
    for path, sent in ((BENCHMARKS, body), (f"{BENCHMARKS}/preview", planned(body))):
        assert_refused(callers.owner.post(path, sent), 409, "not_here", "'no/such-reranker' is not on this machine")
    assert not Benchmark.objects.exists()


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (
        {"config_matrix": HALF | {"use_reranker": [True], "rerankers": ["/srv/m/x"]}},
        "rerankers",
        "Only commands accept a folder",
    ),
    (
        {"config_matrix": HALF | {"use_reranker": [True], "rerankers": [None, "~/x"]}},
        "rerankers",
        "Only commands accept a folder",
    ),
    ({"config_matrix": {"k_values_for_metrics": [10, 20], "top_k_values": [5]}}, "top_k_values", "5 is less than"),
    ({"config_matrix": {"top_k_values": [5]}}, "top_k_values", "10 (primary_k is always one of them)"),
    ({"config_matrix": {"search_mode": ["dense"]}}, "search_mode", "did you mean search_modes?"),
    ({"config_matrix": {"search_modes": []}}, "search_modes", "the list is empty"),
    ({"config_matrix": {"search_modes": ["lexical"]}}, "search_modes", "is not one of"),
    ({"config_matrix": {"top_k_values": "10"}}, "top_k_values", "must be a list"),
    ({"config_matrix": {"top_k_values": [10**30]}}, "top_k_values", "whole number from 1 to 1000"),
    ({"config_matrix": {"primary_k": None}}, "primary_k", "null is not"),
    ({"config_matrix": {"score_thresholds": [1.5]}}, "score_thresholds", "from 0 to 1"),
    ({"config_matrix": {"ann": [{"method": []}]}}, "ann", "ann: "),
    ({"config_matrix": {"ann": [{}]}}, "ann", "ann: "),
    ({"config_matrix": {"indexes": ["gone"]}}, "indexes", "choose one of keywords"),
    ({"config_matrix": {"rrf_k_values": list(range(1, 32)), "search_modes": ["hybrid"]}}, "rrf_k_values", "30"),
    ({"metrics_to_compute": ["nDCG(@"]}, "metrics_to_compute", "metrics_to_compute"),
    ({"metrics_to_compute": ["ndcg@" + "9" * 30]}, "metrics_to_compute", "a whole number from 1 to 1,000,000"),
    ({"metrics_to_compute": [f"ndcg@{k}" for k in range(1, 60)]}, "metrics_to_compute", "at most 60"),
]


def assert_named(answer: Any, change: dict[str, Any], field: str, message: str) -> None:
    """Errors carry the whole path of a key: one of a matrix that of the matrix too."""
    within = isinstance(change.get("config_matrix"), dict)
    assert_refused(answer, 400)
    error = answer.json()
    assert message in " ".join([error["detail"], *error["errors"]])
    assert [name.partition("[")[0] for name in error["errors"]] == ["config_matrix." * within + field]
    assert not Benchmark.objects.exists()


def test_invalid_fields_are_named(callers: Callers, library: Mapping) -> None:
    assert_refused(
        callers.owner.post(BENCHMARKS, benchmark_body(library, name="a\r\nb")), 400, message="printable", field="name"
    )
    for change, field, message in WRONG:
        assert_named(callers.owner.post(BENCHMARKS, benchmark_body(library) | change), change, field, message)
        assert_named(
            callers.owner.post(f"{BENCHMARKS}/preview", planned(benchmark_body(library) | change)),
            change,
            field,
            message,
        )


@pytest.mark.thorough
def test_any_json_in_an_axis_is_handled(callers: Callers, library: Mapping) -> None:
    odd = [True, 10**30, 1e308, "", "x" * 5000, [], {"": ""}, [0.1, 1e-320]]
    for key in KEYS:
        for value in [None, 7, {}, *([one] for one in odd)]:
            answer = callers.owner.post(f"{BENCHMARKS}/preview", planned(benchmark_body(library, {key: value})))
            assert answer.status_code in (200, 400), (key, value, answer.content)


def test_a_matrix_has_so_many_runs(callers: Callers, library: Mapping, settings: Any) -> None:
    settings.BENCHMARK_MAX_RUNS = 3
    body = benchmark_body(library, CLASSIC)
    for path, declared in ((BENCHMARKS, body), (f"{BENCHMARKS}/preview", planned(body))):
        answer = callers.owner.post(path, declared)
        assert_refused(answer, 400, "invalid_matrix", "at most 3 are allowed", field="config_matrix")


def test_a_mapping_is_ones_own_and_resolved(callers: Callers, library: Mapping) -> None:
    unknown = benchmark_body(library, mapping_id="00000000-0000-4000-8000-000000000000")
    assert callers.owner.post(BENCHMARKS, unknown).status_code == 404
    Mapping.objects.update(dataset_version=None, status=Mapping.Status.PENDING)
    assert_refused(callers.owner.post(BENCHMARKS, benchmark_body(library)), 409, "conflict", "resolve it first")
    Mapping.objects.update(owner=callers.other.user)
    for path, declared in (
        (BENCHMARKS, benchmark_body(library)),
        (f"{BENCHMARKS}/preview", planned(benchmark_body(library))),
    ):
        assert callers.owner.post(path, declared).status_code == 403


def test_preview_shows_the_effect_of_a_matrix(callers: Callers, library: Mapping) -> None:
    facts = checked_json(callers.owner.post(f"{BENCHMARKS}/preview", planned(benchmark_body(library, CLASSIC))), 200)
    assert (facts["total_runs"], len(facts["labels"]), facts["queries"]) == (8, 8, 2)
    assert facts["labels"][0] == "dense · top 20"
    assert facts["indexes"] == ["keywords"]
    assert all(isinstance(count, int) for count in facts["distinct"].values())
    assert (facts["warnings"], facts["builds"]) == ([], [])
    assert not Benchmark.objects.exists()


def test_matrix_without_modes_uses_all_modes_of_the_index(callers: Callers, library: Mapping) -> None:
    def runs() -> list[str]:
        row = post_benchmark(callers.owner, library, {})
        labels = callers.owner.post(f"{BENCHMARKS}/preview", planned(benchmark_body(library, {}))).json()["labels"]
        assert labels == [run.label for run in row.runs.all()]
        return [run.config["search_mode"] for run in row.runs.all()]

    assert runs() == ["dense", "sparse", "hybrid"]
    Index.objects.update(encoder="")  # no vectors
    assert runs() == ["sparse"]


def test_it_lists_pages_of_a_status(callers: Callers) -> None:
    for status in (Status.COMPLETED, Status.COMPLETED, Status.PENDING):
        store_benchmark(callers.owner, status=status, name=status)
    store_benchmark(callers.other, status=Status.COMPLETED)

    def page(**query: Any) -> Any:
        return callers.owner.get(BENCHMARKS, **query).json()

    assert [row["name"] for row in page()["benchmarks"]] == ["pending", "completed", "completed"]
    assert (page(status_filter="completed")["total"], page(status_filter="failed")["total"]) == (2, 0)
    assert len(page(status_filter="completed", page=2, per_page=1)["benchmarks"]) == 1
    one = page()["benchmarks"][0]
    assert (one["total_runs"], one["completed_runs"], one["failed_runs"]) == (2, 1, 1)
    assert callers.overseer.get(BENCHMARKS).json()["total"] == 4
    assert_refused(callers.owner.get(BENCHMARKS, status_filter="done"), 400, field="status_filter")


def test_a_baseline_keeps_its_benchmark(callers: Callers) -> None:
    row = store_benchmark(callers.owner)
    run = row.runs.get(run_order=1)
    run.baselines.create(dataset=row.dataset_version.dataset, name="main", reason="Because.")
    assert_refused(callers.owner.delete(f"{BENCHMARKS}/{row.pk}"), 409, "conflict", "baseline")


def test_team_members_have_the_rights_of_the_owner(callers: Callers, library: Mapping) -> None:
    row = post_benchmark(callers.owner, library)
    team = Group.objects.create(name="search")
    team.user_set.add(callers.other.user)
    Benchmark.objects.update(team=team)
    assert callers.other.get(f"{BENCHMARKS}/{row.pk}").status_code == 200
    assert callers.other.post(f"{BENCHMARKS}/{row.pk}/start").status_code == 200
