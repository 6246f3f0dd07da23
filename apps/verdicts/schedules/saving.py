"""Schedules are checked before they are stored."""

from collections.abc import Collection

from django.utils import timezone

from apps.engines.declarations import load_notice_address
from apps.engines.errors import EngineError
from apps.execution.defining.choosing import require_engines
from apps.execution.defining.creating import require_searched
from apps.records.models import Schedule
from apps.verdicts.gates.baselines import find_baseline
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.schedules.starting import find_refusal
from apps.verdicts.schedules.times import find_next_time
from benchbench.deleting import referring
from benchbench.errors import BenchbenchError

TIMES = {"cron", "enabled"}  # fields that the next time depends on


def check_schedule(schedule: Schedule) -> None:
    """Raise an error with its field for a schedule that could never start, or whose gate could never be decided."""
    require_searched(schedule.benchmark, "repeat")
    find_next_time(schedule.cron, timezone.now())
    rules = read_rules(schedule.rules, location="The rules") if schedule.rules.strip() else None
    if rules and rules.changes and not schedule.baseline:
        raise BenchbenchError("The rules compare with a baseline (against_baseline): name one.", field="baseline")
    if not schedule.enabled:
        return  # a baseline, engine, address or right that is gone must not keep anybody from this
    try:
        require_engines(schedule.benchmark)
    except EngineError as error:
        raise BenchbenchError(f"The benchmark cannot be repeated. {error.message}", field="benchmark") from None
    if refusal := find_refusal(schedule):
        raise BenchbenchError(refusal, field="benchmark")
    if schedule.baseline:
        find_baseline(schedule.baseline, schedule.benchmark.dataset_version.dataset, target=schedule)
    if schedule.notify and not rules:
        sentence = "Notices say that a gate turned, which needs rules: write rules, or leave the notices out."
        raise BenchbenchError(sentence, field="notify")
    if schedule.notify:
        try:
            load_notice_address(schedule.notify)
        except EngineError as error:
            raise BenchbenchError(f"Notices cannot be sent. {error.message}", field="notify") from None


def save_schedule(schedule: Schedule, *, changed: Collection[str] | None = None) -> Schedule:
    """Check and store a new schedule, or the `changed` fields of a stored one. Raises the errors of `check_schedule`.

    A change of another field keeps the next time, which may have come: the repeat still starts.
    """
    check_schedule(schedule)
    fields = None if changed is None else {*changed, "updated_at"}
    if fields is None or fields & TIMES:
        schedule.next_run = find_next_time(schedule.cron, timezone.now()) if schedule.enabled else None
        fields = fields and fields | {"next_run"}
    with referring("The schedule"):
        schedule.save(update_fields=fields)
    return schedule
