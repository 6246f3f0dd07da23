"""Importing a dataset as a frozen version."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.datasets.editing.drafts import write_version
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, check
from apps.datasets.versions import hash_content
from benchbench.database.failures import read_again
from benchbench.decimals import counted, list_some
from benchbench.errors import ConflictError
from benchbench.names import check_name, use_free_name
from benchbench.reading.ids import CHANGED

Outcome = Literal["created", "new version", "unchanged"]


class FrozenError(ConflictError):
    """A dataset of that name is frozen with other content; as a version labelled `free_label` it can be imported."""

    def __init__(self, message: str, *, free_label: str) -> None:
        super().__init__(message, field="version", by_command="--label VERSION")
        self.free_label = free_label


@dataclass(frozen=True)
class DatasetReport:
    """Report of an import. `duplicates` and `dangling` count entries of the source, see `DatasetRecord`."""

    outcome: Outcome
    queries: int
    judgments: int
    duplicates: int
    dangling: int | None
    warnings: tuple[str, ...]

    @property
    def extra_counts(self) -> str:
        """Return the counts of repeated and dangling entries in words: "2 duplicates, 1 dangling reference"."""
        counts = ((self.duplicates, "duplicate"), (self.dangling, "dangling reference"))
        return ", ".join(counted(count, noun) for count, noun in counts if count)

    @property
    def sentences(self) -> list[str]:
        """Return the warnings, and a sentence about repeated and dangling entries."""
        return [*self.warnings, *([f"Also found: {self.extra_counts}."] if self.extra_counts else [])]


@dataclass(frozen=True)
class DatasetImport:
    """The version with the imported content, and the report."""

    version: DatasetVersion
    report: DatasetReport


@transaction.atomic
def import_dataset(
    record: DatasetRecord,
    *,
    name: str | None = None,
    owner: User | None = None,
    description: str = "",
    next_of: Dataset | None = None,
) -> DatasetImport:
    """Import a dataset under `name` (else the name it states) as a frozen version; all of it or nothing.

    A new name makes version 1. Under an existing name of the owner, equal content is recognised and its version is
    returned. Other content becomes the next version if the source has a new version label. Otherwise it raises
    ConflictError, because a frozen version does not change. `next_of` replaces the name: the content becomes the next
    version of that dataset and needs no label, but a given label must be new. The dataset's description, metadata and
    slice definitions are those of the newest version.
    """
    check(record)
    locked, created = Dataset.objects.select_for_update(), False
    if next_of is not None:
        dataset = read_again(locked, _check_unnamed(next_of, name).pk)
    else:
        dataset, created = locked.get_or_create(owner=owner, name=check_name(name or record.name, "dataset"))
    digest = hash_content(record.queries)
    version = None if created else _find_equal(dataset, record, digest, is_next=next_of is not None)
    return _import(dataset, record, digest, version, description)


def _import(
    dataset: Dataset, record: DatasetRecord, digest: str, version: DatasetVersion | None, description: str = ""
) -> DatasetImport:
    """Return `version`, which is equal to the record; without one, the record becomes the next version."""
    outcome: Outcome = "unchanged"
    if version is None:
        version = _write(dataset, record, digest)
        outcome = "created" if version.number == 1 else "new version"
        _describe(dataset, record, description)
    return DatasetImport(version, report_of(record, version, outcome))


def foresee(
    record: DatasetRecord, *, name: str | None = None, owner: User | None = None, next_of: Dataset | None = None
) -> str:
    """Return the effect of importing the record on an existing dataset, in words; "" if it makes a new one.

    Raises the errors of `import_dataset`.
    """
    check(record)
    dataset_name = check_name(name or record.name, "dataset") if next_of is None else ""
    dataset = (
        _check_unnamed(next_of, name) if next_of else Dataset.objects.filter(owner=owner, name=dataset_name).first()
    )
    if dataset is None:
        Dataset.require_distinct(dataset_name, owner=owner)
        return ""
    version = _find_equal(dataset, record, hash_content(record.queries), is_next=next_of is not None)
    if version is not None:
        return f"{version} holds exactly this: importing it changes nothing."
    number = dataset.versions.count() + 1
    label = f" ({record.label})" if record.label else ""
    return f'It becomes version {number}{label} of the dataset "{dataset}".'


def report_of(record: DatasetRecord, version: DatasetVersion, outcome: Outcome) -> DatasetReport:
    """Return the report of a record that `version` holds."""
    return DatasetReport(
        outcome=outcome,
        queries=version.query_count,
        judgments=version.judgment_count,
        duplicates=record.duplicates,
        dangling=record.dangling,
        warnings=list_warnings(record),
    )


def _check_unnamed(next_of: Dataset, name: str | None) -> Dataset:
    if name and name != next_of.name:
        raise DatasetError(f'The next version of "{next_of}" keeps that name: leave out the other name.', field="name")
    return next_of


def _find_equal(dataset: Dataset, record: DatasetRecord, digest: str, *, is_next: bool) -> DatasetVersion | None:
    """Return the frozen version that is equal to the record; None if the record is to be the next version.

    If the user chose it to be the next (`is_next`), it needs no label.
    """
    frozen = list(dataset.versions.filter(frozen_at__isnull=False).order_by("-number"))
    labelled = [version for version in frozen if record.label and version.label == record.label]
    for version in labelled or frozen[:1]:
        if version.content_hash == digest:
            return version
    if frozen and (labelled or not (record.label or is_next)):
        label = f'version "{record.label}"' if record.label else "no version"
        taken, number = {version.label for version in frozen}, frozen[0].number + 1
        free = next(str(free) for free in range(number, number + len(taken) + 1) if str(free) not in taken)
        raise FrozenError(
            f'The dataset "{dataset.name}" is frozen with other content, and the import states {label}: state a new '
            f"version, such as {free}, or choose another name.",
            free_label=free,
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


GARBLED = re.compile(
    "Ã[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|â€|\ufffd"
)  # UTF-8 read as Windows-1252, or lost letters
QUERY_ID = re.compile(r"[A-Za-z]{0,12}[-_.:#]?[0-9]{1,12}")
TOTAL = re.compile("(?:grand )?total|sum|summe|gesamt|average|mean|count|suma|totale", re.IGNORECASE)
SEPARATOR = re.compile(r"[|;,\n]")
HIGH = 4  # a scale of grades without 0, or a grade from TALL, also has documents that hardly are relevant
TALL = 10


def list_warnings(record: DatasetRecord) -> tuple[str, ...]:
    """Return the reader's warnings, then warnings about ids that may be mistyped and queries no search can answer."""
    queries = record.queries
    unjudged = [query.key for query in queries if not query.judgments]
    irrelevant = [q.key for q in queries if q.judgments and all(judgment.grade <= 0 for judgment in q.judgments)]
    counts = Counter(" ".join(query.text.split()).casefold() for query in queries)
    ids = list(_yield_ids(record))
    known_ids = {*ids}
    findings = {
        "Ids that begin or end with white space, which is a part of them": [
            f"{id!a}" for id in ids if id != id.strip()
        ],
        "Ids that a spreadsheet seems to have changed": [id for id in ids if CHANGED.fullmatch(id)],
        "Ids that seem to be of several documents: call their column documents, or choose that under Columns": [
            id for id in ids if _holds_several(id, known_ids)
        ],
        "Queries without a judgment": unjudged,
        "Queries whose judgments are all 0 or less, so that nothing is relevant": irrelevant,
        "Queries whose text looks like an id: if it is one, choose the file with their texts too": _find_ids(queries),
        "Texts that several queries have, each measured by its own judgments": [t for t, n in counts.items() if n > 1],
        "Texts that seem to have lost letters: save the file as UTF-8": [
            q.text for q in queries if GARBLED.search(q.text)
        ],
        "The last query seems to be a row of totals": [q.text for q in queries[-1:] if TOTAL.fullmatch(q.text.strip())],
    }
    grades = {judgment.grade for query in queries for judgment in query.judgments}
    described = (f"{finding}: {list_some(texts)}." for finding, texts in findings.items() if texts)
    return (*record.warnings, *described, *_describe_grades(grades))


