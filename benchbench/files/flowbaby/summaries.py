"""Comparing two summary.json of Flowbaby, made by two versions of a program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.files.errors import FileFormatError
from benchbench.ir.losses import why_unranked
from benchbench.reading.strict_json import read_value

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
