"""The baseline file of SPEC-002: queries that expect modules, what a search returned, and how good that was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
    """One query and what it returned, best first; with `error` it failed, and what it returned is nothing.

    `expected` and `returned` name modules; `version` may be several, of which one must match. `shared`: the
    milliseconds are not its own, but a share of what several queries took together; the file marks them with
    `execution`, which it has nowhere else.
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


def baseline(
    answers: Sequence[Answer], *, when: datetime, search_mode: str, seconds: float | None, limit: int = LIMIT
) -> dict[str, Any]:
    """The content of the file. Means are over the queries that did not fail; null where all did.

    Of what a query returned only the first `limit` modules are looked at, by every measure.
    """
    valid = [answer for answer in answers if answer.error is None]
    metrics = _metrics(valid, limit)
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
        "aggregate_metrics": _means(metrics),
        "per_category": _by_kind(answers, metrics, [answer.category for answer in answers]),
        "per_difficulty": _by_kind(answers, metrics, [answer.difficulty for answer in answers]),
        "detailed_results": _details(answers, metrics, limit),
    }


def detail(answer: Answer, *, limit: int = LIMIT) -> dict[str, Any]:
    """What the file says of one query."""
    measured = [answer] if answer.error is None else []
    return _details([answer], _metrics(measured, limit), limit)[0]


def file_name(when: datetime) -> str:
    return f"baseline_{when.astimezone(UTC):%Y%m%d_%H%M%S}.json"


def _metrics(answers: Sequence[Answer], limit: int) -> list[dict[str, float]]:
    """The four measures of each query."""
    truths = Truths.of([dict.fromkeys(answer.expected, 1) for answer in answers])
    graded = truths.grade([answer.returned[:limit] for answer in answers])
    values = evaluate(list(MEASURES.values()), graded)
    return [dict(zip(MEASURES, column, strict=True)) for column in values.T.tolist()]


def _means(metrics: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    return {name: math.fsum(of[name] for of in metrics) / len(metrics) if metrics else None for name in MEASURES}


def _by_kind(
    answers: Sequence[Answer], metrics: Sequence[Mapping[str, float]], kinds: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Means by kind over the queries that did not fail, which `count` counts."""
    remaining = iter(metrics)
    groups: dict[str, list[Mapping[str, float]]] = {}
    for answer, kind in zip(answers, kinds, strict=True):
        group = groups.setdefault(kind or "unknown", [])
        if answer.error is None:
            group.append(next(remaining))
    return {kind: {"count": len(group), **_means(group)} for kind, group in sorted(groups.items())}


def _details(answers: Sequence[Answer], metrics: Sequence[Mapping[str, float]], limit: int) -> list[dict[str, Any]]:
    remaining = iter(metrics)
    return [
        {
            "query_id": answer.query_id,
            "query": answer.query,
            "version": answer.version,
            "category": answer.category,
            "difficulty": answer.difficulty,
            "expected_modules": list(answer.expected),
            "returned_modules": list(answer.returned[:limit]),
            "metrics": dict(next(remaining)) | _places(answer, limit) if answer.error is None else None,
            "execution_time_ms": answer.milliseconds,
            **(SHARED if answer.shared else {}),
            "error": answer.error,
        }
        for answer in answers
    ]


def _places(answer: Answer, limit: int) -> dict[str, int | None]:
    places = [rank for rank, module in enumerate(answer.returned[:limit], start=1) if module in set(answer.expected)]
    return {
        "hits_in_top_3": sum(rank <= 3 for rank in places),
        "hits_in_top_5": sum(rank <= 5 for rank in places),
        "first_relevant_position": places[0] if places else None,
    }
