"""Gates: a run, or the best run of a benchmark, judged by written rules and a baseline."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from apps.datasets.models import DatasetVersion
from apps.datasets.versions import find_version
from apps.mappings.truth import hash_truth
from apps.operations.models import Status
from apps.records import comparability
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.measuring.selection import find_selection
from apps.records.models import Baseline, Benchmark, Evaluation, GateOutcome, Run
from apps.verdicts.gates.evidence import (
    Differences,
    Ground,
    MeasuredRun,
    build_evidence,
    compute_differences,
    expect_differences,
)
from benchbench.deleting import referring
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.gate import CheckReport, Outcome, combine, judge
from benchbench.ir.measures import Measure
from benchbench.ir.measures.means import MAX_LOST_PERCENT
from benchbench.ir.rules import Rules


class GateError(BenchbenchError):
    """The gate cannot judge: it has no run, or no suitable baseline."""

    code = "gate"


class GateStateError(GateError, ConflictError):
    """The state of the benchmark or run does not allow a gate."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """A run, and the result of each rule. `doubts` say that its own values, or its being the best, are uncertain."""

    run: Run
    rule_checks: tuple[CheckReport, ...]
    doubts: tuple[CheckReport, ...] = ()

    @property
    def checks(self) -> tuple[CheckReport, ...]:
        return (*self.rule_checks, *self.doubts)

    @property
    def outcome(self) -> Outcome:
        """Return the outcome: a failed rule outranks an undecided one, but says nothing of another run or values."""
        return Outcome.UNDECIDED if self.doubts else combine([check.outcome for check in self.rule_checks])

    @property
    def missed(self) -> list[CheckReport]:
        """Return every check that did not pass."""
        return [check for check in self.checks if check.outcome != Outcome.PASSED]


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate. `run_selection` says how the judged runs were chosen; `warnings` are caveats."""

    benchmark: Benchmark
    version: DatasetVersion
    baseline: Baseline | None
    rules: Rules
    run_selection: str
    warnings: tuple[str, ...]
    verdicts: tuple[RunVerdict, ...]

    @property
    def outcome(self) -> Outcome:
        return combine([verdict.outcome for verdict in self.verdicts])


def gate(
    subject: Run | Benchmark,
    *,
    rules: Rules,
    baseline: Baseline | None = None,
    every_run: bool = False,
    version: int | None = None,
    by: User | None = None,
) -> GateResult:
    """Judge a run by `rules`; for a benchmark its best run by the primary measure, or with `every_run` all runs.

    Stores the outcome for each judged run, with the user `by` who asked. Uses the values on the dataset version of the
    number `version`, by default the benchmark's own, and its policies. Further measures are computed from the stored
    rankings, without searching. If the best run is judged, all alternatives are one family of comparisons, because the
    best was selected by its values. Where a judging round selected the judgments, its verdict decides about the
    differences that it settles. Equal input gives an equal result.

    Runs that did not complete might be the best, so they leave the gate undecided; with `every_run` they fail. Runs
    that lost too many queries to be ranked also leave it undecided. The rule `runs_may_fail` allows both, but a judged
    run that lost too many queries is always undecided.

    Raises GateError without a run to judge, if rules need a baseline and none is given, and for a baseline of another
    dataset. A rule that cannot be decided gives an undecided check, not an error.
    """
    benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
    _require_baseline(benchmark, baseline, rules)
    dataset = benchmark.dataset_version.dataset
    ground = Ground(benchmark, benchmark.dataset_version if version is None else find_version(dataset, version))
    judged, completed, selection = _choose(subject, ground, every_run=every_run)
    unranked = [run for run in completed if run.evaluation.unranked and run not in judged]
    family = [run for run in completed if run not in unranked]
    warnings: tuple[str, ...] = ()
    by_run: dict[UUID, Differences] = {}
    if baseline is not None and rules.changes:
        by_run, warnings = _compare_with_baseline(baseline, ground, judged, family, rules)
    elif selected := find_selection(ground.version, {run.run.pk for run in judged}):
        warnings = (selected.caveat,)
    missing = [] if isinstance(subject, Run) or rules.runs_may_fail else _list_missing(benchmark)
    doubts = [_report_incomplete(benchmark, missing)] if missing and not every_run else []
    doubts += [_report_unranked(unranked)] if unranked and not rules.runs_may_fail else []
    verdicts = [
        RunVerdict(
            run.run,
            tuple(judge(rules, build_evidence(rules, run, by_run.get(run.run.pk, {})))),
            (*_check_losses(run), *doubts),
        )
        for run in judged
    ]
    if every_run:
        verdicts += [_fail_run(run) for run in missing]
    result = GateResult(benchmark, ground.version, baseline, rules, selection, warnings, tuple(verdicts))
    _store(result, by)
    return result


