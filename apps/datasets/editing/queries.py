"""Editing queries: added, reworded and removed queries gather in the draft, as judgments do (`editing`)."""

from django.contrib.auth.models import User
from django.db import transaction

from apps.datasets.editing.drafts import build_judgment, build_query, end_queries, open_draft
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.records import QUERY_FIELDS, DatasetError, QueryRecord, check_query, find_doc_ref_fault
from apps.datasets.versions import encode_query
from benchbench.database.failures import read_again
from benchbench.errors import ConflictError


class QueryExistsError(ConflictError):
    """The dataset already has a query with that key."""

    code = "query_exists"


class OutdatedError(ConflictError):
    """The row belongs to frozen versions only: it was changed or removed since."""

    code = "outdated"


@transaction.atomic
def add_query(dataset: Dataset, record: QueryRecord, *, judged_by: User | None = None) -> Query:
    """Add a query with its judgments to the draft; return the row."""
    check_query(record)
    for index, judgment in enumerate(record.judgments):
        problem, _ = find_doc_ref_fault(judgment.doc_ref)
        if problem:
            raise DatasetError(f"The reference to the document {problem}.", field=f"judgments[{index}].doc_ref")
    draft = open_draft(dataset)
    if draft.queries.filter(key=record.key).exists():
        raise QueryExistsError(
            f'The dataset "{dataset}" has a query {record.key!a}: edit that one, or choose another key.',
            field="query_key",
        )
    query = build_query(draft, record)
    query.save()
    rows = [build_judgment(draft, query, judgment) for judgment in record.judgments]
    for row in rows:
        row.judged_by = judged_by
    Judgment.objects.bulk_create(rows)
    return query


@transaction.atomic
def edit_query(query: Query, changes: dict[str, object]) -> Query:
    """Change values of QUERY_FIELDS of a query in the draft, except its key; return the row.

    If a frozen version holds the old row, a new row with the judgments is made. Equal values change nothing and open
    no draft.
    """
    current = _lock_query(query)
    values = {name: getattr(current, name) for name in QUERY_FIELDS} | changes | {"key": current.key}
    record = QueryRecord(**values)
    check_query(record)
    if encode_query(record) == encode_query(current):
        return current
    draft = open_draft(current.dataset)
    if current.since == draft.number:
        for name, value in changes.items():
            setattr(current, name, value)
        current.save()
        return current
    judgments = list(current.judgments.filter(until__isnull=True))
    end_queries(draft, [current])
    new_query = build_query(draft, record)
    new_query.save()
    for judgment in judgments:
        judgment.pk, judgment.query, judgment.since = None, new_query, draft.number
    Judgment.objects.bulk_create(judgments)
    return new_query


@transaction.atomic
def remove_query(query: Query) -> None:
    """Take a query and its judgments out of the draft; frozen versions keep theirs."""
    current = _lock_query(query)
    end_queries(open_draft(current.dataset), [current])


def require_current(row: Query | Judgment) -> None:
    """Raise OutdatedError for a query or a judgment that only frozen versions have."""
    if row.until is None:
        return
    current: Query | Judgment | None
    if isinstance(row, Query):
        label = f"The query {row.key!a}"
        current = Query.objects.filter(dataset=row.dataset_id, key=row.key, until__isnull=True).first()
    else:
        label = f"The judgment of {row.reference[:100]!a}"
        of_query = Judgment.objects.filter(query__dataset=row.query.dataset_id, query__key=row.query.key)
        current = of_query.filter(ref_hash=row.ref_hash, until__isnull=True).first()
    outcome = (
        f"changed in version {row.until}: edit the one of the id {current.pk}"
        if current
        else f"removed in version {row.until}"
    )
    raise OutdatedError(f"{label} of the id {row.pk} was {outcome}. Earlier versions never change.")


def _lock_query(query: Query) -> Query:
    """Lock the dataset and return the current row."""
    read_again(Dataset.objects.select_for_update(), query.dataset_id)
    current = read_again(Query.objects.select_related("dataset"), query.pk)
    require_current(current)
    return current
