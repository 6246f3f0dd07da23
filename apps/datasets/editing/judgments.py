"""Editing judgments: edits gather in the draft, all of them or none. A single edit is a list of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.datasets.editing.drafts import BATCH, build_judgment, open_draft
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import GRADES, JUDGMENT_FIELDS, DatasetError, JudgmentRecord, find_doc_ref_fault, hash_ref
from apps.datasets.versions import encode_judgment, find_version
from benchbench.database.failures import read_again
from benchbench.reading.strict_json import dump_canonical


@dataclass(frozen=True, slots=True)
class JudgmentEdit:
    """The new judgment of a document for the query `query_key`; None removes the judgment."""

    query_key: str
    doc_ref: dict[str, Any]
    judgment: JudgmentRecord | None


@dataclass(frozen=True, slots=True)
class EditResult:
    """Result of edits: the version with the outcome, the counts of judgments, and each edit's judgment.

    The version is a draft, or the newest version if nothing changed. An edit that removes gives None.
    """

    version: DatasetVersion
    judgments: list[Judgment | None]
    added: int
    changed: int
    removed: int
    unchanged: int


@transaction.atomic
def edit_judgments(
    dataset: Dataset, edits: Sequence[JudgmentEdit], *, judged_by: User | None = None, listed: str = "judgments"
) -> EditResult:
    """Store judgments in the draft, in a constant number of queries. If nothing changes, no draft is opened.

    A DatasetError names the invalid edit by its place in the list that users know as `listed`; if that is blank, it
    names no place.
    """
    read_again(Dataset.objects.select_for_update(), dataset.pk)
    version = find_version(dataset, edited=True)
    queries = {query.key: query for query in version.queries.filter(key__in={edit.query_key for edit in edits})}
    before = _load_current(version, queries, edits, listed)
    changing = [
        index
        for index, (edit, row) in enumerate(zip(edits, before, strict=True))
        if not (row and edit.judgment and _is_unchanged(row, edit.judgment, judged_by))
    ]
    after = list(before)
    if changing:
        version = open_draft(dataset)
        new_rows = _write(version, queries, [(edits[index], before[index]) for index in changing], judged_by)
        for index, row in zip(changing, new_rows, strict=True):
            after[index] = row
    added = sum(before[index] is None for index in changing)
    removed = sum(after[index] is None for index in changing)
    unchanged = len(edits) - len(changing)
    return EditResult(version, after, added, len(changing) - added - removed, removed, unchanged)


def set_judgment(
    dataset: Dataset, query_key: str, record: JudgmentRecord, *, judged_by: User | None = None
) -> Judgment:
    """Store a document's grade for a query in the draft, replacing an earlier one; return the row."""
    edit = JudgmentEdit(query_key, record.doc_ref, record)
    [row] = edit_judgments(dataset, [edit], judged_by=judged_by, listed="").judgments
    assert row is not None
    return row


def remove_judgment(dataset: Dataset, query_key: str, doc_ref: dict[str, object]) -> None:
    """Remove the judgment of a reference from the draft; frozen versions keep it."""
    edit_judgments(dataset, [JudgmentEdit(query_key, doc_ref, None)], listed="")


def _load_current(
    version: DatasetVersion, queries: dict[str, Query], edits: Sequence[JudgmentEdit], listed: str
) -> list[Judgment | None]:
    """Return the current judgment of each edit. Raises DatasetError for an invalid or repeated edit."""
    keys = [(edit.query_key, hash_ref(dump_canonical(edit.doc_ref))) for edit in edits]
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    rows = Judgment.objects.filter(
        query__in=queries.values(), ref_hash__in={digest for _, digest in keys}, until__isnull=True
    )
    current = {(row.query.key, row.ref_hash): row for row in rows.select_related("query__dataset")}
    for index, (edit, key) in enumerate(zip(edits, keys, strict=True)):
        path = f"{listed}[{index}]"
        if problem := _find_problem(version.dataset, edit, edit.query_key in queries, current.get(key)):
            field, sentence = problem
            if not listed:
                raise DatasetError(sentence, field=field)
            raise DatasetError(f"{path}: {sentence[0].lower()}{sentence[1:]}", field=f"{path}.{field}")
        if first[key] != index:
            earlier = f"{listed}[{first[key]}]"
            raise DatasetError(f"{path} names the same query and document as {earlier}: state it once.", field=path)
    return [current.get(key) for key in keys]


def _find_problem(
    dataset: Dataset, edit: JudgmentEdit, has_query: bool, row: Judgment | None
) -> tuple[str, str] | None:
    """Return field and message of an error in a single edit, or None. `row` is the current judgment."""
    query = f"{edit.query_key[:60]!a}"
    if not has_query:
        return "query_key", f'The dataset "{dataset}" has no query {query}.'
    problem, _ = find_doc_ref_fault(edit.doc_ref)
    if problem and (edit.judgment or row is None):
        return "doc_ref", f"The reference to the document {problem}."
    if edit.judgment is None and row is None:
        return "doc_ref", f'The query {query} of "{dataset}" has no judgment of that document to remove.'
    if edit.judgment and edit.judgment.grade not in GRADES:
        return "grade", f"The grade {edit.judgment.grade} is out of range."
    return None


def _is_unchanged(judgment: Judgment, record: JudgmentRecord, judged_by: User | None) -> bool:
    """Return whether `judgment` equals `record` already and is by the same user."""
    judge_id = getattr(judged_by, "pk", None)
    return encode_judgment(judgment) == encode_judgment(record) and judgment.judged_by_id == judge_id


def _write(
    draft: DatasetVersion,
    queries: dict[str, Query],
    changes: Sequence[tuple[JudgmentEdit, Judgment | None]],
    judged_by: User | None,
) -> list[Judgment | None]:
    """Replace judgments by their edits, and return the new judgments, edit by edit.

    A judgment of a frozen version ends; a judgment that only the draft has is overwritten and keeps its id.
    """
    new_rows: list[Judgment | None] = []
    overwritten, ended_ids = [], []
    for edit, before in changes:
        row = build_judgment(draft, queries[edit.query_key], edit.judgment) if edit.judgment else None
        if row:
            row.judged_by = judged_by
        if row and before and before.since == draft.number:
            row.pk = before.pk
            overwritten.append((row, before.created_at))
        elif before:
            ended_ids.append(before.pk)
        new_rows.append(row)
    ended = Judgment.objects.filter(pk__in=ended_ids)
    ended.filter(since=draft.number).delete()
    ended.update(until=draft.number)
    Judgment.objects.bulk_create(
        [row for row in new_rows if row],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=[*JUDGMENT_FIELDS, "judged_by"],
    )
    for row, created_at in overwritten:
        row.created_at = created_at  # as in the row; bulk_create sets each object's to the time of its insertion
    return new_rows
