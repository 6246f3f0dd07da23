"""Importing a dataset as a frozen version."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from apps.datasets.content import content_hash
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.records import DatasetRecord, QueryRecord, check
from apps.datasets.versions import write_version
from benchbench.errors import ConflictError
from benchbench.names import checked_name


@dataclass(frozen=True)
class DatasetReport:
    """What an import did. `duplicates` and `dangling` count what the source states, see `DatasetRecord`."""

    outcome: Literal["created", "new version", "unchanged"]
    queries: int
    judgments: int
    duplicates: int
    dangling: int | None
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DatasetImport:
    """The version that holds what was imported, and how that came."""

    version: DatasetVersion
    report: DatasetReport


@transaction.atomic
def import_dataset(
    record: DatasetRecord, *, name: str | None = None, owner: Any = None, description: str = ""
) -> DatasetImport:
    """Import a dataset under `name` (else the name it states) as a frozen version; all of it or nothing.

    A new name makes version 1. Under a name the owner has already, equal content is recognised and its version
    returned; other content makes the next version where the source states a version label that is new, and is refused
    with `ConflictError` otherwise: a frozen version does not change. What the dataset says about itself (description,
    metadata, slice definitions) is that of the newest version.
    """
    check(record)
    dataset, created = Dataset.objects.select_for_update().get_or_create(
        owner=owner, name=checked_name(name or record.name, "dataset")
    )
    digest = content_hash(record.queries)
    version = None if created else _settled(dataset, record, digest)
    outcome: Literal["created", "new version", "unchanged"] = "unchanged"
    if version is None:
        outcome = "created" if created else "new version"
        version = _write(dataset, record, digest)
        _describe(dataset, record, description)
    return DatasetImport(version, report_of(record, version, outcome))


def report_of(
    record: DatasetRecord, version: DatasetVersion, outcome: Literal["created", "new version", "unchanged"]
) -> DatasetReport:
    """Return the report of a record that `version` holds."""
    return DatasetReport(
        outcome=outcome,
        queries=version.query_count,
        judgments=version.judgment_count,
        duplicates=record.duplicates,
        dangling=record.dangling,
        warnings=warnings_of(record),
    )


def _settled(dataset: Dataset, record: DatasetRecord, digest: str) -> DatasetVersion | None:
    """Return the frozen version that is equal to the record; None where the record is to be the next one."""
    frozen = list(dataset.versions.filter(frozen_at__isnull=False).order_by("-number"))
    labelled = [version for version in frozen if record.label and version.label == record.label]
    for version in labelled or frozen[:1]:
        if version.content_hash == digest:
            return version
    if frozen and (labelled or not record.label):
        stated = f'version "{record.label}"' if record.label else "no version"
        raise ConflictError(
            f'The dataset "{dataset.name}" is frozen with other content, and the import states {stated}: bump the '
            "version (metadata.version of JSON, --label of the command), or choose another name.",
            field="version",
        )
    if dataset.versions.filter(frozen_at__isnull=True).exists():
        raise ConflictError(f'The dataset "{dataset.name}" has a draft with edits: freeze it before importing.')
    return None


def _write(dataset: Dataset, record: DatasetRecord, digest: str) -> DatasetVersion:
    newest = dataset.versions.order_by("-number").first()
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=newest.number + 1 if newest else 1,
        label=record.label,
        content_hash=digest,
        query_count=len(record.queries),
        judgment_count=sum(len(query.judgments) for query in record.queries),
        frozen_at=timezone.now(),
    )
    write_version(version, record.queries)
    return version


def _describe(dataset: Dataset, record: DatasetRecord, description: str) -> None:
    dataset.description = description or record.description or dataset.description
    for name in ("schema_version", "source_format", "metadata", "slice_definitions"):
        setattr(dataset, name, getattr(record, name))
    dataset.save()


def warnings_of(record: DatasetRecord) -> tuple[str, ...]:
    """Return what the reader of a dataset warns of, and then which queries no search can answer."""
    return (*record.warnings, *_unanswerable(record.queries))


def _unanswerable(queries: Sequence[QueryRecord]) -> list[str]:
    unjudged = [query.key for query in queries if not query.judgments]
    irrelevant = [q.key for q in queries if q.judgments and all(judgment.grade <= 0 for judgment in q.judgments)]
    warnings = []
    if unjudged:
        warnings.append(f"Queries without a judgment: {_some(unjudged)}.")
    if irrelevant:
        warnings.append(f"Queries whose judgments are all 0 or less, so that nothing is relevant: {_some(irrelevant)}.")
    return warnings


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:5]) + (f" and {len(keys) - 5:,} more" if len(keys) > 5 else "")
