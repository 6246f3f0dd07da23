"""The end of a schedule's benchmark: its comparison with the last and the baseline, its gate, and the gate's turn."""

from collections.abc import Iterator
from dataclasses import asdict

from django.db.models import OuterRef
from django.urls import reverse

from apps.operations.models import Status
from apps.operations.workers.limits import limited_transaction
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.measuring.primary import select_facts
from apps.records.models import Baseline, Benchmark, GateState, Notice, Repeat, Run, Schedule
from apps.verdicts.comparing import compare_runs
from apps.verdicts.describing import pick_strongest
from apps.verdicts.gates.baselines import find_baseline
from apps.verdicts.gates.gating import GateResult, gate
from apps.verdicts.gates.reports import render_headline
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.schedules.jobs import filter_ended
from benchbench.database.ordered import update_in_order
from benchbench.decimals import figure, short_signed
from benchbench.errors import BenchbenchError
from benchbench.ir.gate import Outcome
from benchbench.timestamps import timestamp

# An undecided gate keeps its state.
STATES: dict[str, GateState] = {Outcome.PASSED: GateState.GREEN, Outcome.FAILED: GateState.RED}


def end_repeat(repeat_id: str) -> None:
    """Store the result of a repeat whose benchmark has ended, and a notice if its gate has turned.

    One transaction stores both, so a killed worker leaves neither and the sweep tries again. The benchmark of a later
    repeat decides the state: an earlier one that is retried changes only its own result. Raises HeldError.
    """
    with limited_transaction():
        rows = filter_ended().select_related("benchmark__dataset_version__dataset", "benchmark__operation")
        repeat = rows.select_for_update(of=("self",), skip_locked=True).filter(pk=repeat_id).first()
        if repeat is None or repeat.benchmark is None:
            return
        schedules = Schedule.objects.select_related("owner", "benchmark__dataset_version__dataset")
        schedule = repeat.schedule = schedules.select_for_update(of=("self",)).get(pk=repeat.schedule_id)
        result = None
        if repeat.benchmark.status == Status.COMPLETED:
            baseline, sentences = _find_baseline(schedule)
            result, judged = _judge(schedule, repeat.benchmark, baseline)
            sentences += [*judged, *_compare(repeat, repeat.benchmark, baseline)]
        else:
            ending = "failed" if repeat.benchmark.status == Status.FAILED else "was cancelled"
            error = repeat.benchmark.operation.error if repeat.benchmark.operation else ""
            sentences = [f"The benchmark {ending}.", *filter(None, [error])]
        repeat.outcome = (result.outcome if result else Outcome.UNDECIDED) if schedule.rules.strip() else ""
        repeat.ended_at, repeat.result = repeat.benchmark.completed_at, " ".join(sentences)
        if state := _find_turn(schedule, repeat):
            repeat.turned = state
            if schedule.notify:  # a notice that was not delivered must not arrive after this one
                waiting = Notice.objects.filter(repeat__schedule=schedule, due_at__isnull=False)
                update_in_order(waiting, due_at=None, error="The gate turned again first.")
                payload = _build_payload(repeat, repeat.benchmark, result)
                Notice.objects.create(
                    repeat=repeat, destination=schedule.notify, payload=payload, due_at=repeat.ended_at
                )
        repeat.save(update_fields=["outcome", "turned", "ended_at", "result"])


def _find_turn(schedule: Schedule, repeat: Repeat) -> str:
    """Store the state of the gate, and return it if it turned, else "". The first state is a turn only if it is red."""
    before, state = schedule.state, STATES.get(repeat.outcome)
    later = schedule.repeats.filter(due_at__gt=repeat.due_at, ended_at__isnull=False)
    if state is None or state == before or later.exists():
        return ""
    Schedule.objects.filter(pk=schedule.pk).update(state=state)
    return state if before or state == GateState.RED else ""


def _find_baseline(schedule: Schedule) -> tuple[Baseline | None, list[str]]:
    """Return the schedule's current baseline, or None and a sentence if it is gone."""
    if not schedule.baseline:
        return None, []
    try:
        return find_baseline(schedule.baseline, schedule.benchmark.dataset_version.dataset, target=schedule), []
    except BenchbenchError as error:
        return None, [error.message]


def _judge(schedule: Schedule, benchmark: Benchmark, baseline: Baseline | None) -> tuple[GateResult | None, list[str]]:
    """Return the result of the gate and a sentence; None without rules, or if the gate cannot judge."""
    if not schedule.rules.strip():
        return None, []
    try:
        rules = read_rules(schedule.rules, location="The rules")
        result = gate(benchmark, rules=rules, baseline=baseline, by=schedule.owner)
    except BenchbenchError as error:
        return None, [f"The gate cannot be decided. {error.message}"]
    missed = ", ".join(check.name for verdict in result.verdicts for check in verdict.missed)
    return result, [f"{render_headline(result)}{f' ({missed})' if missed else ''}."]


def _compare(repeat: Repeat, benchmark: Benchmark, baseline: Baseline | None) -> Iterator[str]:
    """Yield a sentence on the difference from the schedule's last completed benchmark, and one on the baseline."""
    completed = repeat.schedule.repeats.filter(due_at__lt=repeat.due_at, benchmark__status=Status.COMPLETED)
    last = completed.values_list("benchmark", flat=True).first() or repeat.schedule.benchmark_id
    before = Benchmark.objects.annotate(facts=select_facts(run__benchmark=OuterRef("pk"))).get(pk=last)
    if before.facts:
        yield _describe_change(benchmark, Run.objects.get(pk=before.facts["run"]), f"the last, “{before}”")
    if baseline:
        yield _describe_change(benchmark, baseline.run, f"the baseline “{baseline.name}”")


def _describe_change(benchmark: Benchmark, reference: Run, name: str) -> str:
    """Return how the best run differs from a reference. All runs are one family: their values choose the best."""
    runs, _ = choose_alternatives(benchmark.runs.filter(status=Run.Status.COMPLETED).exclude(pk=reference.pk))
    try:
        comparison = compare_runs(pick_strongest([*runs, reference], baseline=reference), baseline=reference)
    except BenchbenchError as error:
        return f"Against {name}: cannot be compared. {error.message}"
    best = next(run for run in comparison.order if run != comparison.reference)
    means = comparison.comparison.means
    change = f"{figure(means[best])} {comparison.title}, {short_signed(means[best] - means[comparison.reference])}"
    label = f"{comparison.runs[best].label}: " if len(comparison.runs) > 2 else ""
    return f"Against {name}: {label}{change}, {comparison.verdict.find_standing(best)}."


def _build_payload(repeat: Repeat, benchmark: Benchmark, result: GateResult | None) -> dict[str, object]:
    """Return the content of a notice. The path is below the address of the site, which BenchBench does not know."""
    checks = [asdict(check) for verdict in result.verdicts for check in verdict.missed] if result else []
    return {
        "schedule": {"id": str(repeat.schedule_id), "name": repeat.schedule.name},
        "benchmark": {"id": str(benchmark.pk), "name": benchmark.name},
        "state": repeat.turned,
        "failed": checks,
        "verdict": repeat.result,
        "path": reverse("admin:benchmark_results", args=[benchmark.pk]),
        "ended_at": timestamp(benchmark.completed_at) if benchmark.completed_at else None,
    }