@referring("The outcome of the gate")
def _store(result: GateResult, by: User | None) -> None:
    now, rules = timezone.now(), asdict(result.rules)
    GateOutcome.objects.bulk_create(
        GateOutcome(
            run=verdict.run,
            baseline=result.baseline,
            rules=rules,
            outcome=verdict.outcome,
            checks=[asdict(check) for check in verdict.checks],
            by=by,
            created_at=now,
        )
        for verdict in result.verdicts
    )


def _require_baseline(benchmark: Benchmark, baseline: Baseline | None, rules: Rules) -> None:
    if benchmark.status == Status.RUNNING:
        raise GateStateError(f'The benchmark "{benchmark}" is running: wait until it ends.')
    if baseline is None and rules.changes:
        raise GateError("The rules compare runs with a baseline (against_baseline): choose one.", field="baseline")
    if baseline is not None and baseline.dataset_id != benchmark.dataset_version.dataset_id:
        raise GateError(
            f'The baseline "{baseline.name}" belongs to the dataset {baseline.dataset}, the benchmark to '
            f"{benchmark.dataset_version.dataset}: choose a baseline of that dataset.",
            field="baseline",
        )


def _choose(
    subject: Run | Benchmark, ground: Ground, *, every_run: bool
) -> tuple[list[MeasuredRun], list[MeasuredRun], str]:
    """Return the runs to judge, the runs that are compared as one family, and a description of the choice."""
    if isinstance(subject, Run):
        if subject.status != Run.Status.COMPLETED:
            raise GateStateError(f'The run "{subject}" is {subject.status}: only a completed run can be judged.')
        runs = _load_measured(subject.benchmark.runs.filter(pk=subject.pk), ground)
        return runs, runs, "the given run"
    completed = _load_measured(subject.runs.filter(status=Run.Status.COMPLETED), ground)
    if not completed:
        raise GateStateError(f'No run of the benchmark "{subject}" has completed: run it before you judge it.')
    missing = f" ({statuses})" if (statuses := _describe_statuses(_list_missing(subject))) else ""
    if every_run:
        return completed, completed, f"every run of the benchmark, {subject.total_runs}{missing}"
    primary = str(Measure("nDCG", subject.primary_k))
    chosen, omitted = choose_alternatives(run.run for run in completed)
    alternatives = [run for run in completed if run.run in chosen]
    ranked = [run for run in alternatives if not run.evaluation.unranked] or alternatives
    ids = [run.run.pk for run in ranked]
    means = dict(zip(ids, [_get_mean(run, primary) for run in ranked], strict=True))
    selected = find_selection(ground.version, ids)
    if selected and selected.settles(primary) and ground.weights is None:
        means = {run: state.mean for run, state in zip(ids, selected.list_expected(ids), strict=True)}
    best = max(ranked, key=lambda run: (means[run.run.pk], -run.run.run_order))
    kind = "alternative" if omitted else "completed run"
    choice = f"the best of {len(ranked)} {kind}s by {primary}" if len(ranked) > 1 else f"the only {kind}"
    return [best], alternatives, f"{choice}{missing}"


def _get_mean(run: MeasuredRun, name: str) -> float:
    mean = run.evaluation.means.get(name)
    return -math.inf if mean is None else float(mean)


