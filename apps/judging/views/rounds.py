"""The page of a round, its part that changes while judges work, the items behind a figure, and closing it."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import mark_safe

from apps.benchmarks.models import Evaluation
from apps.datasets.records import LABEL_LENGTH
from apps.judging.closing import close_round
from apps.judging.judges import can_see_others, is_judge, may_lead, require_lead, require_open
from apps.judging.models import Grade, Round, RoundItem
from apps.judging.settling.agreement import PairAgreementReport, compute_agreement
from apps.judging.settling.progress import compute_progress
from apps.judging.settling.renewing import load_round_status
from apps.judging.settling.report import RunPair, build_round_report, describe_evidence
from apps.operations.models import Operation
from benchbench.errors import BenchbenchError
from benchbench.markup import render_markdown
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, show_form, staff
from benchbench.site.panels import Button, change_url

SHOWN_PAIRS = 40
SHOWN_ITEMS = 200


class CloseForm(PageForm):
    leave_out_split = forms.BooleanField(
        required=False,
        label="Leave out items that wait for adjudication",
        help_text="Items on which the judges disagree stay unjudged.",
    )
    with_draft = forms.BooleanField(
        required=False,
        label="Freeze other edits too",
        help_text="Other edits in the dataset's draft also become part of the version.",
    )
    label = forms.CharField(max_length=LABEL_LENGTH, required=False, help_text="Label of the version, such as 2026-11.")
    note = forms.CharField(
        required=False, widget=forms.Textarea({"rows": 2}), help_text="The reason, for later readers of the version."
    )


def round_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the page of a round. Its state is loaded by a separate request."""
    round: Round = model_admin.load_viewed(request, object_id)
    context = {
        "round": round,
        "runs": round.runs.select_related("benchmark").order_by("benchmark", "run_order"),
        "judges": [judge.get_username() for judge in round.judges.order_by("username")],
        "guidelines": mark_safe(render_markdown(round.guidelines)),  # nosec # render_markdown escapes HTML
        "sees_runs": can_see_others(round, request.user),
        "judges_here": is_judge(round, request.user),
        "buttons": model_admin.list_offered(request, round),
        **_build_panel(request, round),
        "changelist_url": reverse("admin:judging_round_changelist"),
    }
    return model_admin.render_page(request, "judging/round.html", context, original=round)


def _build_panel(request: HttpRequest, round: Round) -> dict[str, Any]:
    """Return the context for the LLM-judge panel on the page of a round; {} unless the user leads it."""
    if not may_lead(round, request.user):
        return {}
    operation = Operation.active_on(round)
    buttons = []
    if operation:
        buttons.append(Button("Cancel", "stop_circle", "cancel_llm_selected"))
    elif round.is_open:
        url = reverse("admin:round_llm", args=[round.pk])
        buttons.append(Button("Let a model judge …", "smart_toy", href=url))
    if round.is_open and not round.calibration_items.exists():
        url = reverse("admin:round_sample", args=[round.pk])
        buttons.append(Button("Draw the calibration sample …", "casino", href=url))
    may_act = request.user.has_perm("judging.change_round")
    return {
        "leads": True,
        "operation": operation,
        "judged": round.llm_judges.exists(),
        "llm_buttons": buttons if may_act else [],
    }


