"""Stub collections: documents of which only the ids are known, for external runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from django.db import connection, transaction

from apps.collections.models import Collection, Document, list_live
from benchbench.database.ordered import lock_in_order, retry_deadlocks

LONGEST_ID = 500
STUB_TABLE = "stub_documents"
FIELDS = ("uri", "file_name", "content_hash")
DOCUMENTS = Document._meta.db_table


@transaction.atomic
def add_ids(collection: Collection, ids: Iterable[str]) -> dict[str, int]:
    """Return the primary key of the document of each of `ids`; those that `collection` lacks are added, by COPY."""
    with _temporary_table((external_id, "", "", "") for external_id in ids):
        _insert(collection, "NOTHING")
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT known.external_id, known.id FROM {DOCUMENTS} AS known JOIN {STUB_TABLE} USING (external_id)"  # nosec # our own names; values are parameters
                " WHERE known.collection_id = %s",
                [collection.pk],
            )
            keys: dict[str, int] = dict(cursor)
    _count(collection)
    return keys


def add_titled_ids(collection: Collection, titles: Mapping[str, str]) -> dict[str, int]:
    """Return the primary key of the document of each id, added if missing, and fill in missing titles."""
    keys = retry_deadlocks(partial(add_ids, collection, titles))
    retry_deadlocks(partial(_set_titles, keys, titles))
    return keys


def _set_titles(keys: Mapping[str, int], titles: Mapping[str, str]) -> None:
    untitled = Document.objects.filter(pk__in=keys.values(), title="")
    untitled = untitled.filter(external_id__in=[name for name, title in titles.items() if title])
    locked = lock_in_order(untitled)
    titled = list(Document.objects.filter(pk__in=locked).only("external_id"))
    for document in titled:
        document.title = titles[document.external_id]
    Document.objects.bulk_update(titled, ["title"], batch_size=1000)


@transaction.atomic
def upsert_documents(collection: Collection, documents: Mapping[str, Mapping[str, str]]) -> None:
    """Add documents by their ids, each with what else is known of it (uri, file_name, content_hash), or set that."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in FIELDS)
    with _temporary_table((name, *(values.get(field, "") for field in FIELDS)) for name, values in documents.items()):
        _insert(collection, f"UPDATE SET {changes}, updated_at = now()")  # nosec # our own names
    _count(collection)


@contextmanager
def _temporary_table(rows: Iterable[Sequence[str]]) -> Iterator[None]:
    """Make a temporary table of the given rows, for statements over all of them."""
    columns = ", ".join(("external_id", *FIELDS))
    with connection.cursor() as cursor:
        types = ", ".join(f"{name} text" for name in FIELDS)
        cursor.execute(f'CREATE TEMPORARY TABLE {STUB_TABLE} (external_id text COLLATE "C", {types}) ON COMMIT DROP')
        with cursor.copy(f"COPY {STUB_TABLE} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(f"ANALYZE {STUB_TABLE}")
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {STUB_TABLE}")


def _insert(collection: Collection, conflict: str) -> None:
    columns = ", ".join(("external_id", *FIELDS))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {DOCUMENTS} (uuid, collection_id, {columns}, title, text, metadata, created_at, updated_at)"  # nosec # our own names
            f" SELECT gen_random_uuid(), %s, {columns}, '', '', '{{}}', now(), now() FROM {STUB_TABLE}"
            f" ORDER BY external_id ON CONFLICT (collection_id, external_id) DO {conflict}",
            [collection.pk],
        )


def _count(collection: Collection) -> None:
    collection.document_count = list_live(collection).count()
    collection.save(update_fields=["document_count", "updated_at"])
