"""Equal runs: those that returned the same documents in the same order for every query."""

from collections.abc import Sequence
from typing import Any

from django.core.cache import cache
from django.db import connection

from apps.records.circumstances import group_by
from apps.records.models import QueryResult, Run
from apps.verdicts.ranked_runs import Row

CACHED_SECONDS = 7 * 24 * 3600
HASHES = f"""
    SELECT run_id, count(*), sum(hash_record_extended((query_id, repetition, document_ids, error), 0)::numeric)
    FROM {QueryResult._meta.db_table} WHERE run_id = ANY(%s) GROUP BY run_id
"""  # nosec # of constants


def group_equal(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows in groups of equal runs, in the order of their first rows; most groups have one row.

    Only the lists of ranked runs with equal means are read. Runs whose rankings were deleted are alone.
    """
    ranked = [row for row in rows if row.rank and not row.provisional]
    by_values = group_by(ranked, lambda row: (row.rank, row.run.failed_queries, tuple(sorted(row.values.items()))))
    hashes = _hash_lists([row.run for group in by_values.values() if len(group) > 1 for row in group])
    return list(group_by(rows, lambda row: (row.values and hashes.get(row.run.pk)) or row.run.pk).values())


def _hash_lists(runs: Sequence[Run]) -> dict[Any, str]:
    """Return a hash of the lists of each run that has lists. A run that ends again has a new one."""
    keys = {f"lists:{run.pk}:{run.completed_at.timestamp()}": run.pk for run in runs if run.completed_at}
    stored = cache.get_many(keys)
    if missing := {pk: key for key, pk in keys.items() if key not in stored}:
        with connection.cursor() as cursor:
            cursor.execute(HASHES, [list(missing)])
            new = {missing[pk]: f"{count} {total}" for pk, count, total in cursor.fetchall()}
        cache.set_many(new, CACHED_SECONDS)
        stored |= new
    return {keys[key]: value for key, value in stored.items()}
