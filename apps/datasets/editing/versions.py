"""Writing the rows of a dataset's newest version.

A row belongs to the versions from `since` up to, not including, `until`. Rows are written and ended only for the newest
version and only before it is frozen, so what a frozen version holds never changes.
"""

from collections.abc import Iterable, Sequence

from apps.datasets.content import judgment_content, query_content, ref_hash
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.datasets.records import JUDGMENT_FIELDS, QUERY_FIELDS, JudgmentRecord, QueryRecord

BATCH = 2000


def write_version(version: DatasetVersion, records: Sequence[QueryRecord]) -> None:
    """Make `records` the content of `version`, the newest: rows that are equal stay, others end, new ones begin."""
    current = {query.key: query for query in version.dataset.queries.filter(until__isnull=True)}
    kept, new = [], []
    for record in records:
        query = current.get(record.key)
        if query and query_content(query) == query_content(record):
            kept.append((current.pop(record.key), record))
        else:
            new.append(record)
    end_queries(version, current.values())
    rows = [query_row(version, record) for record in new]
    Query.objects.bulk_create(rows, batch_size=BATCH)
    added = [(query, judgment) for query, record in zip(rows, new, strict=True) for judgment in record.judgments]
    added += _change_judgments(version, kept)
    for start in range(0, len(added), BATCH):  # a row in memory is many times its record, and Django makes all at once
        part = added[start : start + BATCH]
        Judgment.objects.bulk_create(judgment_row(version, query, judgment) for query, judgment in part)


def end_queries(version: DatasetVersion, queries: Iterable[Query]) -> None:
    """End queries, and with them their judgments, so that `version` has them no more; what it alone had goes."""
    ended = [query.pk for query in queries]
    for rows in (Judgment.objects.filter(query__in=ended), Query.objects.filter(pk__in=ended)):
        rows.filter(since=version.number).delete()
        rows.filter(until__isnull=True).update(until=version.number)


def judgment_row(version: DatasetVersion, query: Query, record: JudgmentRecord) -> Judgment:
    values = {name: getattr(record, name) for name in JUDGMENT_FIELDS}
    return Judgment(query=query, ref_hash=ref_hash(record.doc_ref), since=version.number, **values)


def query_row(version: DatasetVersion, record: QueryRecord) -> Query:
    values = {name: getattr(record, name) for name in QUERY_FIELDS}
    return Query(
        dataset_id=version.dataset_id,
        since=version.number,
        **values | {"slices": list(record.slices), "evidence": list(record.evidence)},
    )


def _change_judgments(
    version: DatasetVersion, kept: Sequence[tuple[Query, QueryRecord]]
) -> list[tuple[Query, JudgmentRecord]]:
    """End the judgments of kept queries that are gone or changed, and return those to write."""
    queries = [query for query, _ in kept]
    ending: dict[tuple[int, str], Judgment] = {
        (judgment.query_id, judgment.ref_hash): judgment
        for judgment in Judgment.objects.filter(query__in=queries, until__isnull=True)
    }
    added = []
    for query, record in kept:
        for judgment in record.judgments:
            place = (query.pk, ref_hash(judgment.doc_ref))
            if place in ending and judgment_content(ending[place]) == judgment_content(judgment):
                del ending[place]
            else:
                added.append((query, judgment))
    ended = [judgment.pk for judgment in ending.values()]
    Judgment.objects.filter(pk__in=ended).update(until=version.number)
    return added
