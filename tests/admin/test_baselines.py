"""Pinning a run, retiring it, and gates on the page of a run."""

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.benchmarks.gates.baselines import approve
from apps.benchmarks.models import Baseline, Benchmark, Run
from apps.mappings.models import Mapping
from benchbench.site.panels import change_url, changelist_url
from tests.admin.conftest import MakeStaff
from tests.admin.test_acts import messages_of, press
from tests.benchmarks.test_gating import GOOD, POOR, mapping, search
from tests.results.test_pages import results_url, text_of

__all__ = ["mapping"]

ADD = "/admin/benchmarks/baseline/add/"


@pytest.fixture
def nightly(mapping: Mapping) -> Benchmark:
    return search(mapping, GOOD, POOR)


def gate_url(run: Run) -> str:
    return reverse("admin:run_gate", args=[run.pk])


def test_a_run_is_pinned_from_its_page_and_wears_its_badge(
    client_of_ada: Client, ada: User, nightly: Benchmark
) -> None:
    run = nightly.runs.get(run_order=1)
    assert f"{ADD}?run={run.pk}" in client_of_ada.get(change_url(run)).content.decode()
    assert run.label in text_of(client_of_ada.get(ADD, {"run": run.pk}))
    blank = client_of_ada.post(ADD, {"run": run.pk, "name": "main", "reason": " "})
    assert "reason" in blank.context["form"].errors
    done = client_of_ada.post(ADD, {"run": run.pk, "name": "main", "reason": "The release of May."}, follow=True)
    baseline = Baseline.objects.get()
    assert (baseline.run, baseline.approved_by, baseline.dataset) == (run, ada, nightly.dataset_version.dataset)
    assert done.redirect_chain[-1][0] == change_url(run)
    for page in (change_url(run), results_url(nightly)):
        assert "baseline main" in text_of(client_of_ada.get(page)), page
    assert "The release of May." in text_of(client_of_ada.get(change_url(baseline.dataset)))


def test_a_baseline_is_retired_by_button_and_then_may_be_deleted(
    client_of_ada: Client, ada: User, nightly: Benchmark
) -> None:
    baseline = approve(nightly.runs.get(run_order=1), name="main", reason="Because.", by=ada)
    delete = reverse("admin:benchmarks_baseline_delete", args=[baseline.pk])
    assert client_of_ada.get(delete).status_code == 403
    assert "is retired" in messages_of(press(client_of_ada, baseline, "retire_selected"))
    baseline.refresh_from_db()
    assert baseline.retired_by == ada
    assert client_of_ada.post(delete, {"post": "yes"}).status_code == 302
    assert not Baseline.objects.exists()


def test_what_somebody_else_owns_is_neither_pinned_nor_replaced(
    client_of_ada: Client, make_staff: MakeStaff, nightly: Benchmark, mapping: Mapping
) -> None:
    grace = make_staff("grace")
    hidden = nightly.runs.get(run_order=1)
    approve(hidden, name="main", reason="Because.", by=grace)
    Benchmark.objects.filter(pk=nightly.pk).update(owner=grace)
    mine = search(mapping, GOOD, name="mine").runs.get()
    assert "run" in client_of_ada.post(ADD, {"run": hidden.pk, "name": "x", "reason": "y"}).context["form"].errors
    taken = client_of_ada.post(ADD, {"run": mine.pk, "name": "main", "reason": "y"})
    assert "may not see" in str(taken.context["form"].errors)
    assert Baseline.objects.get().retired_at is None
    assert client_of_ada.get(gate_url(hidden)).status_code == 404
    assert "main" not in str(client_of_ada.get(gate_url(mine)).context["form"]["baseline"])
    assert hidden.label not in text_of(client_of_ada.get(changelist_url(Baseline)))


def test_who_may_only_look_neither_pins_nor_retires(client: Client, make_staff: MakeStaff, nightly: Benchmark) -> None:
    run = nightly.runs.get(run_order=1)
    baseline = approve(run, name="main", reason="Because.", by=make_staff("grace"))
    client.force_login(make_staff("guest", may=("view",)))
    assert "Pin as baseline" not in text_of(client.get(change_url(run)))
    assert client.post(ADD, {"run": run.pk, "name": "other", "reason": "y"}).status_code == 403
    press(client, baseline, "retire_selected")
    baseline.refresh_from_db()
    assert baseline.retired_at is None
    assert client.get(gate_url(run)).status_code == 200, "a gate changes nothing"


def test_a_gate_on_the_page_of_a_run(client_of_ada: Client, ada: User, nightly: Benchmark) -> None:
    good, poor = nightly.runs.order_by("run_order")
    baseline = approve(good, name="main", reason="Because.", by=ada)
    first = client_of_ada.get(gate_url(poor))
    assert first.content.decode().count('class="bb-trail"') == 1
    assert "nDCG@10" in first.context["form"]["rules_text"].value()
    asked = {"baseline": baseline.pk, "rules_text": first.context["form"]["rules_text"].value()}
    judged = client_of_ada.post(gate_url(poor), asked)
    assert judged.context["headline"] == "Gate failed: 1 failed, of 3 checks"
    assert "nDCG@10 against the baseline" in text_of(judged)
    file = SimpleUploadedFile("gate.yaml", b"floors: {mrr: 0.1}")
    assert "Gate passed" in text_of(client_of_ada.post(gate_url(poor), {**asked, "file": file}))
    wrong = SimpleUploadedFile("gate.yaml", b"floors: {mr: 0.1}")
    assert "file" in client_of_ada.post(gate_url(poor), {**asked, "file": wrong}).context["form"].errors
    for fields, field in (({"rules_text": "floors: ["}, "rules_text"), ({**asked, "baseline": ""}, "baseline")):
        response = client_of_ada.post(gate_url(poor), fields)
        assert field in response.context["form"].errors
        assert "Gate passed" not in text_of(response)
