"""Any measure, beside those of the cutoffs: named, stored, and added later."""

import io
import re
from typing import Any

import ir_measures
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from apps.benchmarks.launching import launch
from apps.benchmarks.measuring.measures import MeasuresError, add_measures
from apps.benchmarks.models import Benchmark, Evaluation
from apps.benchmarks.progress import benchmark_event
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from
from apps.benchmarks.repeating.verifying import verify
from apps.benchmarks.runs import nested
from apps.mappings.models import Mapping
from apps.mappings.truth import truth
from apps.operations.working import perform_batch, wait
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark

LEXICAL: dict[str, Any] = {"search_modes": ["sparse"], "k_values_for_metrics": [3], "primary_k": 3}


def finished(mapping: Mapping, *measures: str) -> Benchmark:
    benchmark = create_benchmark(mapping, name="measured", matrix=LEXICAL, measures=measures)
    wait(launch(benchmark))
    benchmark.refresh_from_db()
    return benchmark


def test_it_measures_what_was_asked_for_and_how_far_that_is_judged(library: Mapping) -> None:
    benchmark = finished(library, "Success@5", "MAP", "RBP(p=.8)", "Bpref")
    assert benchmark.measures == [
        *("nDCG@3", "P@3", "R@3", "RR", "AP", "Judged@3", "Judged"),
        *("Success@5", "RBP(rel=1)", "Bpref", "Judged@5"),
    ]
    evaluation = Evaluation.objects.get()
    judgments = [
        ir_measures.Qrel(str(query), str(document), grade)
        for query, grades in truth(benchmark.mapping, benchmark.dataset_version).grades.items()
        for document, grade in grades.items()
    ]
    ranked = [
        ir_measures.ScoredDoc(str(result.query_id), str(document), -float(rank))
        for result in benchmark.runs.get().query_results.all()
        for rank, document in enumerate(result.document_ids)
    ]
    expected = ir_measures.calc_aggregate(
        [ir_measures.RBP(rel=1), ir_measures.Bpref, ir_measures.Success @ 5], judgments, ranked
    )
    for measure, value in expected.items():
        assert evaluation.means[str(measure)] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", ["nDCG10", "Recal@5", "P", "ERR@x", "RBP(q=.8)", "P@5(", "nDCG(dcg=open)@5"])
def test_it_names_the_measure_that_cannot_be_and_creates_nothing(library: Mapping, name: str) -> None:
    with pytest.raises(MeasuresError) as caught:
        create_benchmark(library, name="b", matrix=LEXICAL, measures=["Success@5", name])
    assert caught.value.field == "measures"
    assert name.partition("(")[0].partition("@")[0] in caught.value.message
    assert not Benchmark.objects.exists()


def test_a_query_without_a_value_spoils_neither_provisional_nor_final_means(transactional_db: None) -> None:
    library = make_library(documents=12, queries=16)
    query = library.dataset_version.queries.order_by("pk").first()  # type: ignore[union-attr]
    assert query is not None
    query.text = "nothing of that kind"
    query.save()
    benchmark = create_benchmark(library, name="b", matrix=LEXICAL, measures=["FirstRelevant"])
    operation = launch(benchmark)
    *most, _ = operation.batches.order_by("ordinal")
    for batch in most:
        perform_batch(batch.pk, owner="test")
    so_far = benchmark_event(operation)["runs"][0]
    assert so_far["n"] > 1, "the query without a value among them"
    assert so_far["metrics_flat"]["FirstRelevant"] >= 1.0
    wait(operation)
    evaluation = Evaluation.objects.get()
    ranks = evaluation.values[evaluation.measures.index("FirstRelevant")]
    assert ranks[evaluation.query_ids.index(query.pk)] is None
    known = [rank for rank in ranks if rank is not None]
    assert (len(known), evaluation.query_count) == (15, 16)
    assert evaluation.means["FirstRelevant"] == pytest.approx(sum(known) / 15)


def test_measures_are_added_to_a_finished_benchmark_without_searching(library: Mapping) -> None:
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


def test_a_manifest_brings_them_along_in_the_same_order(library: Mapping) -> None:
    benchmark = finished(library, "Success@5")
    add_measures(benchmark, ["RBP(p=0.8)"])
    benchmark.refresh_from_db()
    again = benchmark_from(manifest_of(benchmark))
    assert again.measures == benchmark.measures
    wait(launch(again))
    again.refresh_from_db()
    assert verify(again).reproduces


def test_the_commands_and_the_page_take_them(library: Mapping, admin_client: Client) -> None:
    left_out = ("--unresolved", "drop", "--empty-queries", "skip")
    how = ("--name", "b", "--modes", "sparse", "--measures", "Hits@5", *left_out)
    call_command("run_benchmark", "library", *how, wait=True, verbosity=0)
    benchmark = Benchmark.objects.get()
    assert (benchmark.unresolved, benchmark.empty_queries) == ("drop", "skip")
    assert "Hits@5" in benchmark.measures
    out = io.StringIO()
    call_command("rescore", "b", measures=["RBP(p=0.8,rel=1)", "Success@1"], stdout=out)
    _, head, row = out.getvalue().splitlines()
    assert head.split() == ["nDCG@10", "RBP(rel=1)", "Success@1"]
    assert re.search(r"(  [01]\.\d{4} *){3}$", row)
    page = reverse("admin:benchmark_measures", args=[benchmark.pk])
    assert "FirstRelevnt" in admin_client.post(page, {"measures": "FirstRelevnt"}).content.decode()
    assert admin_client.post(page, {"measures": "FirstRelevant, Bpref"}).status_code == 302
    benchmark.refresh_from_db()
    assert benchmark.measures[-4:] == ["Success@1", "Judged@1", "FirstRelevant", "Bpref"]


def test_the_page_is_for_those_who_may_change_it(library: Mapping, client: Client, django_user_model: Any) -> None:
    benchmark = create_benchmark(library, name="b", matrix=LEXICAL)
    client.force_login(django_user_model.objects.create_user("guest", is_staff=True))
    assert client.get(reverse("admin:benchmark_measures", args=[benchmark.pk])).status_code in (403, 404)


def test_on_the_wire_only_the_usual_families_are_grouped() -> None:
    flat = {"ndcg@5": 0.5, "mrr": 1.0, "Judged@5": 0.2, "Judged": 0.1, "map@5": 0.3}
    assert nested(flat) == {"ndcg": {"5": 0.5}, "mrr": 1.0, "Judged@5": 0.2, "Judged": 0.1, "map@5": 0.3}