def _load_measured(runs: QuerySet[Run], ground: Ground) -> list[MeasuredRun]:
    """Return the runs with values on the ground's version, in run order. Raises GateStateError if they are outdated."""
    evaluations = Evaluation.objects.filter(run__in=runs, dataset_version=ground.version)
    ordered = list(evaluations.select_related("run__benchmark").defer("values").order_by("run__run_order"))
    if {evaluation.truth_hash for evaluation in ordered} - {hash_truth(ground.truth)}:
        raise GateStateError(
            f'The mapping "{ground.benchmark.mapping}" was resolved again since "{ground.benchmark}" was measured: '
            f"re-score it on version {ground.version.number} first."
        )
    if len(ordered) < runs.count():
        raise GateStateError(
            f'"{ground.benchmark}" has no values on version {ground.version.number} of its dataset: re-score it first.',
            field="version",
        )
    return [MeasuredRun(ground, evaluation) for evaluation in ordered]


def _compare_with_baseline(
    baseline: Baseline, ground: Ground, judged: Sequence[MeasuredRun], family: Sequence[MeasuredRun], rules: Rules
) -> tuple[dict[UUID, Differences], tuple[str, ...]]:
    """Return the differences of the family from the baseline, or the reason without any; and warnings."""
    comparison = comparability.find_differences([*(run.run for run in judged), baseline.run], version=ground.version)
    if not comparison.comparable:
        return _mark_undecidable(family, rules, " ".join(comparison.refusals)), ()
    benchmark = baseline.run.benchmark
    baseline_ground = ground if benchmark.pk == ground.benchmark.pk else Ground(benchmark, ground.version)
    [measured] = _load_measured(benchmark.runs.filter(pk=baseline.run_id), baseline_ground)
    if refusal := measured.evaluation.unranked:
        return _mark_undecidable(family, rules, f'The baseline "{baseline.name}": {refusal}'), ()
    by_run = compute_differences(rules.changes, family, measured, alpha=rules.alpha, seed=ground.benchmark.seed)
    verdicts = expect_differences(by_run, comparison.selection, judged, baseline, rules)
    notes = [
        f'The run "{run.run.label}" is the baseline itself, so it shows no difference.'
        for run in judged
        if run.run.pk == baseline.run_id
    ]
    return by_run, (*verdicts, *comparison.warnings, *notes)


def _mark_undecidable(family: Sequence[MeasuredRun], rules: Rules, reason: str) -> dict[UUID, Differences]:
    return {run.run.pk: {change.measure: reason for change in rules.changes} for run in family}


def _list_missing(benchmark: Benchmark) -> list[Run]:
    """Return the runs that did not complete, in run order."""
    return list(benchmark.runs.exclude(status=Run.Status.COMPLETED).order_by("run_order"))


def _describe_statuses(runs: Sequence[Run]) -> str:
    """Return the number of runs of each status: "2 failed, 1 cancelled"; "" without runs."""
    counts = Counter(str(run.status) for run in runs)
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def _report_incomplete(benchmark: Benchmark, missing: Sequence[Run]) -> CheckReport:
    runs = benchmark.runs.count()
    note = f"{_describe_statuses(missing)}: the best run may be among them. Retry them, or set runs_may_fail: true."
    return CheckReport("completed runs", "all", f"{runs - len(missing)} of {runs}", Outcome.UNDECIDED, note=note)


def _report_unranked(runs: Sequence[MeasuredRun]) -> CheckReport:
    numbers = ", ".join(str(run.run.run_order) for run in runs)
    note = f"Run {numbers}: too many queries have no value, so the best run may be among these. "
    note += "Retry, or set runs_may_fail: true."
    return CheckReport("ranked runs", "all", f"{len(runs)} not ranked", Outcome.UNDECIDED, note=note)


def _check_losses(run: MeasuredRun) -> list[CheckReport]:
    """Return an undecided check if too few queries of the run have a value; else nothing."""
    row = run.evaluation
    if not row.unranked:
        return []
    required = f"≥ {100 - MAX_LOST_PERCENT} %"
    lost = row.failed_queries + row.unsearched_queries
    observed = f"{row.query_count:,} of {row.query_count + lost:,}"
    return [CheckReport("queries with a value", required, observed, Outcome.UNDECIDED, note=row.unranked)]


def _fail_run(run: Run) -> RunVerdict:
    check = CheckReport("the run", "completed", run.status, Outcome.FAILED, note=run.error_message)
    return RunVerdict(run, (check,))
