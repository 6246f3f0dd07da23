"""The outcome of a gate for pull requests and programs. Equal results give equal texts: no clock, no machine."""

from dataclasses import asdict
from typing import Any

from apps.benchmarks.gates.gating import GateResult, RunVerdict
from benchbench.ir.gate import Check, Outcome
from benchbench.ir.profiles import Mean
from benchbench.markdown import code, text
from benchbench.reading.strict_json import attributes

HEADLINES = {Outcome.PASSED: "Gate passed", Outcome.FAILED: "Gate failed", Outcome.UNDECIDED: "Gate not decided"}


def headline(result: GateResult) -> str:
    """Return the verdict in a line: "Gate failed: 2 of 7 checks failed"."""
    checks = [check for verdict in result.verdicts for check in verdict.checks]
    counts = {outcome: sum(check.outcome == outcome for check in checks) for outcome in Outcome}
    parts = [f"{counts[outcome]} {outcome}" for outcome in (Outcome.FAILED, Outcome.UNDECIDED) if counts[outcome]]
    told = f"{' and '.join(parts)}, of {len(checks)} checks" if parts else f"all {len(checks)} checks"
    return f"{HEADLINES[result.outcome]}: {told}"


def facts_of(result: GateResult) -> dict[str, Any]:
    """Return everything that came of a gate, for programs."""
    baseline = result.baseline
    return {
        "outcome": _word(result.outcome),
        "benchmark": {"id": str(result.benchmark.pk), "name": result.benchmark.name},
        "dataset_version": str(result.benchmark.dataset_version),
        "baseline": baseline
        and {"id": str(baseline.pk), "name": baseline.name, "run": str(baseline.run_id), "label": baseline.run.label},
        "alpha": result.rules.alpha,
        "chosen": result.chosen,
        "warnings": list(result.warnings),
        "runs": [_run_facts(verdict) for verdict in result.verdicts],
    }


def means_told(result: GateResult) -> str:
    """Say which mean a floor is on whose name says none; "" where no floor is."""
    if all(floor.mean is not Mean.BENCHMARK for floor in result.rules.floors):
        return ""
    return f"A value is the benchmark mean, unless its name says another: {Mean.BENCHMARK.words}."


def _run_facts(verdict: RunVerdict) -> dict[str, Any]:
    return {
        "id": str(verdict.run.pk),
        **attributes(verdict.run, "run_order", "label", "config"),
        "outcome": _word(verdict.outcome),
        "checks": [{**asdict(check), "outcome": _word(check.outcome)} for check in verdict.checks],
    }


def _word(outcome: Outcome) -> str:
    """Return `passed`, `failed` or `undecided`: programs compare a word, pages show a phrase."""
    return outcome.name.lower()


def markdown_of(result: GateResult) -> str:
    """Return a comment for a pull request: the verdict first, then a table for each run."""
    benchmark, baseline = result.benchmark, result.baseline
    lines = [f"## {text(headline(result))}", ""]
    lines.append(f"Benchmark {code(benchmark.name)} on {text(str(benchmark.dataset_version))}; {result.chosen}.")
    if baseline is not None:
        lines.append(
            f"Baseline {code(baseline.name)}: {text(baseline.run.label)} of {code(baseline.run.benchmark.name)}."
        )
    if told := means_told(result):
        lines.append(told)
    if result.rules.changes:
        lines.append(f"Significant means at α = {result.rules.alpha:g}, shared by every comparison of this gate.")
    lines += [f"Note: {text(warning)}" for warning in result.warnings]
    for verdict in result.verdicts:
        lines += ["", f"### {text(verdict.run.label)}: {verdict.outcome}", ""]
        lines += ["| check | outcome | wanted | found | queries |", "|---|---|---|---|---:|"]
        lines += [_row(check) for check in verdict.checks]
    return "\n".join(lines) + "\n"


def _row(check: Check) -> str:
    result = check.found if not check.note else f"{check.found}. {check.note}" if check.found != "–" else check.note
    cells = (check.wanted, result, "" if check.n is None else f"{check.n:,}")
    outcome = check.outcome if check.outcome == Outcome.PASSED else f"**{check.outcome}**"
    return f"| {text(check.name)} | {outcome} | {' | '.join(text(cell) for cell in cells)} |"
