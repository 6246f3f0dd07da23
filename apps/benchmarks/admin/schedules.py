"""Admin pages of schedules and of the repeats that they started."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, Model, OuterRef, QuerySet, Subquery
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_safe
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from apps.benchmarks.views.gates import LimitsForm
from apps.records.models import Baseline, Benchmark, Repeat, Schedule
from apps.verdicts.gates.baselines import list_baselines
from apps.verdicts.gates.common import CommonRules, read_common, write_rules
from apps.verdicts.schedules.notifying import list_destinations
from apps.verdicts.schedules.saving import check_schedule, save_schedule
from apps.verdicts.schedules.starting import start_now
from apps.verdicts.schedules.times import list_next_times
from benchbench.access import AnyUser, describe_lack, visible
from benchbench.errors import BenchbenchError
from benchbench.models import leave_out_archived
from benchbench.names import find_by_id
from benchbench.reading import strict_yaml
from benchbench.site.admin import FactAdmin, OwnedAdmin, OwnedForm
from benchbench.site.lists import VisibleFilter
from benchbench.site.pages import dress
from benchbench.site.panels import Button, Page, Panel, add_note, build_list_url, change_url

STATE_COLOURS = {"green": "success", "red": "danger"}
FACTS = ("problem", "outcome", "ended_at", "benchmark")  # of a repeat, which `describe_outcome` reads
LIMITS = (("measure", "at_least"), ("may_lose", "unless_significant"), ("statistic", "latency_ms"))
OUTCOME_COLOURS = {"passed": "success", "failed": "danger", "cannot be decided": "warning", "not started": "warning"}


TIMES = {
    "0 3 * * *": "every night, 03:00",
    "0 3 * * 1-5": "Monday to Friday, 03:00",
    "0 3 * * 1": "every Monday, 03:00",
    "": "as the cron expression says",
}
NEXT = 3  # times of a schedule that its page shows


@require_safe
def show_next_times(request: HttpRequest, model_admin: "ScheduleAdmin") -> HttpResponse:
    """Answer the form of a schedule with the next times of what is chosen, before it is stored."""
    if not (model_admin.has_add_permission(request) or model_admin.has_change_permission(request)):
        raise PermissionDenied(describe_lack("benchmarks.add_schedule"))
    rows = visible(Schedule.objects.all(), request.user)
    schedule = next(iter(find_by_id(rows, request.GET.get("schedule", ""))), None)
    form = model_admin.get_form(request, schedule)(request.GET, instance=schedule)
    try:
        problem = " ".join(form.errors.get("cron", ()))
        times = [] if problem else list_next_times(form.cleaned_data["cron"], timezone.now(), NEXT)
    except BenchbenchError as error:
        problem = error.message
    note = format_html("<p>Next: {}.</p>", write_times(times)) if not problem else format_html("<p>{}</p>", problem)
    return HttpResponse(note)


def write_times(times: Iterable[datetime]) -> str:
    return ", ".join(f"{timezone.localtime(time):%a %d %b %Y, %H:%M %Z}" for time in times)


class ScheduleForm(LimitsForm, OwnedForm):
    """Form of a schedule that shows the errors of `check_schedule` at their fields.

    A usual time replaces the cron expression, and limits become rules where none are written.
    """

    user: AnyUser  # set by the admin class
    when = forms.ChoiceField(choices=list(TIMES.items()), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "notify" not in self.fields:  # read-only
            return
        names = dict.fromkeys([*list_destinations(), *filter(None, [self.instance.notify])])
        choices = [("", "nobody"), *((name, name) for name in names)]
        self.fields["notify"].widget = UnfoldAdminSelectWidget(choices=choices)
        self.fields["rules"].widget = UnfoldAdminTextareaWidget({"rows": 8, "class": "bb-code"})
        self.fields["when"].initial = self.instance.cron if self.instance.cron in TIMES else ""
        if self.instance._state.adding:
            self.fields["when"].initial = next(iter(TIMES))
        self.fields["when"].help_text = f"On clocks of the zone {timezone.get_default_timezone_name()}."
        stored = "" if self.instance._state.adding else f"?schedule={self.instance.pk}"
        add_note(self.fields["when"], f"{reverse('admin:schedule_times')}{stored}", "when", "cron")
        self.fields["cron"].required = False
        key = self.data.get("benchmark") or self.instance.benchmark_id or self.initial.get("benchmark", "")
        benchmark = next(iter(find_by_id(visible(Benchmark.objects.all(), self.user), str(key))), None)
        self.choose_measure(benchmark)
        self._show_limits()
        for name in ("when", *LimitsForm.base_fields):
            dress(self.fields[name])
        baselines = Baseline.objects.filter(retired_at=None)
        if benchmark:
            baselines = list_baselines(benchmark.dataset_version.dataset)
        rows = visible(baselines, self.user, through="run__benchmark").values_list("name", flat=True)
        names = dict.fromkeys([*rows, *filter(None, [self.instance.baseline])])
        choices = [("", "none"), *((name, name) for name in names)]
        self.fields["baseline"].widget = UnfoldAdminSelectWidget(choices=choices)

    def _show_limits(self) -> None:
        """Show stored rules as limits, if the fields can say them, and not as a text."""
        limits, measure = read_common(self.instance.rules), cast(Any, self.fields["measure"])
        if limits and (not limits.measure or limits.measure in dict(measure.choices)):
            self.initial.update({name: getattr(limits, name) for name in LimitsForm.base_fields}, rules="")

    def clean(self) -> Any:
        values = super().clean() or self.cleaned_data
        when, cron, changed = values.get("when"), values.get("cron"), {"when", "cron"} & {*self.changed_data}
        if when and cron and when != cron and len(changed) == 2:
            self.add_error("cron", f"You chose “{TIMES[when]}” too: choose “{TIMES['']}”, or leave this as it was.")
        elif when and not (cron and changed == {"cron"}):
            values["cron"] = when
        elif "cron" in self.fields and not cron:
            self.add_error("cron", "Write a cron expression, or choose a time.")
        if "rules" in self.fields and values.get("rules", "").strip():
            self.refuse_limits("rules")
        elif "rules" in self.fields:
            limits = write_rules(CommonRules(**self.read_limits()))
            values["rules"] = strict_yaml.dump(limits) if limits else ""
        return values

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's stubs lack it
        if self.instance._state.adding:
            self.instance.owner = self.user
        if not self.errors and "cron" in self.fields:
            try:
                check_schedule(self.instance)
            except BenchbenchError as error:
                self.add_error(error.field if error.field in self.fields else None, error.message)


@admin.register(Schedule)
class ScheduleAdmin(OwnedAdmin):
    form = ScheduleForm
    list_display = ("name", "state_label", "times", "next_run", "last_outcome", "benchmark", "enabled", "owner")
    phone_columns = ("last_outcome",)
    list_select_related = ("owner", "benchmark")
    list_filter = ("enabled", "state")
    search_fields = ("name", "benchmark__name")
    autocomplete_fields = ("owner",)
    actions = ("run_selected", "bin_selected")
    pages = (Page("times/", show_next_times, "schedule_times"),)
    editable = (
        *("name", "benchmark", "when", "cron", "newest_indexes", "rules", "baseline", "notify", "enabled"),
        *(*LimitsForm.base_fields, "owner", "team"),
    )
    fieldsets = (
        (None, {"fields": ("name", "benchmark", ("when", "cron"), ("enabled", "newest_indexes"))}),
        (
            "Gate",
            {
                "fields": (("baseline", "notify"), *LIMITS, "rules"),
                "description": "An empty field sets no limit. Other rules are a text, which replaces the limits.",
            },
        ),
        ("Access", {"fields": (("owner", "team"),)}),
        ("Facts", {"fields": (("next_times", "state_label"),)}),
    )

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.user = request.user
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.fieldsets if obj else self.fieldsets[:2]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*super().get_readonly_fields(request, obj), *(["benchmark"] if obj else [])]

    def formfield_for_foreignkey(self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "benchmark":
            kwargs["queryset"] = leave_out_archived(visible(Benchmark.objects.order_by("-created_at"), request.user))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Schedule, form: ModelForm, change: bool) -> None:
        fills = {"when": "cron", **dict.fromkeys(LimitsForm.base_fields, "rules")}
        save_schedule(obj, changed=[fills.get(name, name) for name in form.changed_data] if change else None)

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Model]) -> Any:
        last = Repeat.objects.filter(schedule=OuterRef("pk"))
        facts = {f"last_{name}": Subquery(last.values(name)[:1]) for name in FACTS}
        return super().annotate_rows(request, rows.annotate(**facts))

    @display(description="last result", label=OUTCOME_COLOURS)
    def last_outcome(self, schedule: object) -> str | None:
        values = [getattr(schedule, f"last_{name}") for name in FACTS]
        return None if values[0] is None else describe_outcome(*values)

    @display(description="when", ordering="cron")
    def times(self, schedule: Schedule) -> str:
        return TIMES.get(schedule.cron, schedule.cron)

    @display(description="next times", empty_value="disabled")
    def next_times(self, schedule: Schedule) -> str:
        """Return the time that is set, which a later change of the site's zone leaves, and those after it."""
        due = schedule.next_run
        if due is None:
            return ""
        times = [due, *list_next_times(schedule.cron, max(due, timezone.now()), NEXT - 1)]
        return write_times(times)

    @display(description="gate", ordering="state", label=STATE_COLOURS)
    def state_label(self, schedule: Schedule) -> str | None:
        return schedule.state or None

    @admin.action(description="Run now", permissions=["act"])
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        return self.apply_each(request, queryset, lambda schedule: f"Started “{start_now(schedule).benchmark}”.")

    def list_trail(self, obj: Schedule) -> list[Any]:
        return [obj.benchmark.mapping, obj.benchmark]

    def list_buttons(self, request: HttpRequest, obj: Schedule) -> list[Button]:
        return [Button("Run now", "play_circle", "run_selected", primary=True)]

    def list_panels(self, request: HttpRequest, obj: Schedule) -> list[Panel]:
        repeats = obj.repeats.select_related("schedule", "benchmark").prefetch_related("notices")
        columns = ("due_at", "outcome_label", "result_text", "notice", "benchmark")
        every = build_list_url(Repeat, schedule__id__exact=obj.pk)
        return [Panel("Repeats", repeats, columns, every=every, page=find_page)]


