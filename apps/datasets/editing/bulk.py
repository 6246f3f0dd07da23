"""Bulk edits: many judgments in one act, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.datasets.content import ref_hash
from apps.datasets.editing.judgments import open_draft, states_the_same
from apps.datasets.editing.versions import BATCH, judgment_row
from apps.datasets.finding import find_version
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import GRADES, DatasetError, JudgmentRecord, doc_ref_fault


@dataclass(frozen=True, slots=True)
class JudgmentEdit:
    """What is stated of a document for the query `query_key`; without a judgment, that nobody judged it."""

    query_key: str
    doc_ref: dict[str, Any]
    judgment: JudgmentRecord | None


@dataclass(frozen=True, slots=True)
class BulkEdit:
    """What came of it: judgments by what happened to them, and the version, a draft, that holds the outcome."""

    version: DatasetVersion
    added: int
    changed: int
    removed: int
    unchanged: int


@transaction.atomic
def edit_judgments(dataset: Dataset, edits: Sequence[JudgmentEdit], *, judged_by: Any = None) -> BulkEdit:
    """State judgments in the draft, in a few queries whatever their number; a DatasetError names the row at fault.

    Where nothing changes no draft is opened, and the version is the newest.
    """
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    version = find_version(dataset, edited=True)
    queries = _queries(version, edits)
    before = _current(queries, edits)
    ending: list[Judgment] = []
    new: list[tuple[Query, JudgmentRecord]] = []
    added = unchanged = 0
    for index, edit in enumerate(edits):
        query = queries[edit.query_key]
        stated = before.get((query.pk, ref_hash(edit.doc_ref)))
        if edit.judgment is None and stated is None:
            raise DatasetError(
                f"judgments[{index}]: the query {edit.query_key[:60]!a} has no judgment of that document to take away.",
                field=f"judgments[{index}].doc_ref",
            )
        if stated and edit.judgment and states_the_same(stated, edit.judgment, judged_by):
            unchanged += 1
            continue
        if stated:
            ending.append(stated)
        if edit.judgment:
            added += stated is None
            new.append((query, edit.judgment))
    if ending or new:
        version = open_draft(dataset)
        _write(version, ending, new, judged_by)
    changed = len(new) - added
    return BulkEdit(version, added=added, changed=changed, removed=len(ending) - changed, unchanged=unchanged)


def _queries(version: DatasetVersion, edits: Sequence[JudgmentEdit]) -> dict[str, Query]:
    """Return the queries by key; raise for an edit that is wrong by itself, of no query, or of a document twice."""
    queries = {query.key: query for query in version.queries.filter(key__in={edit.query_key for edit in edits})}
    first: dict[tuple[str, str], int] = {}
    for index, edit in enumerate(edits):
        where = f"judgments[{index}]"
        if edit.query_key not in queries:
            raise DatasetError(
                f'{where}.query_key: the dataset "{version.dataset}" has no query {edit.query_key[:60]!a}.',
                field=f"{where}.query_key",
            )
        if found := doc_ref_fault(edit.doc_ref):
            raise DatasetError(f"{where}.doc_ref {found}.", field=f"{where}.doc_ref")
        if edit.judgment and edit.judgment.grade not in GRADES:
            raise DatasetError(f"{where}: the grade {edit.judgment.grade} is out of range.", field=f"{where}.grade")
        earlier = first.setdefault((edit.query_key, ref_hash(edit.doc_ref)), index)
        if earlier != index:
            raise DatasetError(
                f"{where} speaks of the same query and document as judgments[{earlier}]: state it once.", field=where
            )
    return queries


def _current(queries: dict[str, Query], edits: Sequence[JudgmentEdit]) -> dict[tuple[int, str], Judgment]:
    hashes = {ref_hash(edit.doc_ref) for edit in edits}
    rows = Judgment.objects.filter(query__in=queries.values(), ref_hash__in=hashes, until__isnull=True)
    return {(row.query_id, row.ref_hash): row for row in rows}


def _write(
    draft: DatasetVersion, ending: list[Judgment], new: list[tuple[Query, JudgmentRecord]], judged_by: Any
) -> None:
    rows = Judgment.objects.filter(pk__in=[row.pk for row in ending])
    rows.filter(since=draft.number).delete()
    rows.update(until=draft.number)
    made = [judgment_row(draft, query, record) for query, record in new]
    for row in made:
        row.judged_by = judged_by
    Judgment.objects.bulk_create(made, batch_size=BATCH)
