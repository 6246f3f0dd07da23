"""Duplicates: documents of a collection with the same content hash and the same text."""

from collections import Counter, defaultdict
from collections.abc import Collection as CollectionOf
from contextlib import suppress
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.db.models import Case, F, OuterRef, Q, Subquery, TextField, Value, When
from django.db.models.functions import MD5, Coalesce
from redis.exceptions import RedisError

from apps.collections.models import Collection, Document, FormerDocument, list_live
from apps.collections.states import filter_former, list_documents

DOCUMENTS = Document._meta.db_table
CACHED_SECONDS = 24 * 3600
BLANK = Q(text="", title="")
# An index has the hashes; texts are read of documents with equal hashes only. Several documents may be of one file.
COUNT = f"""
    WITH repeated AS (
        SELECT content_hash FROM {DOCUMENTS} WHERE collection_id = %(collection)s
        GROUP BY content_hash HAVING count(*) > 1
    ), grouped AS (
        SELECT count(*) AS documents FROM {DOCUMENTS} JOIN repeated USING (content_hash)
        WHERE collection_id = %(collection)s AND removed_at IS NULL AND (text <> '' OR title <> '')
        GROUP BY content_hash, md5(text) HAVING count(*) > 1
    )
    SELECT coalesce(sum(documents), 0) FROM grouped
"""  # nosec # our own name; values are parameters


def count_duplicates(collection: Collection) -> int:
    """Return the number of searchable documents whose text another one has.

    About 3 s for a million documents, so it is cached until they change: a preview asks after each change of its form.
    """
    key = f"duplicates:{collection.pk}:{collection.fingerprint}"
    with suppress(RedisError):
        if (count := cache.get(key)) is not None:
            return int(count)
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"collection": collection.pk})
        count = int(cursor.fetchone()[0])
    with suppress(RedisError):
        cache.set(key, count, CACHED_SECONDS)
    return count


def find_duplicates(
    collection: Collection, documents: CollectionOf[int], *, state: int | None = None
) -> list[dict[int, str]]:
    """Return the groups of duplicates that have one of `documents`, each as {primary key: external id}.

    `state` is the number of the state of the collection in which they are duplicates, by default today's. Of a document
    that was rewritten since, the hash alone is known. Three queries.
    """
    present = _hash_documents(collection, state)
    hashes = set(present.filter(pk__in=documents).values_list("hash", flat=True))
    same = Q(content_hash__in=hashes)
    if state is not None:
        former = FormerDocument.objects.filter(filter_former(state), content_hash__in=hashes)
        same |= Q(pk__in=former.filter(document__collection=collection).values("document"))
    counts = Counter(present.filter(same).values_list("hash", flat=True))
    repeated = [hash for hash, count in counts.items() if count > 1 and hash in hashes]
    text = Case(When(content_hash=F("hash"), then=MD5("text")), default=Value(""), output_field=TextField())
    rows = (
        present.filter(same, hash__in=repeated).order_by("external_id").values_list("hash", text, "pk", "external_id")
    )
    by_hash: defaultdict[str, list[tuple[str, int, str]]] = defaultdict(list)
    for hash, *row in rows if repeated else ():
        by_hash[hash].append(tuple(row))
    groups = [group for same_hash in by_hash.values() for group in _split_by_text(same_hash)]
    targets = set(documents)
    return [group for group in groups if len(group) > 1 and not targets.isdisjoint(group)]


def _hash_documents(collection: Collection, state: int | None) -> Any:
    """Return the documents of a state that have a text, annotated with their `hash` in it."""
    if state is None:
        return list_live(collection).exclude(BLANK).annotate(hash=F("content_hash"))
    former = FormerDocument.objects.filter(filter_former(state), document=OuterRef("pk")).values("content_hash")
    documents = list_documents(collection, state=state).exclude(BLANK)
    return documents.annotate(hash=Coalesce(Subquery(former), F("content_hash")))


def _split_by_text(rows: list[tuple[str, int, str]]) -> list[dict[int, str]]:
    """Split documents of one hash by the hashes of their texts, "" where it is unknown."""
    texts = {text for text, *_ in rows if text} or {""}
    return [{pk: name for text, pk, name in rows if text == one or (not text and len(texts) == 1)} for one in texts]
