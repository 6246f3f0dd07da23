"""Flowbaby's result files, written from measured values, and the comparison of two summaries."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Measure
from benchbench.ir.measures.means import unranked_reason
from benchbench.ir.profiles import Mean, Profile
from benchbench.ir.slices import label_shape
from benchbench.reading.objects import Must, StrictRecord, read_as
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
    """Settings were chosen on the queries that evaluate them."""

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
    """Fields of summary.json other than the figures. None is left out. `timestamp` is UTC in ISO 8601."""

    run_id: str
    timestamp: str
    dataset_id: str
    dataset_version: str
    canonicalization_version: str
    git_sha: str | None = None
    selection_split: str | None = None
    evaluation_split: str | None = None
    duration_ms: int | None = None


def list_measures(cutoffs: Sequence[int]) -> list[Measure]:
    """Return Flowbaby's measures at these cutoffs."""
    return [Measure(name, k) for k in cutoffs for name in ("R", "P", "AP", "nDCG")] + [Measure("RR")]


def build_results(
    queries: Sequence[QueryFigures], *, profile: Profile, cutoffs: Sequence[int], judged: Sequence[int]
) -> dict[str, Any]:
    """Return the content of results.json, keys in its order.

    `queries` are those with judgments. `judged` has the number of judgments of any grade of each query of the dataset,
    which Flowbaby calls positives. Without queries the figures are missing, not zero.
    """
    shape = asdict(label_shape(judged))
    return {
        "relevance_semantics": "filtered",
        "aggregate_metrics": _means(queries, profile.mean),
        "macro_metrics": _means(queries, Mean.MACRO),
        "per_query_metrics": {
            query.key: dict(sorted(query.values.items())) for query in sorted(queries, key=lambda query: query.key)
        },
        "per_slice_metrics": _average_slices(queries, profile),
        "query_count": len(queries),
        "k_values": list(cutoffs),
        "relevance_mode": "binary",
        "label_shape_stats": shape | {"p95": float(shape["p95"])},
        "profile": profile.name,
        "means": {"aggregate_metrics": profile.mean, "macro_metrics": Mean.MACRO, "per_slice_metrics": Mean.MACRO},
    }


def render_markdown(results: Mapping[str, Any]) -> str:
    """Return the content of results.md, from that of results.json."""
    cutoffs = ", ".join(map(str, results["k_values"]))
    shape = [[name, written.format(**results["label_shape_stats"])] for name, written in SHAPE_ROWS.items()]
    blocks = [
        "# Benchmark Results",
        f"{results['query_count']} queries, profile {results['profile']}, k {cutoffs}.",
        "## Label Shape Statistics",
        "Positives are a query's judgments, of any grade.",
        _render_table(["Statistic", "Value"], shape),
        "## Aggregate Metrics",
        _describe_mean(results["means"]["aggregate_metrics"]),
        _render_metrics(results["aggregate_metrics"]),
        "## Macro-Averaged Metrics",
        _describe_mean(results["means"]["macro_metrics"]),
        _render_metrics(results["macro_metrics"]),
        "## Per-Slice Metrics",
        _describe_mean(results["means"]["per_slice_metrics"]),
        _render_slices(results["per_slice_metrics"], list(results["macro_metrics"])),
    ]
    return "\n\n".join(blocks) + "\n"


def build_summary(results: Mapping[str, Any], about: Provenance) -> dict[str, object]:
    """Return the content of summary.json, from that of results.json."""
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
    """Raise SelectionError if settings were chosen on the test split, whose figures would then be too good."""
    if split == "test":
        raise SelectionError(
            "Settings were selected on the test split, which therefore cannot judge them: select on train or "
            "validation.",
            field="selection_split",
        )


