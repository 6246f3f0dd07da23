"""Schedules that repeat a benchmark: make, look, change, delete, run now."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.answers import TIMES, ModelAnswer, TextOrNull, build_page
from apps.api.fields import Flag, Identifier, PageQuery, StrictSerializer, Text, Validated
from apps.api.resource import Resource, delete, find_visible, get, patch, post
from apps.api.resources.gates import RulesField
from apps.records.models import Benchmark, Repeat, Schedule
from apps.verdicts.schedules.saving import save_schedule
from apps.verdicts.schedules.starting import start_now
from benchbench.deleting import delete_unused
from benchbench.names import MAX_LENGTH
from benchbench.reading import strict_yaml

CRON = "Minute, hour, day, month and weekday in the time zone of the site, such as 0 3 * * 1-5."
RULES = "Rules of the gate: a YAML text, or the same as an object. Empty: compare without a gate."


class ScheduleChange(StrictSerializer):
    """The fields to change; the others stay."""

    name = Text(required=False, max_length=MAX_LENGTH)
    cron = Text(required=False, max_length=100, help_text=CRON)
    newest_indexes = Flag(required=False, help_text="Search the newest ready version of each index.")
    rules = RulesField(required=False, help_text=RULES)
    baseline = Text(required=False, allow_blank=True, max_length=200, help_text="The current one of this name.")
    notify = Text(required=False, allow_blank=True, max_length=100, help_text="Alias of an address. Empty: none.")
    enabled = Flag(required=False)


class NewSchedule(ScheduleChange):
    """The benchmark to repeat, and when."""

    benchmark_id = Identifier(help_text="Each repeat clones its matrix, mapping, measures and options.")
    name = Text(max_length=MAX_LENGTH)
    cron = Text(max_length=100, help_text=CRON)


class ScheduleAnswer(ModelAnswer):
    """A schedule."""

    state = TextOrNull(allow_null=True, help_text="Of the gate: green or red; null: never decided.")

    class Meta:
        model = Schedule
        fields = [
            *("id", "name", "benchmark_id", "owner_id", "cron", "newest_indexes", "rules", "baseline", "notify"),
            *("enabled", "next_run", "state", *TIMES),
        ]


class RepeatAnswer(ModelAnswer):
    """A time of a schedule, and what came of it."""

    outcome = TextOrNull(allow_null=True, help_text="Of the gate: passed, failed or undecided.")
    turned = TextOrNull(allow_null=True, help_text="green or red if the gate turned.")

    class Meta:
        model = Repeat
        fields = ["due_at", "benchmark_id", "problem", "ended_at", "outcome", "result", "turned"]


SchedulePage, RepeatPage = build_page("schedules", ScheduleAnswer), build_page("repeats", RepeatAnswer)


class Schedules(Resource):
    model = Schedule
    route = "schedules"

    @get("", SchedulePage, PageQuery)
    def list_schedules(self, query: Validated) -> QuerySet[Schedule]:
        """List schedules, newest first."""
        return self.newest()

    @post("", ScheduleAnswer, NewSchedule, act="add", status=201, history="Repeat a benchmark on a schedule.")
    def create_schedule(self, data: Validated) -> Schedule:
        """Repeat a benchmark on a schedule; the benchmarks that it starts are yours.

        400 for a cron expression that never comes due, and for invalid rules. 409 if the benchmark has external runs.
        """
        benchmark = find_visible(Benchmark.objects.all(), data.pop("benchmark_id"), self.user)
        return save_schedule(Schedule(benchmark=benchmark, owner=self.user, **write_rules(data)))

    @get("/<id:schedule_id>", ScheduleAnswer)
    def get_schedule(self, schedule: Schedule) -> Schedule:
        """Show a schedule."""
        return schedule

    @patch("/<id:schedule_id>", ScheduleAnswer, ScheduleChange, history="Change a schedule.")
    def change_schedule(self, schedule: Schedule, data: Validated) -> Schedule:
        """Change a schedule, or disable it."""
        for name, value in write_rules(data).items():
            setattr(schedule, name, value)
        return save_schedule(schedule, changed=data)

    @delete("/<id:schedule_id>", history="Delete a schedule and its history.")
    def delete_schedule(self, schedule: Schedule) -> None:
        """Delete a schedule and its history; its benchmarks stay."""
        delete_unused(schedule)

    @post(
        "/<id:schedule_id>/run",
        RepeatAnswer,
        throttle="start",
        status=201,
        history="Start the benchmark of a schedule now.",
    )
    def run_schedule(self, schedule: Schedule) -> Repeat:
        """Start the benchmark of a schedule now; 409 while its last benchmark runs, or if it cannot start."""
        return start_now(schedule)

    @get("/<id:schedule_id>/repeats", RepeatPage, PageQuery)
    def list_repeats(self, schedule: Schedule, query: Validated) -> QuerySet[Repeat]:
        """List the repeats of a schedule, newest first."""
        return schedule.repeats.all()

    def find(self, schedule_id: UUID) -> Any:
        rows = Schedule.objects.select_related("owner", "benchmark__dataset_version__dataset")
        return find_visible(rows, schedule_id, self.user)


def write_rules(data: Validated) -> dict[str, object]:
    """Return the data of a request with rules as the text of a file."""
    rules = data.get("rules")
    return data | ({"rules": strict_yaml.dump(rules)} if isinstance(rules, dict) else {})
