"""Pages of the models that judge a round: starting one after its cost, drawing the sample, calibration, verdicts."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from apps.judging.judges import may_lead
from apps.judging.llm.calibration import draw_sample
from apps.judging.llm.judges import LLMJudgeReport, build_judge_report, find_llm_judge, load_llm_judges
from apps.judging.llm.launching import LONGEST_NAME, preview, start_judging
from apps.judging.llm.verdicts import MixedPair, PolicyReport, compute_verdicts
from apps.judging.models import Round
from apps.operations.models import Operation, Status
from apps.retrieval.llms.servers import NO_SERVER, load_servers
from benchbench.access import require, staff
from benchbench.decimals import counted
from benchbench.ir.judging.calibration import MAX_PAIRS, MIN_PAIRS
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, preview_page, show_form
from benchbench.site.panels import change_url

SHOWN_JUDGES = 5
SHOWN_PAIRS = 40
USUAL_SAMPLE = 100


class LLMForm(PageForm):
    """The model that judges, and the cap on its items."""

    server = forms.ChoiceField(help_text="The server of the model, from BENCHBENCH_LLM_SERVERS.")
    llm = forms.CharField(
        max_length=LONGEST_NAME,
        label="Model",
        widget=forms.TextInput({"placeholder": "llama3.2"}),
        help_text="Name of the model on the server.",
    )
    item_limit = forms.IntegerField(
        required=False, min_value=1, label="Cap", help_text="Maximum number of answers. Empty: every item."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["server"].choices = [(name, name) for name in load_servers()]  # type: ignore[attr-defined]

    @property
    def full_name(self) -> str:
        return f"{self.cleaned_data['server']}:{self.cleaned_data['llm'].strip()}"


class SampleForm(PageForm):
    """The size of the calibration sample."""

    size = forms.IntegerField(
        min_value=MIN_PAIRS,
        max_value=MAX_PAIRS,
        initial=USUAL_SAMPLE,
        label="Pairs",
        help_text=f"From {MIN_PAIRS} to {MAX_PAIRS}; a smaller pool is taken whole. "
        "More pairs give narrower intervals.",
    )


def start_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Start or continue a model's judging, after showing the cost."""
    round = load_led_round(request, model_admin, object_id, act=True)
    last = find_llm_judge(round)
    server, _, model = last.llm.partition(":") if last else ("", "", "")

    def act(form: LLMForm) -> HttpResponse:
        judge, _ = start_judging(round, form.full_name, staff(request), item_limit=form.cleaned_data["item_limit"])
        messages.success(request, f"{judge} judges the round.")
        return redirect(f"{change_url(round)}#llm")

    return show_form(
        request,
        model_admin,
        LLMForm,
        act,
        permitted=True,
        title="Let a model judge",
        submit="Start",
        template="judging/llm_start.html",
        initial={"server": server, "llm": model},
        intro="Its grades are stored separately: they change neither judgments nor agreement between "
        "people. It judges the calibration sample first, then the remaining items in the order of the round.",
        missing="" if load_servers() else NO_SERVER,
        round=round,
        original=round,
        trail=[*model_admin.list_trail(round), round],
    )


@require_POST
def preview_start(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Preview the cost of judging for the form's current values, or show its errors."""
    round = load_led_round(request, model_admin, object_id, act=True)
    form = LLMForm(request.POST, user=staff(request))

    def look() -> dict[str, Any]:
        if not form.is_valid():
            return {}
        return {"cost": preview(round, form.full_name, item_limit=form.cleaned_data["item_limit"])}

    sampled = round.calibration_items.exists()
    return preview_page(request, "judging/llm_preview.html", form, look, awaited=("llm",), sampled=sampled)


def sample_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Draw and freeze the calibration sample."""
    round = load_led_round(request, model_admin, object_id, act=True)

    def act(form: SampleForm) -> HttpResponse:
        size = draw_sample(round, form.cleaned_data["size"], staff(request))
        messages.success(request, f"The calibration sample is drawn: {counted(size, 'pair')}.")
        return redirect(f"{change_url(round)}#llm")

    return show_form(
        request,
        model_admin,
        SampleForm,
        act,
        permitted=True,
        title="Draw the calibration sample",
        submit="Draw the sample",
        intro="A uniform random sample of pairs for both people and models to judge. Without it, no "
        "figures about a model are shown. People judge the pairs like other items; in the random "
        "order they come first.",
        original=round,
        trail=[*model_admin.list_trail(round), round],
    )


def judges_fragment(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the models that judge a round, each with its calibration."""
    round = load_led_round(request, model_admin, object_id)
    judges = load_llm_judges(round)
    last = Operation.objects.filter(kind=Operation.Kind.LLM_JUDGING, subject_id=round.pk).order_by("created_at").last()
    context = {
        "round": round,
        "judges": [_add_rows(build_judge_report(judge)) for judge in judges[:SHOWN_JUDGES]],
        "left_out": len(judges) - SHOWN_JUDGES,
        "sample": round.calibration_items.count(),
        "error": last.error if last and last.status == Status.FAILED else "",
    }
    return render(request, "judging/llm_judges.html", context)


def _add_rows(report: LLMJudgeReport) -> dict[str, Any]:
    """Return a judge's report with table rows: for each grade of people, the bias and counts of the model's grades."""
    figures = report.calibration.figures
    return vars(report) | {"rows": list(zip(figures.bias, figures.counts, strict=True)) if figures else []}


def verdicts_fragment(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the verdicts on a round's runs by people, by people and a model, and by a model that people correct."""
    round = load_led_round(request, model_admin, object_id)
    report = compute_verdicts(round, find_llm_judge(round))
    rows = _list_pairs(round, report.verdicts)
    context = {"report": report, "pairs": rows[:SHOWN_PAIRS], "pair_count": len(rows)}
    return render(request, "judging/verdicts.html", context)


def _list_pairs(round: Round, verdicts: Sequence[PolicyReport]) -> list[dict[str, Any]]:
    """Return each pair of runs with its result under each policy, None without one; the widest difference first."""
    runs = {run.pk: run for run in round.runs.select_related("benchmark")}
    by_policy = [{(pair.first_run_id, pair.second_run_id): pair for pair in policy.pairs} for policy in verdicts]
    keys = dict.fromkeys(key for pairs in by_policy for key in pairs)
    rows = [(key, [pairs.get(key) for pairs in by_policy]) for key in keys]
    rows.sort(key=lambda row: -max(abs(pair.difference) for pair in row[1] if pair))
    return [
        {"first": runs[first], "second": runs[second], "cells": [pair and _build_cell(pair) for pair in cells]}
        for (first, second), cells in rows
    ]


def _build_cell(pair: MixedPair) -> dict[str, Any]:
    alone = pair.simultaneous_low is None
    return vars(pair) | {
        "low": pair.low if alone else pair.simultaneous_low,
        "high": pair.high if alone else pair.simultaneous_high,
        "word": "no clear difference" if not pair.significant else "better" if pair.difference > 0 else "worse",
    }


def load_led_round(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID, *, act: bool = False) -> Round:
    """Return the round of a page. Raises PermissionDenied unless the user leads it."""
    round: Round = model_admin.load_viewed(request, object_id)
    if not may_lead(round, request.user):
        raise PermissionDenied("Only the owner of a round, and users of its team who may change rounds, lead it.")
    if act:
        require(request.user, "judging.change_round")
    return round
