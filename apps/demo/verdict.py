"""The verdict of the demo: each reranked run beside the same run without reranking."""

from apps.benchmarks.models import Benchmark, Run
from apps.results.exporters.results_json import run_results
from benchbench.decimals import signed


def reranking_verdict(benchmark: Benchmark) -> str:
    """Return a line for each completed run that has a reranked twin, and what it gains and costs; "" if none has."""
    runs = benchmark.runs.filter(status=Run.Status.COMPLETED).select_related("benchmark__dataset_version")
    plain = {_rest(run): run for run in runs if not run.config["use_reranker"]}
    primary = f"ndcg@{benchmark.primary_k}"
    lines = []
    for run in runs:
        twin = plain.get(_rest(run)) if run.config["use_reranker"] else None
        if twin is None:
            continue
        told = [run_results(either) for either in (twin, run)]
        if lost := [f"{one.label}: {one.unranked}" for one in told if one.unranked]:
            lines += [f"  {sentence}" for sentence in lost]
            continue
        before, after = (one.metrics_flat[primary] or 0 for one in told)
        ms = run.timing["total_ms"] - twin.timing["total_ms"]
        gain = f"{before:.4f} → {after:.4f} ({signed(after - before)})"
        lines.append(f"  {twin.label}: {gain}, {signed(ms, 0)} ms a query")
    head = f"What reranking changed in nDCG@{benchmark.primary_k}; its page says whether that is more than luck:"
    return "\n".join([head, *lines]) if lines else ""


def _rest(run: Run) -> tuple[tuple[str, str], ...]:
    """What a configuration is, but for its reranking."""
    return tuple(sorted((key, str(value)) for key, value in run.config.items() if "rerank" not in key))
