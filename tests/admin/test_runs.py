"""Runs in the browser, imported, pinned as baselines and judged by a gate."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from apps.collections.models import Collection
from apps.datasets.models import Dataset, Query
from apps.records.models import Baseline, Benchmark, GateOutcome, Run
from apps.verdicts.gates.baselines import approve
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.rules import read_rules
from benchbench.site.panels import build_list_url, change_url
from tests.benchmarks.gated import ANSWERABLE, GOOD, POOR, make_gated, search
from tests.factories import make_benchmark as make_searched
from tests.factories import make_collection, make_dataset, make_mapping
from tests.pages import one_line
from tests.site import messages_of, press, results_url, text_of
from tests.staff import MakeStaff

pytestmark = pytest.mark.django_db

RUN = b"q1 Q0 a 1 0.5 mine\nq1 Q0 <b> 2 0.5 mine\nq9 Q0 a 1 1 mine\n"
PAGE, PREVIEW = "admin:run_import", "admin:run_import_preview"


@pytest.fixture
def dataset() -> Dataset:
    return make_dataset({"q1": [({"document_id": "a"}, 1)], "q2": [({"document_id": "b"}, 1)]})


def post(client: Client, page: str, dataset: Dataset, content: bytes = RUN, **fields: Any) -> Any:
    values = {"dataset": dataset.pk, "file": SimpleUploadedFile("mine.run", content), **fields}
    return client.post(reverse(page), values, follow=True)


def test_a_preview_counts_and_keeps_nothing(client_of_ada: Client, dataset: Dataset) -> None:
    page = one_line(post(client_of_ada, PREVIEW, dataset).content.decode())
    assert "1 of 2 queries</strong> of questions v1" in page
    assert "2 results, of 2 distinct documents; read as TREC run, tagged “mine”" in page
    assert "mine.run lacks, counted as 0: 1." in page
    assert ">Import</button>" in page
    assert not Collection.objects.exists()


def test_unknown_ids_are_counted_in_preview_and_import(client_of_ada: Client, dataset: Dataset) -> None:
    run = b"q1 Q0 a 1 2 mine\nq1 Q0 x 2 1 mine\nq2 Q0 y 1 1 mine\nother Q0 a 1 1 mine\n"
    answers = (
        "Queries of mine.run that the dataset does not have, left out: 1 of 3 (other).",
        "Documents of mine.run that no judgment of the dataset names, counted as not relevant: 2 of 3 (x, y).",
    )
    for page in (PREVIEW, PAGE):
        text = post(client_of_ada, page, dataset, run).content.decode()
        assert [sentence for sentence in answers if sentence not in text] == []
    alien = post(client_of_ada, PREVIEW, dataset, b"q1 Q0 <x> 1 2 mine\n").content.decode()
    assert "No judgment of the dataset names a document of mine.run (1: &lt;x&gt;)" in alien


def test_documents_that_are_judged_by_another_key_are_known(client_of_ada: Client) -> None:
    judged = make_dataset({"q1": [({"uri": "file:///a.md"}, 1), ({"file_name": "b.md"}, 0), ({"odd": 1}, 1)]})
    page = post(client_of_ada, PREVIEW, judged, b"q1 Q0 file:///a.md 1 2 m\nq1 Q0 b.md 2 1 m\n").content.decode()
    assert "no judgment" not in page


def test_invalid_run_preview_shows_errors_and_no_import_button(client_of_ada: Client, dataset: Dataset) -> None:
    page = post(client_of_ada, PREVIEW, dataset, b"q1 Q0 a 1 1 t\nq1 Q0 a 2 1 t\n").content.decode()
    assert "mine.run, line 2, ranks the document" in page
    assert ">Import</button>" not in page
    assert "leave out the order" in post(client_of_ada, PREVIEW, dataset, order_by="rank").content.decode()
    assert "Choose a dataset" in client_of_ada.post(reverse(PREVIEW), {"dataset": dataset.pk}).content.decode()


def test_imported_runs_can_be_added_to_an_existing_benchmark(
    client_of_ada: Client, ada: User, dataset: Dataset
) -> None:
    page = post(client_of_ada, PAGE, dataset, name="Elsewhere", k="1, 10", measures="ERR@10").content.decode()
    benchmark = Benchmark.objects.get()
    assert (benchmark.name, benchmark.owner, benchmark.k_values) == ("Elsewhere", ada, [1, 10])
    assert "Imported mine.run (TREC run): 2 results" in page
    assert "equal scores, ordered by id" in page
    assert f"benchmark={benchmark.pk}" in page
    assert "only ids: the runs are external" in page
    again = post(client_of_ada, PAGE, dataset, benchmark=benchmark.pk)
    assert "has the same rankings as run 1, " in again.content.decode()
    assert ": nothing was imported" in again.content.decode()
    post(client_of_ada, PAGE, dataset, b"q1 Q0 a 1 1 other\n", benchmark=benchmark.pk)
    assert [run.label for run in benchmark.runs.all()] == ["mine", "other"]


def test_queries_without_a_relevant_judgment_may_be_left_out(client_of_ada: Client, dataset: Dataset) -> None:
    post(client_of_ada, PAGE, dataset, empty_queries="skip")
    assert Benchmark.objects.get().empty_queries == "skip"


def test_benchmarks_of_other_owners_accept_no_runs(client_of_ada: Client, admin_user: User, dataset: Dataset) -> None:
    post(client_of_ada, PAGE, dataset)
    Benchmark.objects.update(owner=admin_user)
    response = post(client_of_ada, PAGE, dataset, b"q1 Q0 a 1 1 other\n", benchmark=Benchmark.objects.get().pk)
    assert "benchmark" in response.context["form"].errors
    assert Run.objects.count() == 1


def test_dataset_and_benchmark_pages_link_to_the_import(client_of_ada: Client, dataset: Dataset) -> None:
    assert f"{reverse(PAGE)}?dataset={dataset.pk}" in client_of_ada.get(change_url(dataset)).content.decode()
    assert "Import a run" in client_of_ada.get(build_list_url(Benchmark)).content.decode()
    page = client_of_ada.get(reverse(PAGE), {"dataset": dataset.pk}).content.decode()
    assert "questions v1" in page


def test_every_page_handles_runs_without_stages_or_times(client_of_ada: Client, dataset: Dataset) -> None:
    post(client_of_ada, PAGE, dataset)
    run = Run.objects.get()
    personal = make_searched(make_mapping(dataset, make_collection()), [0.5]).runs.get()
    page = client_of_ada.get(change_url(run)).content.decode()
    assert "mine.run, tagged “mine”" in page
    assert "Unknown: the file contains no times." in page
    assert "The stages of this run are unknown" in page
    assert "0.00" not in client_of_ada.get(reverse("admin:benchmark_live", args=[run.benchmark_id])).content.decode()
    for result in run.query_results.all():
        page = client_of_ada.get(change_url(result)).content.decode()
        assert "<dt>Time</dt>" not in page
    for name in ("run_coverage", "run_sections", "run_content"):
        assert client_of_ada.get(reverse(f"admin:{name}", args=[run.pk])).status_code == 200
    compared = client_of_ada.get(reverse("admin:run_compare"), {"run": [run.pk, personal.pk]}).content.decode()
    assert "The software is not recorded for external runs: mine" in compared
    assert "They searched different documents" not in compared


ADD = "/admin/benchmarks/baseline/add/"


@pytest.fixture
def nightly(db: None) -> Benchmark:
    return search(make_gated(), GOOD, POOR)


RULES = "{floors: {nDCG@10: 0.5}, against_baseline: {nDCG@10: {may_lose: 0.01}}, coverage: {failed_queries: 0}}"


def gate_url(run: Run) -> str:
    return reverse("admin:run_gate", args=[run.pk])


def test_run_pinned_from_its_page_shows_a_badge(client_of_ada: Client, ada: User, nightly: Benchmark) -> None:
    run = nightly.runs.get(run_order=1)
    assert f"{ADD}?run={run.pk}" in client_of_ada.get(change_url(run)).content.decode()
    assert run.label in text_of(client_of_ada.get(ADD, {"run": run.pk}))
    blank = client_of_ada.post(ADD, {"run": run.pk, "name": "main", "reason": " "})
    assert "reason" in blank.context["form"].errors
    response = client_of_ada.post(ADD, {"run": run.pk, "name": "main", "reason": "The release of May."}, follow=True)
    baseline = Baseline.objects.get()
    assert (baseline.run, baseline.approved_by, baseline.dataset) == (run, ada, nightly.dataset_version.dataset)
    assert response.redirect_chain[-1][0] == change_url(run)
    for page in (change_url(run), results_url(nightly)):
        assert "baseline main" in text_of(client_of_ada.get(page)), page
    assert "The release of May." in text_of(client_of_ada.get(change_url(baseline.dataset)))


def test_retired_baseline_can_be_deleted(client_of_ada: Client, ada: User, nightly: Benchmark) -> None:
    baseline = approve(nightly.runs.get(run_order=1), name="main", reason="Because.", by=ada)
    delete = reverse("admin:benchmarks_baseline_delete", args=[baseline.pk])
    assert client_of_ada.get(delete).status_code == 403
    assert "is retired" in messages_of(press(client_of_ada, baseline, "retire_selected"))
    baseline.refresh_from_db()
    assert baseline.retired_by == ada
    assert client_of_ada.post(delete, {"post": "yes"}).status_code == 302
    assert not Baseline.objects.exists()


def test_runs_of_other_owners_are_neither_pinned_nor_replaced(
    client_of_ada: Client, make_staff: MakeStaff, nightly: Benchmark
) -> None:
    grace = make_staff("grace")
    hidden = nightly.runs.get(run_order=1)
    baseline = approve(hidden, name="main", reason="Because.", by=grace)
    Benchmark.objects.filter(pk=nightly.pk).update(owner=grace)
    mine = search(nightly.mapping, GOOD, name="mine").runs.get()
    assert "run" in client_of_ada.post(ADD, {"run": hidden.pk, "name": "x", "reason": "y"}).context["form"].errors
    taken = client_of_ada.post(ADD, {"run": mine.pk, "name": "main", "reason": "y"})
    assert "may not see" in str(taken.context["form"].errors)
    assert Baseline.objects.get().retired_at is None
    assert client_of_ada.get(gate_url(hidden)).status_code == 404
    assert "main" not in str(client_of_ada.get(gate_url(mine)).context["form"]["baseline"])
    gate(mine, rules=read_rules(RULES), baseline=baseline, by=grace)
    response = client_of_ada.get(change_url(mine))
    assert [outcome.baseline for outcome in response.context["gates"]] == [None]
    assert hidden.label not in text_of(client_of_ada.get(build_list_url(Baseline)))


def test_a_gate_on_the_page_of_a_run(client_of_ada: Client, ada: User, nightly: Benchmark) -> None:
    good, poor = nightly.runs.order_by("run_order")
    baseline = approve(good, name="main", reason="Because.", by=ada)
    first = client_of_ada.get(gate_url(poor))
    assert first.content.decode().count('class="bb-trail"') == 1
    assert first.context["form"]["may_lose"].value() == 0.01
    requests = {"baseline": baseline.pk, "rules_text": RULES}
    judged = client_of_ada.post(gate_url(poor), requests)
    assert judged.context["headline"] == "Gate failed: 1 failed, of 3 checks"
    assert "nDCG@10 against the baseline" in text_of(judged)
    assert "nDCG@10 against the baseline is −" in text_of(client_of_ada.get(change_url(poor))), "the run keeps it"
    assert GateOutcome.objects.get().by == ada
    compare = f"{reverse('admin:run_compare')}?run={good.pk}&run={poor.pk}"
    for page in (judged, client_of_ada.get(change_url(poor))):
        assert f'href="{escape(compare)}"' in page.content.decode()
    assert "Most lost" in text_of(client_of_ada.get(compare)), "from a red gate to the query in two clicks"
    file = SimpleUploadedFile("gate.yaml", b"floors: {mrr: 0.1}")
    assert "Gate passed" in text_of(client_of_ada.post(gate_url(poor), {**requests, "file": file}))
    wrong = SimpleUploadedFile("gate.yaml", b"floors: {mr: 0.1}")
    assert "file" in client_of_ada.post(gate_url(poor), {**requests, "file": wrong}).context["form"].errors
    assert "Gate failed" in text_of(client_of_ada.post(gate_url(poor), requests | {"may_lose": "0.01"})), "as offered"
    for fields, field in (
        ({"rules_text": "floors: ["}, "rules_text"),
        ({**requests, "baseline": ""}, "baseline"),
        ({**requests, "at_least": "0.5"}, "rules_text"),
    ):
        response = client_of_ada.post(gate_url(poor), fields)
        assert field in response.context["form"].errors
        assert "Gate passed" not in text_of(response)


def test_gate_form_says_why_no_slice_can_be_chosen(admin_client: Client) -> None:
    dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]})
    run = make_searched(make_mapping(dataset, make_collection("Shelf", [{"title": "On pears"}])), [0.5]).runs.get()
    page = text_of(admin_client.get(gate_url(run)))
    assert "Nothing to choose: no slice has 10 queries with values." in page


def test_form_of_a_gate_builds_the_written_rules(client_of_ada: Client, ada: User, nightly: Benchmark) -> None:
    Query.objects.filter(key__in=ANSWERABLE[:12]).update(slices=["hard"], category="api")
    good, poor = nightly.runs.order_by("run_order")
    baseline = approve(good, name="main", reason="Because.", by=ada)
    fields = {"measure": "RR", "at_least": "0.5", "may_lose": "0", "statistic": "mean", "latency_ms": "10"}
    sliced = {"slices": ["slice: hard", "category: api"], "may_fall": "0.1", "baseline": str(baseline.pk)}
    judged = client_of_ada.post(gate_url(poor), fields | sliced)
    by_hand = """
        floors: {RR: 0.5}
        slices: {"slice: hard": {RR: 0.8166}, "category: api": {RR: 0.8166}}
        against_baseline: {RR: {may_lose: 0}}
        latency_ms: {mean: 10}
    """
    assert read_rules(judged.context["written"]) == read_rules(by_hand)
    failed = [check["name"] for check in GateOutcome.objects.get().missed]
    assert failed == ["RR", "RR in slice: hard", "RR in category: api", "RR against the baseline", "mean latency"]
    assert all(name in text_of(judged) for name in failed)
    assert "Gate passed" in text_of(client_of_ada.post(gate_url(good), {**fields, **sliced, "latency_ms": ""}))
    for wrong, field in (
        ({**fields, **sliced, "baseline": ""}, "baseline"),
        ({"measure": "RR", "statistic": "mean"}, "at_least"),
        ({**fields, "at_least": "3"}, "at_least"),
        ({**fields, **sliced, "slices": ["slice: easy"]}, "slices"),
    ):
        assert field in client_of_ada.post(gate_url(poor), wrong).context["form"].errors
    skipping = search(nightly.mapping, POOR, name="skipping", owner=ada, empty_queries="skip").runs.get()
    errors = client_of_ada.post(gate_url(skipping), {**fields, **sliced}).context["form"].errors
    assert "treat queries without a relevant judgment differently" in str(errors["baseline"])