def render_json(content: Mapping[str, object]) -> str:
    """Return the text of results.json or summary.json."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _means(queries: Sequence[QueryFigures], mean: Mean) -> dict[str, float]:
    names = sorted(queries[0].values) if queries else []
    n_judgments = [query.n_judgments for query in queries]
    return {
        name: mean.compute(np.array([query.values[name] for query in queries], np.float64), n_judgments)
        for name in names
    }


def _average_slices(queries: Sequence[QueryFigures], profile: Profile) -> dict[str, dict[str, float]]:
    """Return the macro means over the queries of each slice, then their number."""
    members: dict[str, list[QueryFigures]] = {}
    for query in queries:
        for name in profile.find_slices(query.slices):
            members.setdefault(name, []).append(query)
    return {name: _means(inside, Mean.MACRO) | {"query_count": len(inside)} for name, inside in sorted(members.items())}


def _describe_mean(name: str) -> str:
    return f"The {name} mean: {Mean(name).words}."


def _render_metrics(metrics: Mapping[str, float]) -> str:
    return _render_table(["Metric", "Value"], [[name.title(), f"{value:.4f}"] for name, value in metrics.items()])


def _render_slices(slices: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> str:
    return _render_table(
        ["Slice", "Query Count", *(name.title() for name in names)],
        [
            [name, str(figures["query_count"]), *(f"{figures[measure]:.4f}" for measure in names)]
            for name, figures in slices.items()
        ],
    )


def _render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_escape_cell(cell) for cell in line)} |" for line in lines)


def _escape_cell(text: str) -> str:
    """Return a name as a cell of a Markdown table, on one line and with escaped bars."""
    return " ".join(text.split()).replace("|", "\\|")


# These must be equal in both: only then are the figures about the same queries, judgments and ids.
SAME = {
    "dataset_id": "datasets",
    "dataset_version": "versions of the dataset",
    "canonicalization_version": "versions of the canonical ids",
    "evaluation_split": "splits",
}


class IncomparableSummariesError(BenchbenchError):
    """Two summaries have figures about different data."""

    code = "incomparable"


Number = Annotated[int | float, Must("a number")]


@dataclass(frozen=True, slots=True)
class Summary(StrictRecord):
    """Fields of summary.json that a comparison needs. Only our own files have `execution` and `failed_queries`."""

    IGNORES_OTHERS = True

    run_id: str
    dataset_id: str
    dataset_version: str
    canonicalization_version: str
    metrics: dict[str, Number]
    query_count: Number | None = None
    duration_ms: Number | None = None
    failed_queries: Any = None
    evaluation_split: Any = None
    profile: Any = None
    git_sha: Any = None
    execution: Any = None


def read_summary(path: Path) -> Summary:
    """Return the fields of a summary.json. Errors name the file and the key."""
    return read_as(Summary, read_value(path), prefix=f"{path.name}, ")


def compare_summaries(before: Summary, after: Summary) -> dict[str, object]:
    """Return the changes between two summaries; warnings name other causes of a difference than the program.

    Raises IncomparableSummariesError if dataset, canonical ids, split or profile differ.
    """
    same = dict(SAME)
    if before.profile and after.profile:  # which Flowbaby's own program does not write
        same["profile"] = "aggregation profiles"
    differences = [
        f"The files have different {aspect}: {getattr(before, key)!r} and {getattr(after, key)!r}."
        for key, aspect in same.items()
        if getattr(before, key) != getattr(after, key)
    ]
    if differences:
        raise IncomparableSummariesError(" ".join(differences))
    names = dict.fromkeys([*before.metrics, *after.metrics])
    measures = {name: change(before.metrics.get(name), after.metrics.get(name)) for name in names}
    return {
        "dataset_version": f"{before.dataset_id} {before.dataset_version}",
        "runs": [{"id": side.run_id, "git_sha": side.git_sha, "execution": side.execution} for side in (before, after)],
        "duration_ms": change(before.duration_ms, after.duration_ms),
        "measures": measures,
        "warnings": _warnings(
            before, after, [name for name, values in measures.items() if values["difference"] is None]
        ),
    }


def change(before: float | None, after: float | None) -> dict[str, float | None]:
    """Return a figure in two summaries or runs, and the difference; None if one of them lacks it."""
    difference = None if before is None or after is None else after - before
    return {"before": before, "after": after, "difference": difference}


def _warnings(before: Summary, after: Summary, lonely: list[str]) -> list[str]:
    warnings = []
    if before.query_count != after.query_count:
        counts = f"{before.query_count} and {after.query_count}"
        warnings.append(f"The files count {counts} queries, so missing queries may cause the difference.")
    for side in (before, after):
        if isinstance(side.query_count, int) and isinstance(side.failed_queries, int):
            reason = unranked_reason(counted=side.query_count, failed=side.failed_queries, unsearched=0)
            warnings += [f"{side.run_id}: {reason}"] if reason else []
    if lonely:
        warnings.append(f"Only one of the files has {', '.join(lonely)}.")
    return warnings
