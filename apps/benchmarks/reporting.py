"""A benchmark's outcome for terminals and programs."""

from typing import Any

from apps.benchmarks.approximations import ann_text
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.progress import metrics_of


def facts_of(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "benchmark": str(benchmark.pk),
        "name": benchmark.name,
        "status": benchmark.status,
        "runs": [
            {
                "id": str(run.pk),
                "label": run.label,
                "config": run.config,
                "status": run.status,
                "metrics": metrics_of(run),
                "timing": run.timing,
                "failed_queries": run.failed_queries,
                "ann": run.provenance.get("ann"),
                "warnings": run.warnings,
                "error_message": run.error_message or None,
            }
            for run in benchmark.runs.select_related("benchmark__dataset_version")
        ],
    }


def text_of(benchmark: Benchmark) -> str:
    """Return the leaderboard as lines of text, best first by the primary measure."""
    primary = f"ndcg@{benchmark.primary_k}"
    rows = [(metrics_of(run), run) for run in benchmark.runs.select_related("benchmark__dataset_version")]
    rows.sort(key=lambda row: (row[1].status != Run.Status.COMPLETED, -(row[0].get(primary) or 0), row[1].run_order))
    width = max([len(run.label) for _, run in rows], default=10)
    k = benchmark.primary_k
    lines = [f"{benchmark.name}: {benchmark.status}"]
    lines.append(f"{'':4}{'run':{width}}  nDCG@{k:<4} P@{k:<6}  R@{k:<6}  RR       ms/query")
    for place, (metrics, run) in enumerate(rows, start=1):
        if not metrics:
            lines.append(f"{place:>3} {run.label:{width}}  {run.status} {run.error_message}".rstrip())
            continue
        values = [metrics.get(name) for name in (primary, f"precision@{k}", f"recall@{k}", "mrr")]
        numbers = "  ".join("   –    " if value is None else f"{value:<8.4f}" for value in values)
        lines.append(f"{place:>3} {run.label:{width}}  {numbers} {run.timing.get('total_ms', 0):.1f}")
        notes = [ann_text(run.provenance.get("ann")), *run.warnings]
        lines += [f"{'':4}{note}" for note in notes if note]
    return "\n".join(lines)