def find_page(repeat: Repeat) -> str:
    """Return the address of the results of a repeat's benchmark, or of the repeat without one."""
    pk = repeat.benchmark_id
    return reverse("admin:benchmark_results", args=[pk]) if pk else change_url(repeat)


def describe_outcome(problem: str, outcome: str, ended_at: datetime | None, benchmark: UUID | None) -> str:
    """Return the result of a repeat in two words."""
    if problem or not ended_at:
        return "not started" if problem else "running" if benchmark else "deleted"
    return Repeat(outcome=outcome).get_outcome_display() or "compared"


@admin.register(Repeat)
class RepeatAdmin(FactAdmin):
    through = "schedule"
    list_display = ("due_at", "schedule", "outcome_label", "result_text", "notice", "benchmark")
    list_select_related = ("schedule", "benchmark")
    list_filter = (("schedule", VisibleFilter), "outcome")
    fieldsets = ((None, {"fields": (("schedule", "benchmark"), ("due_at", "outcome_label"), "result_text", "notice")}),)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("notices")

    @display(description="outcome", ordering="outcome", label=OUTCOME_COLOURS)
    def outcome_label(self, repeat: Repeat) -> str:
        return describe_outcome(repeat.problem, repeat.outcome, repeat.ended_at, repeat.benchmark_id)

    @display(description="result", empty_value="–")
    def result_text(self, repeat: Repeat) -> str:
        return repeat.problem or repeat.result

    @display(description="notice", empty_value="–")
    def notice(self, repeat: Repeat) -> str:
        """Return that the gate turned, and what became of the notice."""
        turned = [f"turned {repeat.turned}"] if repeat.turned else []
        return "; ".join([*turned, *(notice.status_text for notice in repeat.notices.all())])

    def list_trail(self, obj: Repeat) -> list[Any]:
        return [obj.schedule]
