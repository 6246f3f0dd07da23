"""The page of a round, its part that changes while judges work, and the items behind a figure."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import mark_safe

from apps.judging.judges import can_see_others, may_close, may_lead
from apps.judging.models import Grade, Round, RoundItem
from apps.judging.settling.agreement import PairAgreementReport, compute_agreement
from apps.judging.settling.next_step import find_next_step
from apps.judging.settling.progress import Progress, compute_progress, count_by_query
from apps.judging.settling.renewing import load_round_status
from apps.judging.settling.report import RunPair, build_round_report, describe_evidence
from apps.judging.views.leading import build_step_button
from apps.operations.models import Operation
from benchbench.access import staff
from benchbench.markup import render_markdown
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import Button

SHOWN_PAIRS = 40
SHOWN_ITEMS = 200
MOST_CELLS = 100
COLOURS = {
    "none": "bg-base-200 dark:bg-base-700",
    "some": "bg-primary-300 dark:bg-primary-900",
    "all": "bg-primary-600 dark:bg-primary-400",
}


def round_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Render the page of a round. Its state is loaded by a separate request."""
    round: Round = model_admin.load_viewed(request, object_id)
    context = {
        "round": round,
        "runs": round.runs.select_related("benchmark").order_by("-benchmark__created_at", "run_order"),
        "guidelines": mark_safe(render_markdown(round.guidelines)),  # nosec # render_markdown escapes HTML
        "sees_runs": can_see_others(round, request.user),
        "buttons": model_admin.list_offered(request, round),
        **_build_panel(request, round),
        "changelist_url": reverse("admin:judging_round_changelist"),
    }
    return model_admin.render_page(request, "judging/round.html", context, original=round)


def _build_panel(request: HttpRequest, round: Round) -> dict[str, object]:
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
        "must_ask": round.is_open and not may_close(request.user),
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
        context = {"judges": own_reports} | _describe_progress(request, round, progress, 0)
        return render(request, "judging/state.html", context)
    status = load_round_status(round)
    report = build_round_report(round, status)
    runs = {run.pk: run for run in status.runs}
    pairs = report.question.pairs if report.question else []
    rows = [(runs[pair.first_run_id], runs[pair.second_run_id], pair, _name_outcome(pair)) for pair in pairs]
    agreement = compute_agreement(round)
    progress = Progress(report.completed_gradings, report.total_gradings, report.judges)
    context = _describe_progress(request, round, progress, report.waiting_for_adjudication) | {
        "report": report,
        "judges": report.judges,
        "evidence": describe_evidence(status.row.evidence),
        "pairs": sorted(rows, key=lambda row: (row[2].is_settled, -abs(row[2].difference)))[:SHOWN_PAIRS],
        "agreement": agreement,
        "matrices": [(pair, _build_matrix(round, pair)) for pair in agreement.pairs if pair.shared],
        "leads": may_lead(round, request.user),
    }
    return render(request, "judging/state.html", context)


def _describe_progress(request: HttpRequest, round: Round, progress: Progress, split: int) -> dict[str, object]:
    """Return the context of the next step, and of a strip whose cells are the queries, several in one if many."""
    step = find_next_step(round, staff(request), progress, split)
    queries = count_by_query(round)
    size = -(-len(queries) // MOST_CELLS) or 1
    cells = []
    for start in range(0, len(queries), size):
        keys, completed, total = zip(*queries[start : start + size], strict=True)
        name = keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]}"
        share = "all" if sum(completed) == sum(total) else "some" if sum(completed) else "none"
        cells.append({"color": COLOURS[share], "tooltip": f"{name}: {sum(completed):,} of {sum(total):,}"})
    step_buttons = build_step_button(round, request.user, step)
    return {"round": round, "progress": progress, "step": step, "step_buttons": step_buttons, "cells": cells}


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
        raise PermissionDenied("While a blind round is open, its judges do not see grades of each other.")
    first, second, a, b = (request.GET.get(name, "") for name in ("first", "second", "a", "b"))
    pairs = [pair for pair in compute_agreement(round).pairs if {pair.first, pair.second} == {first, second}]
    if (first and not pairs) or not all(len(grade) == 1 and grade.isdecimal() for grade in (a, b) if grade):
        raise Http404("These judges or grades were not found in this round.")
    rows = (
        RoundItem.objects.filter(round=round)
        .select_related("query", "document")
        .defer("document__text")
        .order_by("place")
    )
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
