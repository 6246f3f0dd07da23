"""The baseline file of SPEC-002: queries that expect modules, the results of a search, and their quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchbench.busy import clean_line
from benchbench.decimals import counted
from benchbench.ir.measures import Measure, Truths, evaluate
from benchbench.timestamps import timestamp

LIMIT = 10
MEASURES = {
    "precision@3": Measure("P", 3),
    "precision@5": Measure("P", 5),
    "recall@10": Measure("R", 10),
    "mrr": Measure("RR"),
}

SHARED = {"execution": "shared"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One query and its results, best first; with `error` it failed and has no results.

    `expected` and `returned` name modules; `version` may be several, of which one must match. `shared`: the
    milliseconds are a share of the time that several queries took together. The file marks only such times, with
    `execution`.
    """

    query_id: int | str
    query: str
    version: str | Sequence[str] | None
    category: str
    difficulty: str
    expected: Sequence[str]
    returned: Sequence[str]
    milliseconds: float | None
    error: str | None = None
    shared: bool = False


def build_baseline(
    answers: Sequence[Answer], *, when: datetime, search_mode: str, seconds: float | None, limit: int = LIMIT
) -> dict[str, Any]:
    """Return the content of the file. Means are over the queries that did not fail; null if all failed.

    Every measure considers only a query's first `limit` modules.
    """
    details = _list_details(answers, limit)
    valid = [detail["metrics"] for detail in details if detail["metrics"]]
    return {
        "metadata": {
            "timestamp": timestamp(when),
            "total_queries": len(answers),
            "valid_queries": len(valid),
            "failed_queries": len(answers) - len(valid),
            "search_mode": "vector" if search_mode == "dense" else search_mode,
            "limit": limit,
            "execution_time_seconds": seconds,
            **(SHARED if any(answer.shared for answer in answers) else {}),
        },
        "aggregate_metrics": _compute_means(valid),
        "per_category": _average_kinds(details, "category"),
        "per_difficulty": _average_kinds(details, "difficulty"),
        "detailed_results": details,
    }


def build_detail(answer: Answer, *, limit: int = LIMIT) -> dict[str, object]:
    """Return the content of the file for one query."""
    return _list_details([answer], limit)[0]


def name_file(when: datetime) -> str:
    return f"baseline_{when.astimezone(UTC):%Y%m%d_%H%M%S}.json"


def _list_details(answers: Sequence[Answer], limit: int) -> list[dict[str, Any]]:
    truths = Truths.from_grades([dict.fromkeys(answer.expected, 1) for answer in answers])
    values = evaluate(list(MEASURES.values()), truths.grade([answer.returned[:limit] for answer in answers]))
    return [
        {
            "query_id": answer.query_id,
            "query": answer.query,
            "version": answer.version,
            "category": answer.category,
            "difficulty": answer.difficulty,
            "expected_modules": list(answer.expected),
            "returned_modules": list(answer.returned[:limit]),
            "metrics": None if answer.error else dict(zip(MEASURES, column, strict=True)) | _find_places(answer, limit),
            "execution_time_ms": answer.milliseconds,
            **(SHARED if answer.shared else {}),
            "error": answer.error,
        }
        for answer, column in zip(answers, values.T.tolist(), strict=True)
    ]


def _find_places(answer: Answer, limit: int) -> dict[str, int | None]:
    expected = set(answer.expected)
    places = [rank for rank, module in enumerate(answer.returned[:limit], start=1) if module in expected]
    return {
        "hits_in_top_3": sum(rank <= 3 for rank in places),
        "hits_in_top_5": sum(rank <= 5 for rank in places),
        "first_relevant_position": places[0] if places else None,
    }


