"""The draft of a dataset: edits gather in it, freezing makes it the next version, and discarding undoes it."""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils import timezone

from apps.datasets.editing.differences import Changes, Difference
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import JUDGMENT_FIELDS, QUERY_FIELDS, JudgmentRecord, QueryRecord
from apps.datasets.versions import encode_judgment, encode_query, hash_version
from benchbench.database.failures import read_again
from benchbench.errors import ConflictError
from benchbench.reading.strict_json import attributes


def find_draft(dataset: Dataset) -> DatasetVersion | None:
    """Return the draft of a dataset, if it was edited since the newest frozen version."""
    return DatasetVersion.objects.select_related("dataset").filter(dataset=dataset, frozen_at__isnull=True).first()


@transaction.atomic
def open_draft(dataset: Dataset) -> DatasetVersion:
    """Return the draft of a dataset; without one, open a draft with the content of the newest version."""
    locked = read_again(Dataset.objects.select_for_update(), dataset.pk)
    newest = locked.versions.order_by("-number").first()
    if newest and newest.frozen_at is None:
        return newest
    return DatasetVersion.objects.create(dataset=locked, number=newest.number + 1 if newest else 1)


def require_draft(version: DatasetVersion) -> None:
    """Raise ConflictError for a version that is frozen."""
    if version.frozen_at is not None:
        raise ConflictError(f"{version} is frozen: it never changes, and is deleted only with its dataset.")


def build_difference(version: DatasetVersion) -> Difference:
    """Return the difference of a version from the one before it; for the draft, from the newest frozen version."""
    return Difference(version, since=version.number - 1)


def count_changes(draft: DatasetVersion) -> Changes:
    """Count the draft's changes, in one statement."""
    return build_difference(draft).counts()


@transaction.atomic
def freeze(dataset: Dataset, *, label: str = "", note: str = "", digest: str = "") -> DatasetVersion:
    """Freeze the draft and return it: a numbered version that never changes again.

    `digest` is that of the difference that the user looked at: a draft that was edited since is refused.
    """
    read_again(Dataset.objects.select_for_update(), dataset.pk)
    draft = dataset.versions.filter(frozen_at__isnull=True).first()
    if draft is None:
        raise ConflictError(f'The dataset "{dataset}" has no draft to freeze: nothing was edited since.')
    if digest and build_difference(draft).digest != digest:
        raise ConflictError("The draft was edited after you viewed it: review its changes, then freeze it.")
    if label and dataset.versions.filter(label=label).exists():
        raise ConflictError(
            f'The dataset "{dataset}" already has a version "{label}": choose another label.', field="label"
        )
    draft.label = label
    draft.note = note
    draft.query_count = draft.queries.count()
    if not draft.query_count:
        raise ConflictError(f'The draft of "{dataset}" has no queries: add one, or discard the draft.')
    draft.judgment_count = draft.judgments.count()
    draft.content_hash = hash_version(draft)
    draft.frozen_at = timezone.now()
    draft.save()
    return draft


@transaction.atomic
def discard_draft(dataset: Dataset) -> None:
    """Undo every edit since the newest frozen version, which is the newest again. This cannot be undone."""
    locked = read_again(Dataset.objects.select_for_update(), dataset.pk)
    draft = locked.versions.filter(frozen_at__isnull=True).first()
    if draft is None:
        raise ConflictError(f'The dataset "{dataset}" has no draft to discard: nothing was edited since.')
    judgments = Judgment.objects.filter(query__dataset=locked)
    queries = Query.objects.filter(dataset=locked)
    for rows in (judgments, queries):  # delete the added rows first: current rows must be unique
        rows.filter(since=draft.number).delete()
    for rows in (queries, judgments):
        rows.filter(until=draft.number).update(until=None)
    draft.delete()


BATCH = 2000


def write_version(version: DatasetVersion, records: Sequence[QueryRecord]) -> None:
    """Make `records` the content of `version`, the newest: equal rows stay, others end, new ones begin."""
    current = {query.key: query for query in version.dataset.queries.filter(until__isnull=True)}
    unchanged, new = [], []
    for record in records:
        query = current.get(record.key)
        if query and encode_query(query) == encode_query(record):
            unchanged.append((current.pop(record.key), record))
        else:
            new.append(record)
    end_queries(version, current.values())
    rows = [build_query(version, record) for record in new]
    Query.objects.bulk_create(rows, batch_size=BATCH)
    added = [(query, judgment) for query, record in zip(rows, new, strict=True) for judgment in record.judgments]
    added += _change_judgments(version, unchanged)
    for start in range(0, len(added), BATCH):  # a row is many times its record, and Django makes all at once
        chunk = added[start : start + BATCH]
        Judgment.objects.bulk_create(build_judgment(version, query, judgment) for query, judgment in chunk)


def end_queries(version: DatasetVersion, queries: Iterable[Query]) -> None:
    """End queries and their judgments as of `version`; rows that only it had are deleted."""
    ended = [query.pk for query in queries]
    for rows in (Judgment.objects.filter(query__in=ended), Query.objects.filter(pk__in=ended)):
        rows.filter(since=version.number).delete()
        rows.filter(until__isnull=True).update(until=version.number)


def build_judgment(version: DatasetVersion, query: Query, record: JudgmentRecord) -> Judgment:
    values = attributes(record, *JUDGMENT_FIELDS)
    return Judgment(query=query, ref_hash=record.ref_hash, since=version.number, **values)


def build_query(version: DatasetVersion, record: QueryRecord) -> Query:
    lists = {"slices": list(record.slices), "evidence": list(record.evidence)}
    return Query(dataset_id=version.dataset_id, since=version.number, **attributes(record, *QUERY_FIELDS) | lists)


def _change_judgments(
    version: DatasetVersion, unchanged: Sequence[tuple[Query, QueryRecord]]
) -> list[tuple[Query, JudgmentRecord]]:
    """End the removed and changed judgments of unchanged queries, and return the judgments to write."""
    queries = [query for query, _ in unchanged]
    ending: dict[tuple[int, str], Judgment] = {
        (judgment.query_id, judgment.ref_hash): judgment
        for judgment in Judgment.objects.filter(query__in=queries, until__isnull=True)
    }
    added = []
    for query, record in unchanged:
        for judgment in record.judgments:
            key = (query.pk, judgment.ref_hash)
            if key in ending and encode_judgment(ending[key]) == encode_judgment(judgment):
                del ending[key]
            else:
                added.append((query, judgment))
    ended = [judgment.pk for judgment in ending.values()]
    Judgment.objects.filter(pk__in=ended).update(until=version.number)
    return added
