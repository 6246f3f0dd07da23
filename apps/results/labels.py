"""Labels of runs that stand beside each other: their differences in a few words."""

from collections import Counter
from collections.abc import Sequence

from apps.benchmarks.models import Run
from apps.results.configurations import phrases, varying


def distinct_labels(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run, no two alike: "hybrid · reranked"; where that is not enough, with its benchmark."""
    differ = varying(run.config for run in runs)
    labels = [" · ".join(phrases(run.config, differ)) or run.label for run in runs]
    for more in (lambda run: f' of "{run.benchmark}"', lambda run: f", run {run.run_order}", lambda run: f" {run.pk}"):
        counts = Counter(labels)
        labels = [label + (more(run) if counts[label] > 1 else "") for label, run in zip(labels, runs, strict=True)]
    return labels
