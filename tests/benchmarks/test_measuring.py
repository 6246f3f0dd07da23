"""Any measure is named, stored and added later; and is the same from memory and from stored rankings."""

import re
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse

from apps.execution.launching import cancel, launch, retry
from apps.execution.progress import build_event
from apps.execution.running import execution
from apps.execution.running.stages import Stages
from apps.experiments.manifests import build_manifest
from apps.experiments.reproducing import reproduce
from apps.experiments.verifying import verify
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import perform_batch, wait
from apps.records.finding import nest
from apps.records.measuring import evaluating
from apps.records.measuring.measures import MeasuresError, add_measures
from apps.records.models import BatchValues, Benchmark, Evaluation, QueryResult
from benchbench.ir.planning.stages import FuseStage
from tests.benchmarks.figures import create_with_thresholds, require_as_stored
from tests.commands import output_of
from tests.created import create_benchmark, finish, run_benchmark
from tests.library import make_library
from tests.rankings import delete_rankings


def begin(benchmark: Benchmark) -> Operation:
    """Start a benchmark and do the first of its batches."""
    operation = launch(benchmark)
    assert operation.batches.count() > 1
    assert perform_batch(operation.batches.order_by("ordinal").first().pk, owner="first")
    return operation


@pytest.mark.parametrize("seconds", [0.001, 60], ids=["batches", "one batch"])
@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_nothing_is_measured_twice(library, monkeypatch, settings, execution, seconds):
    settings.BENCHBENCH_BATCH_SECONDS = seconds
    benchmark = create_with_thresholds(library, execution=execution, runs_per_query=2)
    with monkeypatch.context() as patched:
        patched.delattr(evaluating, "load_ranked_documents")
        wait(launch(benchmark))
    require_as_stored(benchmark)


def test_failed_query_gets_its_value_on_retry(library, monkeypatch):
    benchmark = create_with_thresholds(library)
    bad = library.dataset.queries.order_by("key")[4]
    values = Stages.get_values

    def failing(self: Stages, stage: Any, number: int) -> Any:
        if isinstance(stage, FuseStage) and self.queries[number] == bad:
            raise ValueError("No.")
        return values(self, stage, number)

    with monkeypatch.context() as patched:
        patched.setattr(Stages, "get_values", failing)
        wait(launch(benchmark))
    assert set(benchmark.runs.values_list("config__search_mode", "failed_queries")) == {("dense", 0), ("hybrid", 1)}
    require_as_stored(benchmark)
    wait(retry(benchmark))
    require_as_stored(benchmark)
    assert set(benchmark.runs.values_list("failed_queries", flat=True)) == {0}


def test_attempt_failing_during_commit_leaves_no_values(library, monkeypatch):
    benchmark = create_with_thresholds(library)
    keep_values, errors = execution.store_values, [OSError(5, "The disk is away")]

    def fall_over_once(*arguments: Any, **options: Any) -> None:
        keep_values(*arguments, **options)
        if errors:
            raise errors.pop()

    monkeypatch.setattr(execution, "store_values", fall_over_once)
    assert wait(launch(benchmark)).batches.get(ordinal=0).attempts == 2
    require_as_stored(benchmark)


def test_judgments_that_change_in_between_are_those_that_count(library):
    benchmark = create_with_thresholds(library)
    operation = begin(benchmark)
    before = set(BatchValues.objects.values_list("truth_hash", flat=True))
    library.resolutions.filter(judgment__grade=1).update(outcome="not_found", document=None)
    wait(operation)
    assert before
    require_as_stored(benchmark)


@pytest.mark.parametrize("change", ["measures", "nothing kept"])
def test_resumed_benchmark_ignores_values_of_another_setup(library, change):
    """`nothing kept`: the rankings are of a time before their values were kept."""
    benchmark = create_with_thresholds(library)
    begin(benchmark)
    cancel(benchmark)
    if change == "measures":
        add_measures(benchmark, ["Hits@3"])
        benchmark.refresh_from_db()
    else:
        BatchValues.objects.all().delete()
    wait(launch(benchmark))
    require_as_stored(benchmark)
    assert len(Evaluation.objects.filter(run__benchmark=benchmark).first().measures) == len(benchmark.measures)


