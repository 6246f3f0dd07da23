"""A benchmark's outcome for terminals and programs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.template.defaultfilters import filesizeformat

from apps.benchmarks.defining.previewing import Preview
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.benchmarks.progress import metrics_of


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
        lines.append("Missing parts are built first, which takes additional time:")
        lines += [f"{'':4}{build}" for build in planned.builds]
    return "\n".join([*lines, *planned.warnings])


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
