"""Reports of a gate's outcome for pull requests and programs. Equal results give equal texts, without times."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from django.template.loader import render_to_string

from apps.verdicts.gates.gating import GateResult
from benchbench.ir.gate import CheckReport, Outcome
from benchbench.ir.profiles import Mean

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
    words = {"headline": render_headline(result), "means": describe_means(result), "alpha": f"{result.rules.alpha:g}"}
    return render_to_string("verdicts/gate.md", words | {"result": result})
