"""A benchmark's outcome for terminals and programs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.template.defaultfilters import filesizeformat

from apps.benchmarks.approximations import ann_text
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.benchmarks.previewing import Preview
from apps.benchmarks.progress import metrics_of
from apps.benchmarks.timing import shared_mark


def facts_of(benchmark: Benchmark) -> dict[str, Any]:
    unranked = _unranked(benchmark)
    return {
        "benchmark": str(benchmark.pk),
        "name": benchmark.name,
        "status": benchmark.status,
        "runs": [
            {
                "id": str(run.pk),
                "label": run.label,
                "config": run.config,
                "index": str(run.index) if run.index else None,
                "status": run.status,
                "metrics": metrics_of(run),
                "timing": run.timing,
                "failed_queries": run.failed_queries,
                "unranked": unranked.get(run.pk),
                "ann": run.provenance.get("ann"),
                "warnings": run.warnings,
                "error_message": run.error_message or None,
            }
            for run in benchmark.runs.select_related("benchmark__dataset_version", "index")
        ],
    }


def preview_text(planned: Preview) -> str:
    """Return a preview as lines of text: the distinct work, what it searches, the time and memory that it takes."""
    seconds = f"About {planned.estimate_seconds:,.1f} s with one worker"
    memory = f"{filesizeformat(planned.resident_bytes)} of its memory for the index {', '.join(planned.indexes)}."
    lines = [planned.explanation, f"{seconds}, and {memory}"]
    if planned.builds:
        lines.append("Building what is not there yet comes first, and on top of that time:")
        lines += [f"{'':4}{build}" for build in planned.builds]
    return "\n".join([*lines, *planned.warnings])


def text_of(benchmark: Benchmark) -> str:
    """Return the leaderboard as lines of text, best first by the primary measure.

    The column `run` is the number that commands take as `--run N` and `BENCHMARK:N`.
    """
    primary = f"ndcg@{benchmark.primary_k}"
    rows = [(metrics_of(run), run) for run in benchmark.runs.select_related("benchmark__dataset_version", "index")]
    unranked = _unranked(benchmark)
    rows.sort(
        key=lambda row: (
            row[1].status != Run.Status.COMPLETED,
            row[1].pk in unranked,
            -(row[0].get(primary) or 0),
            row[1].run_order,
        )
    )
    width = max([len(run.label) for _, run in rows], default=10)
    k = benchmark.primary_k
    searched = sorted({str(run.index) for _, run in rows if run.index})
    lines = [f"{benchmark.name}: {benchmark.status}" + (f", index {', '.join(searched)}" if searched else "")]
    lines[0] += "; benchmark means"  # of a run's three, see docs/measures.md
    shared = shared_warnings([run for _, run in rows])
    mark = shared_mark(run for _, run in rows)
    lines.append(f"rank  run  {'label':{width}}  nDCG@{k:<4} P@{k:<6}  R@{k:<6}  RR       ms/query{mark}")
    for place, (metrics, run) in enumerate(rows, start=1):
        ranks = metrics and run.pk not in unranked
        head = f"{place if ranks else '–':>4}  {run.run_order:>3}  {run.label:{width}}"
        if not metrics:
            lines.append(f"{head}  {run.status} {run.error_message}".rstrip())
            continue
        values = [metrics.get(name) for name in (primary, f"precision@{k}", f"recall@{k}", "mrr")]
        numbers = "  ".join("   –    " if value is None else f"{value:<8.4f}" for value in values)
        ms = run.timing.get("total_ms")
        lines.append(f"{head}  {numbers} {'–' if ms is None else f'{ms:.1f}'}")
        own = [warning for warning in run.warnings if warning not in shared]
        notes = [unranked.get(run.pk), ann_text(run.provenance.get("ann")), *own]
        lines += [f"{'':11}{note}" for note in notes if note]
    return "\n".join([*lines, *(f"Every run: {warning}" for warning in shared)])


def shared_warnings(runs: Sequence[Run]) -> list[str]:
    """Return the warnings that each of several completed runs has, which a leaderboard tells once, for all of them."""
    completed = [run for run in runs if run.status == Run.Status.COMPLETED]
    if len(completed) < 2:
        return []
    return [warning for warning in completed[0].warnings if all(warning in run.warnings for run in completed)]


def _unranked(benchmark: Benchmark) -> dict[UUID, str]:
    """Return why runs are not ranked, by run id."""
    found = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=benchmark.dataset_version)
    rows = found.filter(~Evaluation.ranked()).defer("values", "query_ids")
    return {row.run_id: row.unranked for row in rows}
