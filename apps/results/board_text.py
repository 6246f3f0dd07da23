"""The outcome of a benchmark, for terminals and programs."""

from collections.abc import Iterator
from typing import Any

from apps.benchmarks.measuring.approximations import ann_of, ann_text
from apps.benchmarks.models import Benchmark
from apps.benchmarks.running.timing import shared_mark
from apps.benchmarks.runs import shared_warnings
from apps.results.leaderboard.runs import Row, leaderboard

TOLD = ("id", "label", "config", "status", "timing", "failed_queries", "unranked", "ann", "warnings", "error_message")


def facts_of(benchmark: Benchmark) -> dict[str, Any]:
    """Return the benchmark and its runs in run order, as commands write JSON."""
    return {
        "benchmark": str(benchmark.pk),
        "name": benchmark.name,
        "status": benchmark.status,
        "runs": [_facts(row) for row in sorted(leaderboard(benchmark).rows, key=lambda row: row.run.run_order)],
    }


def _facts(row: Row) -> dict[str, Any]:
    facts, index = row.facts, row.run.index
    picked = {name: facts[name] for name in TOLD}
    return {**picked, "index": str(index) if index else None, "metrics": facts["metrics_flat"]}


def text_of(benchmark: Benchmark) -> str:
    """Return the leaderboard as lines of text, best first by the primary measure; equal means share a rank, as `1=`.

    The column `run` is the number that commands take as `--run N` and `BENCHMARK:N`.
    """
    board, k = leaderboard(benchmark), benchmark.primary_k
    runs = [row.run for row in board.rows]
    width = max([len(run.label) for run in runs], default=10)
    searched = sorted({str(run.index) for run in runs if run.index})
    about = f"{benchmark.name}: {benchmark.status}" + (f", index {', '.join(searched)}" if searched else "")
    head = f"rank  run  {'label':{width}}  nDCG@{k:<4} P@{k:<6}  R@{k:<6}  RR       ms/query{shared_mark(runs)}"
    shared = shared_warnings(runs)
    measures = (board.primary, f"P@{k}", f"R@{k}", "RR")
    lines = [line for row in board.rows for line in _lines(row, measures, width, shared)]
    # Benchmark means, of a run's three: see docs/measures.md.
    return "\n".join([f"{about}; benchmark means", head, *lines, *(f"Every run: {warning}" for warning in shared)])


def _lines(row: Row, measures: tuple[str, ...], width: int, shared: list[str]) -> Iterator[str]:
    """Yield the line of a run, and what is to be known of it alone."""
    run, final = row.run, {} if row.provisional else row.values
    rank = f"{row.rank}{'=' * row.tied}" if row.rank and final else "–"
    head = f"{rank:>4}  {run.run_order:>3}  {run.label:{width}}"
    if not final:
        yield f"{head}  {run.status} {run.error_message}".rstrip()
        return
    values = [final.get(name) for name in measures]
    numbers = "  ".join("   –    " if value is None else f"{value:<8.4f}" for value in values)
    ms = run.timing.get("total_ms")
    yield f"{head}  {numbers} {'–' if ms is None else f'{ms:.1f}'}"
    notes = [
        row.unranked,
        ann_text(ann_of(run, row.truth)),
        *(warning for warning in run.warnings if warning not in shared),
    ]
    yield from (f"{'':11}{note}" for note in notes if note)