def test_replaced_rankings_are_measured_afresh(library):
    benchmark = create_with_thresholds(library)
    begin(benchmark)
    cancel(benchmark)
    run = benchmark.runs.first()
    delete_rankings(QueryResult.objects.filter(run=run))  # so that the others are asked these queries again
    for stored in BatchValues.objects.all():
        BatchValues.objects.filter(pk=stored.pk).update(values=np.full(len(stored.values) // 8, 9.0).tobytes())
    wait(launch(benchmark))
    require_as_stored(benchmark)


def test_operation_event_ignores_measures_added_later(library):
    benchmark = create_with_thresholds(library)
    operation = launch(benchmark)
    wait(operation)
    before = build_event(operation)["runs"]
    add_measures(benchmark, ["Hits@3"])
    assert build_event(operation)["runs"] == before
    assert all(one["metrics_flat"]["ndcg@10"] for one in before)


def test_provisional_figures_are_the_values_that_are_kept(library):
    benchmark = create_with_thresholds(library)
    operation = begin(benchmark)
    answers = {one["run_id"]: one for one in build_event(operation)["runs"]}
    for stored in BatchValues.objects.all():
        row = np.frombuffer(stored.values).reshape(len(stored.measures), -1)[stored.measures.index("nDCG@10")]
        one = answers[str(stored.run_id)]
        assert one["completed_queries"] == len(stored.query_ids) > 0
        assert one["metrics_flat"]["ndcg@10"] == pytest.approx(row.mean())
    cancel(benchmark)


LEXICAL: dict[str, Any] = {"search_modes": ["sparse"], "k_values_for_metrics": [3], "primary_k": 3}


def finished(mapping: Mapping, *measures: str) -> Benchmark:
    return run_benchmark(mapping, name="measured", matrix=LEXICAL, measures=measures)


def test_requested_measures_and_their_judged_depths_are_measured(library):
    benchmark = finished(library, "Success@5", "MAP", "RBP(p=.8)", "Bpref")
    usual = ["nDCG@3", "P@3", "R@3", "RR", "AP", "Judged@3", "Judged"]
    declared = [*usual, "Success@5", "RBP(p=0.8,rel=1)", "Bpref", "Judged@5"]
    assert benchmark.measures == declared
    assert set(Evaluation.objects.get().means) == set(declared)


@pytest.mark.parametrize("name", ["nDCG10", "Recal@5", "P", "P@0", "ERR@x", "RBP(q=.8)", "P@5(", "nDCG(dcg=open)@5"])
def test_invalid_measure_is_named_and_nothing_is_created(library, name):
    with pytest.raises(MeasuresError) as caught:
        create_benchmark(library, name="b", matrix=LEXICAL, measures=["Success@5", name])
    assert caught.value.field == "measures"
    assert name.partition("(")[0].partition("@")[0] in caught.value.message
    assert not Benchmark.objects.exists()


def test_valueless_query_affects_neither_provisional_nor_final_means(transactional_db):
    library = make_library(documents=12, queries=16)
    query = library.dataset_version.queries.order_by("pk").first()
    query.text = "nothing of that kind"
    query.save()
    operation = launch(create_benchmark(library, name="b", matrix=LEXICAL, measures=["FirstRelevant"]))
    *limit, _ = operation.batches.order_by("ordinal")
    for batch in limit:
        perform_batch(batch.pk, owner="test")
    so_far = build_event(operation)["runs"][0]
    assert so_far["n"] > 1, "the query without a value among them"
    assert so_far["metrics_flat"]["FirstRelevant"] >= 1.0
    wait(operation)
    evaluation = Evaluation.objects.get()
    ranks = evaluation.values[evaluation.measures.index("FirstRelevant")]
    assert ranks[evaluation.query_ids.index(query.pk)] is None
    recognised = [rank for rank in ranks if rank is not None]
    assert (len(recognised), evaluation.query_count) == (15, 16)
    assert evaluation.means["FirstRelevant"] == pytest.approx(sum(recognised) / 15)


def test_measures_are_added_to_a_finished_benchmark_without_searching(library):
    benchmark = finished(library)
    before = Evaluation.objects.get()
    searched = list(benchmark.runs.get().query_results.values_list("pk", flat=True))
    assert add_measures(benchmark, ["Hits@5", "nDCG@3"]).names == ["Hits@5", "Judged@5"]
    after = Evaluation.objects.get()
    assert after.means["Hits@5"] is not None
    assert {name: after.means[name] for name in before.means} == before.means
    assert list(benchmark.runs.get().query_results.values_list("pk", flat=True)) == searched
    with pytest.raises(MeasuresError, match="already"):
        add_measures(benchmark, ["Hits@5"])
    with pytest.raises(MeasuresError, match="Hit"):
        add_measures(benchmark, ["Hit@5"])


def test_a_manifest_brings_them_along_in_the_same_order(library):
    benchmark = finished(library, "Success@5")
    add_measures(benchmark, ["RBP(p=0.8)"])
    benchmark.refresh_from_db()
    again = reproduce(build_manifest(benchmark))
    assert again.measures == benchmark.measures
    finish(again)
    assert verify(again).reproduces


def test_the_commands_and_the_page_take_them(library, admin_client):
    left_out = ("--unresolved", "drop", "--empty-queries", "skip")
    method = ("--name", "b", "--modes", "sparse", "--measures", "Hits@5", *left_out)
    call_command("run_benchmark", "library", *method, wait=True, verbosity=0)
    benchmark = Benchmark.objects.get()
    assert (benchmark.unresolved, benchmark.empty_queries) == ("drop", "skip")
    assert "Hits@5" in benchmark.measures
    _, _, head, row, *_ = output_of("rescore", "b", measures=["RBP(p=0.8,rel=1)", "Success@1"]).splitlines()
    assert head.split()[3:-2] == ["nDCG@10", "P@10", "R@10", "RR", "RBP(p=0.8,rel=1)", "Success@1"]
    assert re.search(r"(  [01]\.\d{4} *){6}  \d+\.\d$", row)
    page = reverse("admin:benchmark_measures", args=[benchmark.pk])
    assert "FirstRelevnt" in admin_client.post(page, {"measures": "FirstRelevnt"}).content.decode()
    assert admin_client.post(page, {"measures": "FirstRelevant, Bpref"}).status_code == 302
    benchmark.refresh_from_db()
    assert benchmark.measures[-4:] == ["Success@1", "Judged@1", "FirstRelevant", "Bpref"]


def test_on_the_wire_only_the_usual_families_are_grouped():
    flat = {"ndcg@5": 0.5, "mrr": 1.0, "Judged@5": 0.2, "Judged": 0.1, "map@5": 0.3}
    assert nest(flat) == {"ndcg": {"5": 0.5}, "mrr": 1.0, "Judged@5": 0.2, "Judged": 0.1, "map@5": 0.3}
