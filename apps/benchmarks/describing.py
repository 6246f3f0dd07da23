"""Facts of benchmarks and runs; texts, JSON and events each pick from those of a run."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.benchmarks.measuring.losses import ann_of
from apps.benchmarks.models import Benchmark, Run
from benchbench.ir.measures import Measure
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import run_label
from benchbench.reading.strict_json import attributes

GROUPED = ("ndcg", "precision", "recall")


def with_run_counts(benchmarks: QuerySet[Benchmark]) -> QuerySet[Benchmark]:
    """Give each benchmark `completed_runs` and `failed_runs`; what only its own page needs is left unread."""
    counts = {
        f"{status}_runs": Count("runs", filter=Q(runs__status=status))
        for status in (Run.Status.COMPLETED.value, Run.Status.FAILED.value)
    }
    return benchmarks.annotate(**counts).defer("matrix")


def run_facts(run: Run, means: Mapping[str, float | None], truth: str = "") -> dict[str, Any]:
    """Return what may be told of a run: its own columns, and its `means`, by measure, where they are final.

    `truth`: the hash of what these were measured by.
    """
    metrics = flat(means)
    return {
        "id": str(run.pk),
        **attributes(run, "run_order", "label", "config", "config_hash"),
        "config_summary": run_label(Configuration.from_dict(run.config)) if run.config else run.label,
        "status": run.status,
        "metrics": nested(metrics),
        "metrics_flat": metrics,
        **attributes(run, "timing", "failed_queries", "warnings"),
        "ann": ann_of(run, truth, means),
        "error_message": run.error_message or None,
    }


def flat(means: Mapping[str, float | None]) -> dict[str, float | None]:
    return {Measure.parse(name).wire: value for name, value in means.items()}


def nested(metrics: dict[str, float | None]) -> dict[str, Any]:
    """Return flat wire metrics with those of the usual families grouped: {"ndcg": {"10": …}, "mrr": …}.

    Any other keeps its own name, `Judged@10`.
    """
    result: dict[str, Any] = {}
    for name, value in metrics.items():
        base, _, cutoff = name.partition("@")
        if base in GROUPED:
            result.setdefault(base, {})[cutoff] = value
        else:
            result[name] = value
    return result