def _find_ids(queries: Sequence[QueryRecord]) -> list[str]:
    """Return texts that are numbers, or all if each looks like q_1: some queries are names of products."""
    texts = [query.text.strip() for query in queries]
    return texts if all(map(QUERY_ID.fullmatch, texts)) else [text for text in texts if text.isdecimal()]


def _holds_several(id: str, ids: set[str]) -> bool:
    """Return whether an id is a list: it has a separator that ids rarely have, or a piece that is an id."""
    pieces = [piece.strip() for piece in SEPARATOR.split(id)]
    return len(pieces) > 1 and all(pieces) and (any(mark in id for mark in "|\n") or not ids.isdisjoint(pieces))


def _describe_grades(grades: set[int]) -> list[str]:
    """Return a warning about a scale whose low grades hardly mean relevant."""
    if not grades or not ((min(grades) > 0 and max(grades) >= HIGH and len(grades) > 1) or max(grades) >= TALL):
        return []
    middle = max(grades) // 2 + 1
    return [
        f"Grades go from {min(grades)} to {max(grades)}, and each above 0 counts as relevant in P, R, RR and AP. If "
        f"low ones mean not relevant, lower them in the file, or measure P(rel={middle})@10, for example. A lower "
        "grade never means a better document."
    ]


def _yield_ids(record: DatasetRecord) -> Iterator[str]:
    """Yield the distinct keys of queries and ids of documents and sections."""
    ids = dict.fromkeys(query.key for query in record.queries)
    for judgment in chain.from_iterable(query.judgments for query in record.queries):
        ids |= dict.fromkeys([*judgment.doc_ref.values(), *(judgment.section_refs or ())])
    yield from ids


@transaction.atomic
def ensure_dataset(record: DatasetRecord, *, name: str, source: str, owner: User | None = None) -> DatasetImport:
    """Return the owner's frozen version with the record's content. Import the record if the version does not exist.

    A new dataset is called `name`, with a number if another dataset has that name. `source` names the record's origin
    and is stored as metadata: other content of the same source becomes the next version of its dataset, with the
    record's label if no version has that. Raises the errors of `import_dataset`.
    """
    check(record)
    digest = hash_content(record.queries)
    mine = Dataset.objects.filter(owner=owner)

    def find_or_import(free: str) -> DatasetImport:
        equal = DatasetVersion.objects.filter(dataset__in=mine, content_hash=digest, frozen_at__isnull=False)
        if version := equal.select_related("dataset").order_by("created_at").first():
            return DatasetImport(version, report_of(record, version, "unchanged"))
        of_source = mine.filter(metadata__source=source).order_by("created_at").first()
        dataset = of_source or Dataset.objects.create(owner=owner, name=check_name(free, "dataset"))
        locked = read_again(Dataset.objects.select_for_update(), dataset.pk)
        label = digest[:12] if locked.versions.filter(label=record.label).exists() else record.label or digest[:12]
        labelled = replace(record, label=label, metadata={**record.metadata, "source": source})
        return _import(locked, labelled, digest, _find_equal(locked, labelled, digest, is_next=True))

    return use_free_name(name, [mine], find_or_import)
