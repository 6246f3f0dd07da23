"""Admin pages of schedules and of the repeats that they started."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, Subquery
from django.forms import ChoiceField
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from apps.benchmarks.gates.baselines import list_baselines
from apps.benchmarks.models import Benchmark, Repeat, Schedule
from apps.benchmarks.schedules.notifying import list_destinations
from apps.benchmarks.schedules.saving import check_schedule, save_schedule
from apps.benchmarks.schedules.starting import start_now
from benchbench.access import visible
from benchbench.decimals import list_some
from benchbench.errors import BenchbenchError
from benchbench.names import find_by_id
from benchbench.site.admin import FactAdmin, OwnedAdmin, OwnedForm, VisibleFilter
from benchbench.site.panels import Button, Panel, build_list_url, change_url

STATE_COLOURS = {"green": "success", "red": "danger"}
OUTCOME_COLOURS = {"passed": "success", "failed": "danger", "cannot be decided": "warning", "not started": "warning"}


def find_visible_benchmark(user: Any, key: Any) -> list[Benchmark]:
    """Return the benchmark that a request names; none if the user may not see it or the key is not an id."""
    return find_by_id(visible(Benchmark.objects.all(), user), str(key))


class ScheduleForm(OwnedForm):
    """Form of a schedule that shows the errors of `check_schedule` at their fields."""

    user: Any  # set by the admin class

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "benchmark" in self.data and not find_visible_benchmark(self.user, self.data["benchmark"]):
            self.data = dict(self.data.items()) | {"benchmark": ""}  # its widget fails on other texts than ids
        if "notify" in self.fields:
            names = dict.fromkeys([*list_destinations(), *filter(None, [self.instance.notify])])
            choices = [("", "nobody"), *((name, name) for name in names)]
            widget = UnfoldAdminSelectWidget(choices=choices)
            help_text = self.fields["notify"].help_text
            self.fields["notify"] = ChoiceField(choices=choices, widget=widget, required=False, help_text=help_text)
            self.fields["rules"].widget = UnfoldAdminTextareaWidget({"rows": 8, "class": "bb-code"})
            self._name_baselines()

    def _name_baselines(self) -> None:
        key = self.instance.benchmark_id or self.initial.get("benchmark")
        for benchmark in find_visible_benchmark(self.user, key):
            rows = visible(list_baselines(benchmark.dataset_version.dataset), self.user, through="run__benchmark")
            names = list(rows.values_list("name", flat=True))
            self.fields["baseline"].help_text += f" Current: {list_some(names, 5) if names else 'none'}."

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
    list_display = ("name", "cron", "next_run", "last_outcome", "state_label", "benchmark", "enabled", "owner")
    list_select_related = ("owner", "benchmark")
    list_filter = ("enabled", "state")
    search_fields = ("name", "benchmark__name")
    autocomplete_fields = ("benchmark", "owner")
    actions = ("run_selected",)
    editable = (
        *("name", "benchmark", "cron", "newest_indexes", "rules", "baseline", "notify", "enabled", "owner", "team"),
    )
    fieldsets = (
        (None, {"fields": ("name", "benchmark", ("cron", "enabled"), "newest_indexes")}),
        ("Gate", {"fields": ("rules", ("baseline", "notify"))}),
        ("Access", {"fields": (("owner", "team"),)}),
        ("Facts", {"fields": (("next_run", "state_label"),)}),
    )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.user = request.user
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fieldsets if obj else self.fieldsets[:2]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*super().get_readonly_fields(request, obj), *(["benchmark"] if obj else [])]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return the values of the query string, without a benchmark that the user may not see."""
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        rows = find_visible_benchmark(request.user, initial.pop("benchmark", ""))
        return initial | ({"benchmark": rows[0].pk} if rows else {})

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "benchmark":
            kwargs["queryset"] = visible(Benchmark.objects.all(), request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        save_schedule(obj, changed=form.changed_data if change else None)

    def annotate_rows(self, request: HttpRequest, rows: Any) -> Any:
        last = Repeat.objects.filter(schedule=OuterRef("pk"))
        facts = {name: Subquery(last.values(name)[:1]) for name in ("outcome", "problem", "ended_at", "benchmark")}
        return super().annotate_rows(request, rows.annotate(**{f"last_{name}": facts[name] for name in facts}))

    @display(description="last result", label=OUTCOME_COLOURS)
    def last_outcome(self, schedule: Any) -> str | None:
        if schedule.last_problem is None:
            return None
        return describe_outcome(schedule.last_problem, schedule.last_outcome, schedule.last_ended_at)

    @display(description="gate", ordering="state", label=STATE_COLOURS)
    def state_label(self, schedule: Schedule) -> str | None:
        return schedule.state or None

    @admin.action(description="Run now", permissions=["act"])
    def run_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
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


def describe_outcome(problem: str, outcome: str, ended_at: Any) -> str:
    """Return the result of a repeat in two words."""
    if problem:
        return "not started"
    return (Repeat(outcome=outcome).get_outcome_display() or "compared") if ended_at else "running"


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
        return describe_outcome(repeat.problem, repeat.outcome, repeat.ended_at)

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