def state_fragment(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the state of a round. Judges of a blind, open round see only the progress."""
    round: Round = model_admin.load_viewed(request, object_id)
    if not can_see_others(round, request.user):
        progress = compute_progress(round)
        own_reports = [judge for judge in progress.judges if judge.judge == request.user.get_username()]
        return render(request, "judging/state.html", {"round": round, "progress": progress, "judges": own_reports})
    status = load_round_status(round)
    report = build_round_report(round, status)
    runs = {run.pk: run for run in status.runs}
    pairs = report.question.pairs if report.question else []
    rows = [(runs[pair.first_run_id], runs[pair.second_run_id], pair, _name_outcome(pair)) for pair in pairs]
    agreement = compute_agreement(round)
    context = {
        "round": round,
        "report": report,
        "progress": report,
        "judges": report.judges,
        "evidence": describe_evidence(status.row.evidence),
        "pairs": sorted(rows, key=lambda row: (row[2].is_settled, -abs(row[2].difference)))[:SHOWN_PAIRS],
        "agreement": agreement,
        "matrices": [(pair, _build_matrix(round, pair)) for pair in agreement.pairs if pair.shared],
        "leads": may_lead(round, request.user),
    }
    return render(request, "judging/state.html", context)


def _name_outcome(pair: RunPair) -> str:
    """Return a word for the result of two runs."""
    if pair.certain_order:
        return "ahead" if pair.certain_order > 0 else "behind"
    return {1: "better", -1: "worse", 0: "no clear difference"}[pair.outcome]


def _build_matrix(round: Round, pair: PairAgreementReport) -> list[tuple[int, list[tuple[int, str]]]]:
    """Return a confusion matrix: for each grade of the first judge, counts with the URLs of their items."""
    url = reverse("admin:round_pairs", args=[round.pk])

    def build_url(a: int, b: int) -> str:
        return f"{url}?{urlencode([('first', pair.first), ('second', pair.second), ('a', a), ('b', b)])}"

    return [
        (a, [(count, build_url(a, b)) for b, count in zip(pair.scale, counts, strict=True)])
        for a, counts in zip(pair.scale, pair.counts, strict=True)
    ]


def pairs_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """List the items that two judges graded in a given way: `?first=ada&second=grace&a=2&b=0`."""
    round: Round = model_admin.load_viewed(request, object_id)
    if not can_see_others(round, request.user):
        raise PermissionDenied
    first, second, a, b = (request.GET.get(name, "") for name in ("first", "second", "a", "b"))
    pairs = [pair for pair in compute_agreement(round).pairs if {pair.first, pair.second} == {first, second}]
    if (first and not pairs) or not all(len(grade) == 1 and grade.isdecimal() for grade in (a, b) if grade):
        raise Http404("These judges or grades were not found in this round.")
    rows = RoundItem.objects.filter(round=round).select_related("query", "document").order_by("place")
    for judge, grade in ((first, a), (second, b)):
        if judge and grade:
            matching_grades = Grade.objects.filter(
                judge_name=judge, grade=grade, adjudicates=False, source=Grade.Source.HUMAN
            )
            rows = rows.filter(pk__in=matching_grades.values("item"))
    items = list(rows[:SHOWN_ITEMS])
    grades_by_item: dict[int, list[Grade]] = {item.pk: [] for item in items}
    for row in Grade.objects.filter(item__in=items, source=Grade.Source.HUMAN).order_by("adjudicates", "judge_name"):
        grades_by_item[row.item_id].append(row)
    context = {
        "round": round,
        "rows": [(item, grades_by_item[item.pk]) for item in items],
        "asked": f"{first} {a}, {second} {b}" if first and a and b else "",
        "count": rows.count(),
    }
    return model_admin.render_page(request, "judging/pairs.html", context, original=round)


def close_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Close a round, after explaining the effects."""
    round: Round = model_admin.load_viewed(request, object_id)
    if not request.user.has_perm("judging.change_round"):
        raise PermissionDenied

    def act(form: CloseForm) -> HttpResponse:
        closed = close_round(round, staff(request), **form.cleaned_data)
        messages.success(request, closed.sentence)
        benchmark = round.runs.values_list("benchmark", flat=True).first()
        if closed.version is None or benchmark is None:
            return redirect(change_url(round))
        scored = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=closed.version).exists()
        query_string = f"?version={closed.version.number}" if scored else ""
        return redirect(f"{reverse('admin:benchmark_results', args=[benchmark])}{query_string}")

    try:
        require_open(round)
        require_lead(round, request.user)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(change_url(round))
    return show_form(
        request,
        model_admin,
        CloseForm,
        act,
        permitted=True,
        title=f"Close the round “{round}”",
        submit="Close the round",
        intro=f"The grades become judgments in a new frozen version of {round.mapping.dataset}. The mapping is "
        "resolved for it, and the benchmarks of these runs are re-scored on it from stored rankings, without "
        "searching again. A closed round accepts no more grades.",
        original=round,
        trail=[*model_admin.list_trail(round), round],
    )
