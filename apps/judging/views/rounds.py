"""The page of a round, what of it changes while its judges are at work, and closing it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe

from apps.benchmarks.models import Evaluation, Run
from apps.datasets.records import LABEL_LENGTH
from apps.judging.closing import close_round
from apps.judging.judges import is_judge, may_lead, require_lead, require_open, sees_others
from apps.judging.models import Round
from apps.judging.settling.agreeing import agreement_of
from apps.judging.settling.progress import progress_of
from apps.judging.settling.summing import summary_of
from apps.judging.views.agreement import matrix_of
from apps.operations.models import Operation
from benchbench.errors import BenchbenchError
from benchbench.ir.judging.state import PairState
from benchbench.markup import rendered
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, form_page, staff
from benchbench.site.panels import Button, change_url

SHOWN_PAIRS = 40


class CloseForm(PageForm):
    leave_out_split = forms.BooleanField(
        required=False,
        label="Leave out what waits for adjudication",
        help_text="Items that the judges are split on stay unjudged.",
    )
    with_draft = forms.BooleanField(
        required=False,
        label="Freeze other edits too",
        help_text="What the dataset's draft has beside the round becomes part of the version.",
    )
    label = forms.CharField(max_length=LABEL_LENGTH, required=False, help_text="Of the version, such as 2026-11.")
    note = forms.CharField(
        required=False, widget=forms.Textarea({"rows": 2}), help_text="Why, for later readers of the version."
    )


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two runs of a round and what its grades say of them."""

    first: Run
    second: Run
    state: PairState

    @property
    def sentence(self) -> str:
        """What the grades say of the pair, for the reader."""
        if self.state.certain:
            return "ahead" if self.state.certain > 0 else "behind"
        return {1: "better", -1: "worse", 0: "no clear difference"}[self.state.outcome]


def round_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """A round: how it was opened, and where it stands, which is asked for by itself."""
    round: Round = model_admin.viewed(request, object_id)
    context = {
        "round": round,
        "runs": round.runs.select_related("benchmark").order_by("benchmark", "run_order"),
        "judges": [judge.get_username() for judge in round.judges.order_by("username")],
        "guidelines": mark_safe(rendered(round.guidelines)),  # nosec # it lets no HTML through
        "sees_runs": sees_others(round, request.user),
        "judges_here": is_judge(round, request.user),
        "buttons": model_admin.offered(request, round),
        **_of_models(request, round),
        "changelist_url": reverse("admin:judging_round_changelist"),
    }
    return model_admin.page(request, "judging/round.html", context, original=round)


def _of_models(request: HttpRequest, round: Round) -> dict[str, Any]:
    """What the page of a round shows of models that judge it to who leads it: the work in progress, and what to do."""
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
    """Where a round stands. While it is blind and open, its judges are told of progress alone."""
    round: Round = model_admin.viewed(request, object_id)
    if not sees_others(round, request.user):
        progress = progress_of(round)
        own = [judge for judge in progress.judges if judge.user == request.user]
        return render(request, "judging/state.html", {"round": round, "progress": progress, "judges": own})
    summary = summary_of(round)
    states = summary.state.pairs if summary.state else ()
    pairs = [PairRow(summary.runs[state.first], summary.runs[state.second], state) for state in states]
    agreement = agreement_of(round)
    context = {
        "round": round,
        "summary": summary,
        "progress": summary.progress,
        "judges": summary.progress.judges,
        "pairs": sorted(pairs, key=lambda row: (row.state.settled, -abs(row.state.difference)))[:SHOWN_PAIRS],
        "pair_count": len(pairs),
        "agreement": agreement,
        "matrices": [matrix_of(round, pair) for pair in agreement.pairs if pair.confusion.shared],
        "leads": may_lead(round, request.user),
    }
    return render(request, "judging/state.html", context)


def close_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Close a round, once it is said what that does."""
    round: Round = model_admin.viewed(request, object_id)
    if not request.user.has_perm("judging.change_round"):
        raise PermissionDenied

    def act(form: CloseForm) -> HttpResponse:
        closed = close_round(round, staff(request), **form.cleaned_data)
        messages.success(request, closed.sentence)
        benchmark = round.runs.values_list("benchmark", flat=True).first()
        if closed.version is None or benchmark is None:
            return redirect(change_url(round))
        scored = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=closed.version).exists()
        shown = f"?version={closed.version.number}" if scored else ""
        return redirect(f"{reverse('admin:benchmark_results', args=[benchmark])}{shown}")

    try:
        require_open(round)
        require_lead(round, request.user)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(change_url(round))
    return form_page(
        request,
        model_admin,
        CloseForm,
        act,
        permitted=True,
        title=f"Close the round “{round}”",
        submit="Close the round",
        intro=f"Its grades become judgments in the next version of {round.mapping.dataset}, which is frozen. The "
        "mapping is resolved for it, and every benchmark of the round's runs is measured on it from stored rankings; "
        "nothing is searched. A closed round takes no further grade.",
        original=round,
        trail=[*model_admin.trail(round), round],
    )
