"""Flowbaby's files of results, of values measured anywhere, and comparing two of its summaries."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchbench.errors import BenchbenchError, FileFormatError
from benchbench.ir.measures import Measure
from benchbench.ir.measures.means import why_unranked
from benchbench.ir.profiles import Mean, Profile
from benchbench.ir.slices import label_shape
from benchbench.reading.strict_json import attributes, read_value

SHAPE_ROWS = {
    "Min positives": "{min}",
    "Median positives": "{median:.1f}",
    "Mean positives": "{mean:.2f}",
    "P95 positives": "{p95:.1f}",
    "Max positives": "{max}",
    "Queries without positives": "{pct_zero_positives:.1f} %",
    "Queries with 1 positive": "{pct_one_positive:.1f} %",
    "Queries with 2 or more": "{pct_two_plus_positives:.1f} %",
}


class SelectionError(BenchbenchError):
    """A choice made on the queries that are to judge it."""

    code = "selection_on_test"


@dataclass(frozen=True, slots=True)
class QueryFigures:
    """One judged query: the slices it states, how many judgments it has, and the value of each measure by wire name."""

    key: str
    slices: Sequence[str]
    n_judgments: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What summary.json says besides the figures; None is left out. `timestamp` is UTC in ISO 8601."""

    run_id: str
    timestamp: str
    dataset_id: str
    dataset_version: str
    canonicalization_version: str
    git_sha: str | None = None
    selection_split: str | None = None
    evaluation_split: str | None = None
    duration_ms: int | None = None


def measures_at(cutoffs: Sequence[int]) -> list[Measure]:
    """Flowbaby's measures at these cutoffs."""
    return [Measure(name, k) for k in cutoffs for name in ("R", "P", "AP", "nDCG")] + [Measure("RR")]


def results(
    queries: Sequence[QueryFigures], *, profile: Profile, cutoffs: Sequence[int], judged: Sequence[int]
) -> dict[str, Any]:
    """The content of results.json, keys in its order.

    `queries` are those with judgments, `judged` how many judgments of any grade each query of the dataset has, which
    Flowbaby calls positives. Without queries there are no figures, rather than zeros.
    """
    shape = asdict(label_shape(judged))
    return {
        "relevance_semantics": "filtered",
        "aggregate_metrics": _means(queries, profile.mean),
        "macro_metrics": _means(queries, Mean.MACRO),
        "per_query_metrics": {
            query.key: dict(sorted(query.values.items())) for query in sorted(queries, key=lambda query: query.key)
        },
        "per_slice_metrics": _per_slice(queries, profile),
        "query_count": len(queries),
        "k_values": list(cutoffs),
        "relevance_mode": "binary",
        "label_shape_stats": shape | {"p95": float(shape["p95"])},
        "profile": profile.name,
        "means": {"aggregate_metrics": profile.mean, "macro_metrics": Mean.MACRO, "per_slice_metrics": Mean.MACRO},
    }


def markdown(results: Mapping[str, Any]) -> str:
    """The content of results.md, from that of results.json."""
    cutoffs = ", ".join(map(str, results["k_values"]))
    shape = [[name, written.format(**results["label_shape_stats"])] for name, written in SHAPE_ROWS.items()]
    parts = [
        "# Benchmark Results",
        f"{results['query_count']} queries, profile {results['profile']}, k {cutoffs}.",
        "## Label Shape Statistics",
        "Positives are a query's judgments, of any grade.",
        _table(["Statistic", "Value"], shape),
        "## Aggregate Metrics",
        _mean_told(results["means"]["aggregate_metrics"]),
        _metrics_table(results["aggregate_metrics"]),
        "## Macro-Averaged Metrics",
        _mean_told(results["means"]["macro_metrics"]),
        _metrics_table(results["macro_metrics"]),
        "## Per-Slice Metrics",
        _mean_told(results["means"]["per_slice_metrics"]),
        _slices_table(results["per_slice_metrics"], list(results["macro_metrics"])),
    ]
    return "\n\n".join(parts) + "\n"


def summary(results: Mapping[str, Any], about: Provenance) -> dict[str, Any]:
    """The content of summary.json, from that of results.json. Raises SelectionError, see `check_selection`."""
    check_selection(about.selection_split)
    content = {
        **attributes(about, "run_id", "timestamp", "git_sha", "dataset_id", "dataset_version"),
        "canonicalization_version": about.canonicalization_version,
        "metrics": results["aggregate_metrics"],
        "k_values": results["k_values"],
        "query_count": results["query_count"],
        "per_slice_metrics": results["per_slice_metrics"],
        "selection_split": about.selection_split,
        "evaluation_split": about.evaluation_split,
        "duration_ms": about.duration_ms,
        "profile": results["profile"],
        "mean": results["means"]["aggregate_metrics"],
    }
    return {key: value for key, value in content.items() if value is not None}


def check_selection(split: str | None) -> None:
    """Raise a SelectionError where settings were chosen on the test split: figures on it would flatter them."""
    if split == "test":
        raise SelectionError(
            "Settings were selected on the test split, so that it cannot judge them: select on train or validation.",
            field="selection_split",
        )


