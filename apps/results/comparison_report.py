"""Comparisons of runs, or of two summaries, for terminals and programs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from apps.benchmarks.models import Run
from apps.benchmarks.running.timing import cost_ms, execution_of
from apps.results.comparison.comparing import Described, RunComparison, compare_runs, described
from apps.results.comparison.sentences import about, verdict_sentence
from apps.results.exporters.flowbaby import git_sha
from benchbench.decimals import signed
from benchbench.files.flowbaby.summaries import Change, SummaryComparison
from benchbench.ir.measures import Measure
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.significance import Pair


def compare_pair(before: Run, after: Run) -> dict[str, Any]:
    """Return how `after` stands to `before`, as plain facts: means over the queries that both answered, so that each
    difference, `after` − `before`, is that of the two means beside it.

    Raises IncomparableError or ComparingError, as `compare_runs` does.
    """
    comparison = compare_runs([before, after], baseline=before)
    runs = [comparison.runs.index(run) for run in (before, after)]
    pair = comparison.comparison.pair(runs[1], runs[0])
    return {
        "verdict": verdict_sentence(comparison),
        "about": about(comparison),
        "dataset_version": str(comparison.version),
        "runs": [_run_facts(run, comparison.labels[place]) for run, place in zip((before, after), runs, strict=True)],
        "duration_ms": _change(*map(cost_ms, (before, after))),
        "primary": {
            "measure": comparison.measure,
            "queries": comparison.comparison.n,
            **_pair_facts(pair),
        },
        "measures": {
            row.measure: {
                **dict(zip(("before", "after"), _means(comparison, row.measure, runs), strict=True)),
                "difference": row.differences[runs[1]].mean,
                "interval": _interval(row.differences[runs[1]].interval),
            }
            for row in described(comparison)
        },
        "warnings": comparison.comparability.warnings,
    }


def comparison_facts(comparison: RunComparison) -> dict[str, Any]:
    """Return runs held against each other as plain facts, in the words of `compare_pair`; measures as on the wire.

    A difference is `run` − `against`, which is the reference where that is one of the two.
    """
    statistics, reference = comparison.comparison, comparison.reference
    ids = [str(run.pk) for run in comparison.runs]
    pairs = [pair.reversed if pair.first == reference else pair for pair in statistics.pairs]
    return {
        "verdict": verdict_sentence(comparison) if comparison.tested else None,
        "tested": comparison.tested,
        "about": about(comparison),
        "dataset_version": str(comparison.version),
        "measure": Measure.parse(comparison.measure).wire,
        "slice": comparison.slice and comparison.slice.name,
        "queries": statistics.n,
        "seed": statistics.seed,
        "alpha": statistics.alpha,
        "baseline": None if statistics.baseline is None else ids[statistics.baseline],
        "reference": ids[reference],
        "runs": [_compared_run_facts(comparison, place) for place in comparison.order],
        "differences": [
            {"run": ids[pair.first], "against": ids[pair.second], **_pair_facts(pair, tested=comparison.tested)}
            for pair in pairs
        ],
        "measures": {Measure.parse(row.measure).wire: _described_facts(row, ids) for row in described(comparison)},
        "warnings": comparison.comparability.warnings,
    }


def _compared_run_facts(comparison: RunComparison, place: int) -> dict[str, Any]:
    run = comparison.runs[place]
    return _run_facts(run, comparison.labels[place]) | {
        "benchmark_id": str(run.benchmark_id),
        "duration_ms": cost_ms(run),
        "mean": comparison.comparison.means[place],
        "standing": comparison.standing(place) if comparison.tested else None,
    }


def _described_facts(row: Described, ids: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"run": run, "mean": mean, "difference": change.mean, "interval": _interval(change.interval)}
        for run, mean, change in zip(ids, row.means, row.differences, strict=True)
    ]


def _pair_facts(pair: Pair, *, tested: bool = True) -> dict[str, Any]:
    """What came of a pair. A p of what is not tested would be read as if it were."""
    return {
        "difference": pair.difference,
        "interval": _interval(pair.interval),
        "simultaneous": _interval(pair.simultaneous) if tested else None,
        "p": pair.p_adjusted if tested else None,
        "significant": pair.significant if tested else None,
        "effect": pair.effect,
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
    }


def summary_facts(comparison: SummaryComparison) -> dict[str, Any]:
    """Return a comparison of two summaries as plain facts, in the words of `compare_pair`."""
    return {
        "dataset_version": comparison.dataset,
        "runs": [
            {"id": run, "git_sha": sha, "execution": execution}
            for run, sha, execution in zip(comparison.runs, comparison.git_shas, comparison.executions, strict=True)
        ],
        "duration_ms": _change(comparison.duration.before, comparison.duration.after),
        "measures": {metric.name: _change(metric.before, metric.after) for metric in comparison.metrics},
        "warnings": comparison.warnings,
    }


def text_of(facts: dict[str, Any]) -> str:
    """Return such facts as lines of text: the verdict where something was tested, then a table."""
    lines = [facts["verdict"]] if "verdict" in facts else []
    lines += [*facts.get("about", []), f"Dataset {facts['dataset_version']}."]
    for name, run in zip(("A", "B"), facts["runs"], strict=True):
        timed = run["execution"] and f"times {run['execution']}"
        parts = [run.get("label"), run["id"], f"git {run['git_sha'] or 'unknown'}", timed]
        lines.append(f"{name}: {', '.join(part for part in parts if part)}")
    lines += ["", _row("", "A", "B", "B − A")]
    for name, row in facts["measures"].items():
        lines.append(_row(name, *(_value(row[key]) for key in ("before", "after")), _signed(row)))
    took = facts["duration_ms"]
    seconds = ["–" if took[key] is None else f"{took[key] / 1000:,.1f} s" for key in ("before", "after")]
    change = "–" if took["difference"] is None else f"{signed(took['difference'] / 1000, 1)} s"
    lines.append(_row("duration", *seconds, change))
    return "\n".join([*lines, *(f"Note: {warning}" for warning in facts["warnings"])])


def _means(comparison: RunComparison, measure: str, runs: list[int]) -> list[float | None]:
    values = comparison.values[measure][runs][:, comparison.members]
    both = values[:, ~np.isnan(values).any(axis=0)]
    return both.mean(axis=1).tolist() if both.size else [None, None]


def _run_facts(run: Run, label: str) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "label": label,
        "benchmark": run.benchmark.name,
        "config": run.config,
        "git_sha": git_sha(run),
        "failed_queries": run.failed_queries,
        "execution": execution_of(run.benchmark, cost_ms(run)),
    }


def _change(before: float | None, after: float | None) -> dict[str, float | None]:
    change = Change(name="", before=before, after=after)
    return {"before": before, "after": after, "difference": change.difference}


def _interval(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _row(*cells: str) -> str:
    name, before, after, change = cells
    return f"{name:16}{before:>12}{after:>12}  {change}".rstrip()


def _value(number: float | None) -> str:
    return "–" if number is None else f"{number:z.4f}"


def _signed(change: dict[str, Any]) -> str:
    if change["difference"] is None:
        return "–"
    interval = change.get("interval")
    between = f" [{signed(interval[0])}, {signed(interval[1])}]" if interval else ""
    return f"{signed(change['difference'])}{between}"