def _compute_means(metrics: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    return {
        name: math.fsum(values[name] for values in metrics) / len(metrics) if metrics else None for name in MEASURES
    }


def _average_kinds(details: Sequence[Mapping[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    """Return means by kind over the queries that did not fail, with their `count`."""
    groups: dict[str, list[Mapping[str, float]]] = {}
    for of_query in details:
        groups.setdefault(of_query[key] or "unknown", []).extend(filter(None, [of_query["metrics"]]))
    return {kind: {"count": len(group), **_compute_means(group)} for kind, group in sorted(groups.items())}


RULE = "=" * 80
BLOCKS = 24
LABELS = {"precision@3": "Precision@3:", "precision@5": "Precision@5:", "recall@10": "Recall@10:"}
SHORT_NAMES = {"P@3": "precision@3", "P@5": "precision@5", "R@10": "recall@10", "MRR": "mrr"}
DIFFICULTIES = ("easy", "medium", "hard")


def render_opening(title: str, *, source: str, queries: int) -> list[str]:
    """Return the lines above the queries: the title of the run and the source of the queries."""
    return [
        RULE,
        f"{clean_line(title)} Benchmark Runner",
        RULE,
        "",
        f"Loading queries from: {clean_line(source)}",
        f"✓ Loaded {counted(queries, 'query')} successfully",
        "",
        "Starting benchmark execution...",
        "",
    ]


def query_lines(detail: Mapping[str, Any], position: int, total: int, *, noun: str = "module") -> list[str]:
    """Return the lines of entry `position` of the file's `detailed_results`. `noun` names the expected things.

    A failed query has its error in place of time and values.
    """
    number = f"[{position}/{total}] "
    version = detail["version"]
    facts = {
        "Version": version if isinstance(version, str) else " or ".join(version or ()),
        "Category": detail["category"],
        "Difficulty": detail["difficulty"],
    }
    lines = [
        " | ".join(f"{name}: {clean_line(str(value))}" for name, value in facts.items() if value),
        f"Expected: {counted(len(detail['expected_modules']), noun)}",
    ]
    if detail["error"] is not None:
        lines.append(f"✗ Failed: {clean_line(detail['error'])}")
    else:
        took = detail["execution_time_ms"]
        lines.append("✓ Executed" if took is None else f"✓ Executed in {took:.0f}ms{_shared(detail)}")
        metrics = detail["metrics"]
        values = [f"{short}={_value(short, metrics[name])}" for short, name in SHORT_NAMES.items()]
        lines.append("Metrics: " + " | ".join(values))
    indent = " " * len(number)
    return [f'{number}Query: "{clean_line(detail["query"])}"', *(indent + line for line in lines if line), ""]


def render_closing(content: Mapping[str, Any], *, written_to: str = "") -> list[str]:
    """Return the totals of a baseline file: time, means with bars, means by difficulty. Means omit failed queries."""
    about, means = content["metadata"], content["aggregate_metrics"]
    seconds, failed = about["execution_time_seconds"], about["failed_queries"]
    lines = [RULE, "BENCHMARK COMPLETED", RULE, ""]
    lines += [] if seconds is None else [f"Execution Time: {seconds:,.1f} seconds{_shared(about)}"]
    lines.append(f"Total Queries: {about['total_queries']:,}")
    lines += [f"Failed Queries: {failed:,}, not in the means"] if failed else []
    lines += _cut_short(about["limit"])
    lines += ["", "AGGREGATE METRICS:"]
    lines += [
        f"  {label:<13}{_percent(means[name]):>6}  {_bar(means[name])}".rstrip() for name, label in LABELS.items()
    ]
    mrr = means["mrr"]
    lines += [f"  {'Mean MRR:':<13}{'–' if mrr is None else format(mrr, '.3f'):>6}", ""]
    lines += _render_difficulty(content["per_difficulty"])
    lines += [f"Results saved to: {written_to}", ""] if written_to else []
    return [*lines, RULE]


def _value(name: str, value: float) -> str:
    """Return a value as in SPEC-002's example: P@5 with two digits, others with those that they need, at most three."""
    return f"{value:.2f}" if name == "P@5" else str(round(value, 3))


def _shared(timed: Mapping[str, Any]) -> str:
    return f" ({timed['execution']})" if "execution" in timed else ""


def _cut_short(limit: int) -> list[str]:
    """Return the number of a query's considered results in words, if a measure needs more."""
    greatest = max(int(name.partition("@")[2]) for name in LABELS)
    if limit >= greatest:
        return []
    return [f"Results per Query: {limit}; measures at greater cutoffs, up to {greatest}, use no more"]


def _render_difficulty(groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    groups = {name: group for name, group in groups.items() if group["count"]}
    if not groups:
        return []
    names = [name for name in DIFFICULTIES if name in groups] + [name for name in groups if name not in DIFFICULTIES]
    rows = [(clean_line(name).capitalize(), f"({groups[name]['count']})", groups[name]) for name in names]
    widths = max(len(name) for name, _, _ in rows), max(len(count) for _, count, _ in rows)
    return [
        "BY DIFFICULTY:",
        *(
            f"  {name:<{widths[0]}} {count:>{widths[1]}}:  "
            f"P@3={_percent(values['precision@3'])} | P@5={_percent(values['precision@5'])}"
            for name, count, values in rows
        ),
        "",
    ]


def _bar(share: float | None) -> str:
    if share is None:
        return ""
    filled = round(BLOCKS * share)
    return "█" * filled + "░" * (BLOCKS - filled)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
