"""Pages about gates and baselines."""

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.benchmarks.gates.baselines import approve
from apps.benchmarks.gates.forms import BaselineForm, GateForm
from apps.benchmarks.gates.gating import gate
from apps.benchmarks.gates.reports import headline, markdown_of, means_told
from apps.benchmarks.models import Run
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import form_page, staff
from benchbench.site.panels import change_url


def add_baseline(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: BaselineForm) -> HttpResponse:
        values = form.cleaned_data
        baseline = approve(values["run"], name=values["name"], reason=values["reason"], by=staff(request))
        messages.success(
            request,
            f'"{baseline.run}" is the baseline "{baseline.name}" of {baseline.dataset} now. '
            "Compare other runs with it by a gate, on their pages or in your pipeline.",
        )
        return redirect(change_url(baseline.run))

    return form_page(
        request,
        model_admin,
        BaselineForm,
        act,
        title="Pin a run as baseline",
        submit="Approve as baseline",
        intro="A baseline is a run that somebody approved. Gates compare later runs of the same dataset with it, "
        "and the history of the dataset shows its line.",
    )


def gate_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Hold a run against rules and a baseline, and show what came of it. Nothing is kept."""
    run: Run = model_admin.viewed(request, object_id)
    asked = request.method == "POST"
    form = GateForm(
        request.POST if asked else None, request.FILES if asked else None, user=request.user, benchmark=run.benchmark
    )
    shown = {
        "run": run,
        "trail": [*model_admin.trail(run), run],
        "title": "Judge the run by rules",
        "form": form,
        "submit": "Judge the run",
        "media": form.media,
        "intro": "A gate says whether a run may pass, by rules that were written before. The same rules work in a "
        "pipeline: manage.py gate.",
    }
    context = judged(run, form) if form.is_valid() else {}
    return model_admin.page(request, "benchmarks/gate.html", shown | context, original=run)


def judged(run: Run, form: GateForm) -> dict[str, Any]:
    """Return what the page shows of the verdict; an error of a use case is shown at the form."""
    try:
        result = gate(run, rules=form.rules(), baseline=form.cleaned_data["baseline"])
    except BenchbenchError as error:
        form.present(error)
        return {}
    return {
        "result": result,
        "headline": headline(result),
        "means": means_told(result),
        "markdown": markdown_of(result),
    }
