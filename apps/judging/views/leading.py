"""Pages of who leads a round: its next step, its judges and guidelines, and closing it."""

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from apps.datasets.records import LABEL_LENGTH
from apps.judging.closing import close_round
from apps.judging.judges import change_round, list_eligible_judges, may_close, require_lead, require_open
from apps.judging.llm.verdicts import compute_verdicts
from apps.judging.models import Round
from apps.judging.scales import LONGEST_GUIDELINES
from apps.judging.settling.next_step import Act, NextStep
from apps.judging.settling.renewing import load_round_status
from apps.judging.settling.report import describe_likeliest
from apps.records.models import Evaluation
from benchbench.access import AnyUser, require, staff
from benchbench.database.failures import read_again
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.merging import Edited
from benchbench.site.pages import PageForm, show_form
from benchbench.site.panels import Button, change_url

# Icon, page and permission of the button of each act.
ACTS = {
    Act.JUDGE: ("edit_note", "round_judge", "judging.add_grade"),
    Act.ADJUDICATE: ("balance", "round_adjudicate", "judging.change_round"),
    Act.ASSIGN: ("group_add", "round_people", "judging.change_round"),
    Act.CLOSE: ("lock", "round_close", "judging.change_round"),
    Act.RESOLVE: ("join_inner", "mappings_mapping_change", "mappings.view_mapping"),
    Act.RESCORE: ("rule", "benchmarks_benchmark_change", "benchmarks.view_benchmark"),
    Act.RESULTS: ("leaderboard", "benchmark_results", "benchmarks.view_benchmark"),
    Act.OPEN: ("edit_note", "judging_round_add", "judging.add_round"),
}


class PeopleForm(PageForm):
    judges = forms.ModelMultipleChoiceField(
        User.objects.none(),
        help_text="They grade the items. If you remove a judge, the grades stay, and the open items go to the others.",
        error_messages={"required": "A round needs judges: choose at least one."},
    )
    guidelines = forms.CharField(
        required=False,
        max_length=LONGEST_GUIDELINES,
        widget=forms.Textarea({"rows": 6}),
        help_text="Instructions for the judges, in Markdown.",
    )

    eligible: ClassVar[QuerySet[User]] = User.objects.none()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        judges: Any = self.fields["judges"]
        judges.queryset = self.eligible.order_by("username")


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


def build_step_button(round: Round, user: AnyUser, step: NextStep) -> list[Button]:
    """Return the button of a step, if it has one and the user may use it."""
    if step.act is None or not user.has_perm(ACTS[step.act][2]) or (step.act == Act.CLOSE and not may_close(user)):
        return []
    icon, name, needs = ACTS[step.act]
    if step.act == Act.OPEN:
        href = f"{reverse('admin:judging_round_add')}?{urlencode([('run', str(run.pk)) for run in round.runs.all()])}"
    else:
        row = round.mapping if step.act == Act.RESOLVE else step.benchmark or round
        href = reverse(f"admin:{name}", args=[row.pk])
    if step.act == Act.RESULTS and round.closed_version:
        href += f"?version={round.closed_version.number}"
    return [Button(step.act.value, icon, href=href, primary=True, needs=needs)]


def people_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Choose the judges of an open round, and write their guidelines."""
    round = _load_changeable(request, model_admin, object_id)
    if isinstance(round, HttpResponse):
        return round
    judges = list_eligible_judges(request.user, round)

    class RoundPeopleForm(PeopleForm):
        eligible = judges

    def read() -> dict[str, Any]:
        now = read_again(Round.objects.all(), round.pk)
        return {"judges": list(now.judge_ids), "guidelines": now.guidelines}

    def act(form: PeopleForm) -> HttpResponse:
        chosen = list(form.cleaned_data["judges"])
        change_round(round, staff(request), judges=chosen, guidelines=form.cleaned_data["guidelines"])
        messages.success(request, f"Judges: {', '.join(user.get_username() for user in chosen)}.")
        return redirect(change_url(round))

    return show_form(
        request,
        model_admin,
        RoundPeopleForm,
        act,
        permitted=True,
        title="Judges and guidelines",
        submit="Save",
        intro=f"{round.gradings:,} gradings are divided among the judges."
        + (f" {round.shared_items:,} items need {round.overlap_judges} judges each." if round.overlap else ""),
        edited=Edited(round, round, read),
        original=round,
        trail=[*model_admin.list_trail(round), round],
    )


def close_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Close a round, after explaining the effects."""
    round = _load_changeable(request, model_admin, object_id)
    if isinstance(round, HttpResponse):
        return round
    require(request.user, "datasets.change_dataset")

    def act(form: CloseForm) -> HttpResponse:
        closed = close_round(round, staff(request), **form.cleaned_data)
        messages.success(request, closed.sentence)
        benchmark = round.runs.values_list("benchmark", flat=True).first()
        if closed.version is None or benchmark is None:
            return redirect(change_url(round))
        scored = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=closed.version).exists()
        query_string = f"?version={closed.version.number}" if scored else ""
        return redirect(f"{reverse('admin:benchmark_results', args=[benchmark])}{query_string}")

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
        f"searching again. A closed round accepts no more grades. {_describe_both(round)}",
        original=round,
        trail=[*model_admin.list_trail(round), round],
    )


def _describe_both(round: Round) -> str:
    """Return the verdict that the version will carry, and that of its plain means; "" if they cannot differ."""
    status = load_round_status(round)
    if status.state is None or not status.state.unjudged:
        return ""
    plain = compute_verdicts(round, None).verdicts[0]
    carried = f"the verdict of the round, {describe_likeliest(status.state, status.runs)}"
    return (
        f"The version will carry {'no verdict' if status.state.reason else carried}. Its plain "
        f"means count {counted(status.state.unjudged, 'unjudged pair')} as not relevant, and would say: "
        f"{plain.sentence}"
    )


def _load_changeable(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> Round | HttpResponse:
    """Return the open round that the user leads, else the way back to its page, with the reason as a message."""
    round: Round = model_admin.load_viewed(request, object_id)
    require(request.user, "judging.change_round")
    try:
        require_open(round)
        require_lead(round, request.user)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(change_url(round))
    return round
