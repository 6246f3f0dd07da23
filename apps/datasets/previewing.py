"""Previews of an import: what it would keep."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from apps.datasets.importing import warnings_of
from apps.datasets.records import DatasetRecord, QueryRecord, check

FIRST = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """What a source states: its counts, the first of its queries, and what looks wrong.

    `grades` counts judgments by grade, `slices` queries by slice; `duplicates` and `dangling` are those of the record.
    """

    name: str
    format: str
    label: str
    queries: int
    judgments: int
    duplicates: int
    dangling: int | None
    grades: Mapping[int, int]
    slices: Mapping[str, int]
    first: tuple[QueryRecord, ...]
    warnings: tuple[str, ...]


def preview(record: DatasetRecord) -> Preview:
    """Return what importing `record` would keep. Raises `DatasetError` for what could not be kept."""
    check(record)
    grades = Counter(judgment.grade for query in record.queries for judgment in query.judgments)
    slices = Counter(name for query in record.queries for name in query.slices)
    return Preview(
        name=record.name,
        format=record.source_format,
        label=record.label,
        queries=len(record.queries),
        judgments=grades.total(),
        duplicates=record.duplicates,
        dangling=record.dangling,
        grades=dict(sorted(grades.items(), reverse=True)),
        slices=dict(sorted(slices.items())),
        first=tuple(record.queries[:FIRST]),
        warnings=warnings_of(record),
    )