def written(content: Mapping[str, Any]) -> str:
    """The text of results.json or summary.json."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _means(queries: Sequence[QueryFigures], mean: Mean) -> dict[str, float]:
    names = sorted(queries[0].values) if queries else []
    n_judgments = [query.n_judgments for query in queries]
    return {
        name: mean.of(np.array([query.values[name] for query in queries], np.float64), n_judgments) for name in names
    }


def _per_slice(queries: Sequence[QueryFigures], profile: Profile) -> dict[str, dict[str, float]]:
    """Macro means over the queries of each slice, then their number."""
    members: dict[str, list[QueryFigures]] = {}
    for query in queries:
        for name in profile.slices_of(query.slices):
            members.setdefault(name, []).append(query)
    return {name: _means(inside, Mean.MACRO) | {"query_count": len(inside)} for name, inside in sorted(members.items())}


def _mean_told(name: str) -> str:
    return f"The {name} mean: {Mean(name).words}."


def _metrics_table(metrics: Mapping[str, float]) -> str:
    return _table(["Metric", "Value"], [[name.title(), f"{value:.4f}"] for name, value in metrics.items()])


def _slices_table(slices: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> str:
    return _table(
        ["Slice", "Query Count", *(name.title() for name in names)],
        [
            [name, str(figures["query_count"]), *(f"{figures[measure]:.4f}" for measure in names)]
            for name, figures in slices.items()
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    """A name as a cell of a Markdown table: one line, in which no bar ends the cell."""
    return " ".join(text.split()).replace("|", "\\|")


TEXTS = ("run_id", "dataset_id", "dataset_version", "canonicalization_version")
# Must be equal in both: the figures are of the same queries, judgments and ids only then.
SAME = {
    "dataset_id": "datasets",
    "dataset_version": "versions of the dataset",
    "canonicalization_version": "versions of the canonical ids",
    "evaluation_split": "splits",
}


class IncomparableSummariesError(BenchbenchError):
    """Two summaries whose figures are of different things."""

    code = "incomparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One figure in both summaries; None where one of them has not got it."""

    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryComparison:
    """What changed from the first summary to the second. `warnings` name what may move a figure besides the program."""

    runs: tuple[str, str]
    dataset: str
    git_shas: tuple[str | None, str | None]
    executions: tuple[str | None, str | None]  # how times were taken, shared or isolated, which our own files state
    duration: Change  # milliseconds
    metrics: list[Change]
    warnings: list[str]


def read_summary(path: Path) -> dict[str, Any]:
    """Return the content of a summary.json. Raises FileFormatError, which names the file and the key."""
    content = read_value(path)
    if not isinstance(content, dict):
        raise FileFormatError(f"{path.name} is no summary: an object is expected.")
    for key in TEXTS:
        if not isinstance(content.get(key), str):
            raise FileFormatError(f"{path.name}: {key!r} is missing, or is not a text.", field=key)
    metrics = content.get("metrics")
    if not isinstance(metrics, dict) or not all(map(_is_number, metrics.values())):
        raise FileFormatError(f"{path.name}: 'metrics' is missing, or is not an object of numbers.", field="metrics")
    for key in ("duration_ms", "query_count"):
        if content.get(key) is not None and not _is_number(content[key]):
            raise FileFormatError(f"{path.name}: {key!r} is not a number.", field=key)
    return content


def compare_summaries(before: Mapping[str, Any], after: Mapping[str, Any]) -> SummaryComparison:
    """Return what changed. Raises IncomparableSummariesError where dataset, canonical ids, split or
    profile are not the same."""
    same = dict(SAME)
    if before.get("profile") and after.get("profile"):  # which Flowbaby's own program does not state
        same["profile"] = "aggregation profiles"
    differences = [
        f"They are of different {what}: {before.get(key)!r} and {after.get(key)!r}."
        for key, what in same.items()
        if before.get(key) != after.get(key)
    ]
    if differences:
        raise IncomparableSummariesError(" ".join(differences))
    names = dict.fromkeys([*before["metrics"], *after["metrics"]])
    changes = [
        Change(name=name, before=before["metrics"].get(name), after=after["metrics"].get(name)) for name in names
    ]
    return SummaryComparison(
        runs=(before["run_id"], after["run_id"]),
        dataset=f"{before['dataset_id']} {before['dataset_version']}",
        git_shas=(before.get("git_sha"), after.get("git_sha")),
        executions=(before.get("execution"), after.get("execution")),
        duration=Change(name="duration_ms", before=before.get("duration_ms"), after=after.get("duration_ms")),
        metrics=changes,
        warnings=_warnings(before, after, changes),
    )


def _warnings(before: Mapping[str, Any], after: Mapping[str, Any], changes: list[Change]) -> list[str]:
    warnings = []
    if before.get("query_count") != after.get("query_count"):
        counts = f"{before.get('query_count')} and {after.get('query_count')}"
        warnings.append(f"They count {counts} queries, so a query that one of them lacks may make the difference.")
    for content in (before, after):  # `failed_queries` is a key that our own files have
        counted, failed = content.get("query_count"), content.get("failed_queries")
        if isinstance(counted, int) and isinstance(failed, int):
            why = why_unranked(counted=counted, failed=failed, unsearched=0)
            warnings += [f"{content['run_id']}: {why}"] if why else []
    lonely = [change.name for change in changes if change.difference is None]
    if lonely:
        warnings.append(f"Only one of them has {', '.join(lonely)}.")
    return warnings


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
