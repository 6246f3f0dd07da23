"""Reports of a gate's outcome for pull requests and programs. Equal results give equal texts, without times."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from apps.benchmarks.gates.gating import GateResult
from benchbench.ir.gate import CheckReport, Outcome
from benchbench.ir.profiles import Mean
from benchbench.markup import code, text

HEADLINES = {Outcome.PASSED: "Gate passed", Outcome.FAILED: "Gate failed", Outcome.UNDECIDED: "Gate not decided"}


def render_headline(result: GateResult) -> str:
    """Return the verdict in one line: "Gate failed: 2 of 7 checks failed"."""
    checks = [check for verdict in result.verdicts for check in verdict.checks]
    counts = {outcome: sum(check.outcome == outcome for check in checks) for outcome in Outcome}
    phrases = [
        f"{counts[outcome]} {outcome.phrase}" for outcome in (Outcome.FAILED, Outcome.UNDECIDED) if counts[outcome]
    ]
    summary = f"{' and '.join(phrases)}, of {len(checks)} checks" if phrases else f"all {len(checks)} checks"
    return f"{HEADLINES[result.outcome]}: {summary}"


@dataclass(frozen=True)
class RunReport:
    """A run, and the result of each rule."""

    id: UUID
    run_order: int
    label: str
    config: dict[str, Any]
    outcome: Outcome
    checks: list[CheckReport]


@dataclass(frozen=True)
class BenchmarkReference:
    """A benchmark by its id and name."""

    id: UUID
    name: str


@dataclass(frozen=True)
class BaselineReference:
    """The baseline that runs were compared with."""

    id: UUID
    name: str
    run: UUID
    label: str


@dataclass(frozen=True)
class GateReport:
    """The outcome of a gate, and how it came about."""

    outcome: Outcome
    benchmark: BenchmarkReference
    dataset_version: str
    baseline: BaselineReference | None
    alpha: float
    run_selection: Annotated[str, "How the judged runs were chosen."]
    warnings: list[str]
    runs: list[RunReport]


def report_of(result: GateResult) -> GateReport:
    """Return the full result of a gate, for programs."""
    benchmark, baseline = result.benchmark, result.baseline
    return GateReport(
        outcome=result.outcome,
        benchmark=BenchmarkReference(benchmark.pk, benchmark.name),
        dataset_version=str(result.version),
        baseline=None
        if baseline is None
        else BaselineReference(baseline.pk, baseline.name, baseline.run_id, baseline.run.label),
        alpha=result.rules.alpha,
        run_selection=result.run_selection,
        warnings=list(result.warnings),
        runs=[
            RunReport(run.pk, run.run_order, run.label, run.config, verdict.outcome, list(verdict.checks))
            for verdict in result.verdicts
            for run in [verdict.run]
        ],
    )


def describe_means(result: GateResult) -> str:
    """Return a note on the mean of floors whose name does not say it, or "" without floors."""
    if all(floor.mean is not Mean.BENCHMARK for floor in result.rules.floors):
        return ""
    words = "every query weighs its demand" if result.benchmark.means_name else Mean.BENCHMARK.words
    return f"Values are benchmark means unless named otherwise: {words}."


def render_markdown(result: GateResult) -> str:
    """Return a comment for a pull request in Markdown: the verdict, then a table for each run."""
    benchmark, baseline = result.benchmark, result.baseline
    lines = [f"## {text(render_headline(result))}", ""]
    lines.append(f"Benchmark {code(benchmark.name)} on {text(str(result.version))}; {result.run_selection}.")
    if baseline is not None:
        lines.append(
            f"Baseline {code(baseline.name)}: {text(baseline.run.label)} of {code(baseline.run.benchmark.name)}."
        )
    if note := describe_means(result):
        lines.append(note)
    if result.rules.changes:
        lines.append(f"Significant means at α = {result.rules.alpha:g}, shared by every comparison of this gate.")
    lines += [f"Note: {text(warning)}" for warning in result.warnings]
    for verdict in result.verdicts:
        lines += ["", f"### {text(verdict.run.label)}: {verdict.outcome.phrase}", ""]
        lines += ["| check | outcome | wanted | found | queries |", "|---|---|---|---|---:|"]
        lines += [_render_row(check) for check in verdict.checks]
    return "\n".join(lines) + "\n"


def _render_row(check: CheckReport) -> str:
    result = (
        check.observed if not check.note else f"{check.observed}. {check.note}" if check.observed != "–" else check.note
    )
    cells = (check.required, result, "" if check.n is None else f"{check.n:,}")
    outcome = check.outcome if check.outcome == Outcome.PASSED else f"**{check.outcome.phrase}**"
    return f"| {text(check.name)} | {outcome} | {' | '.join(text(cell) for cell in cells)} |"
