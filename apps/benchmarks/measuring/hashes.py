"""Hashes of rankings and of values, equal on any site where both are equal."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.final_list import FinalList
from apps.benchmarks.measuring.reading import StoredList, asked_of, by_source, rows_of, stored_lists
from apps.benchmarks.models import BatchValues, Evaluation, Run
from apps.collections.models import Document
from apps.datasets.models import Query
from benchbench.database.binary import binary_cursor

VERSION = "2:"  # what such a hash begins with; those of version 1 have nothing before them
NAME = "V16"  # a document in a digest: the first 16 bytes of the SHA-256 of its external id
RANKED = np.dtype([("name", NAME), ("score", "<f8")])
EXTERNAL_IDS = f"SELECT external_id FROM {Document._meta.db_table} WHERE id = ANY(%s) ORDER BY id"  # nosec # of constants
DIGEST = "V32"
DIGESTED = np.dtype([("asked", "<i8"), ("digest", DIGEST)])  # a ranking of a run: the digest of what was `asked`


def asked(query_id: int, repetition: int) -> int:
    """Return a query and a repetition as one number."""
    return query_id << 16 | repetition


def digests_of(lists: Sequence[FinalList], keys: Mapping[int, str]) -> dict[UUID, bytes]:
    """Return the digests of what each run returns of final lists, as DIGESTED; `keys` are those of the queries."""
    names = _Names(final_list.document_ids for final_list in lists)
    by_source: dict[int, list[FinalList]] = {}
    for final_list in lists:
        by_source.setdefault(final_list.source, []).append(final_list)
    made = {}
    for some in by_source.values():
        digests = _digests([keys[final_list.query_id] for final_list in some], some, names)
        digested = np.empty(len(some), DIGESTED)
        digested["asked"] = [asked(final_list.query_id, final_list.repetition) for final_list in some]
        for place, run_id in enumerate(some[0].run_ids):
            digested["digest"] = digests[:, place]
            made[run_id] = digested.tobytes()
    return made


def rankings_hashes(runs: Iterable[Run]) -> dict[UUID, str]:
    """Return the hash of all rankings of each run: the SHA-256 over their digests, by query key, then repetition.

    The digest of a ranking is the SHA-256 over the JSON of [query key, repetition] in a line, and of each document the
    first 16 bytes of the SHA-256 of its external id and its score, float64, the lowest byte first. Of a query that
    failed it is over that line and "null": its words may name a time. Those that batches kept are taken; where one of
    a run is missing, its lists are read.
    """
    sources = by_source(runs)
    kept = _kept_digests([run.pk for sharing in sources.values() for run in sharing])
    hashes: dict[UUID, str] = {}
    stored = asked_of(sources)
    for source_id, sharing in sources.items():
        in_order = stored.get(source_id, [])
        wanted = np.array([asked(query_id, repetition) for _, query_id, repetition in in_order], np.int64)
        picked = {run.pk: _picked(kept.get(run.pk, b""), wanted) for run in sharing}
        read = _read_digests(source_id, sharing) if None in picked.values() else {}
        made = {run_id: digests if digests is not None else read[run_id] for run_id, digests in picked.items()}
        hashes |= {run_id: VERSION + sha256(digests).hexdigest() for run_id, digests in made.items()}
    return hashes


def _kept_digests(run_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """Return what batches kept of each run, what a later one made of a ranking after what was made before."""
    rows = BatchValues.objects.filter(run__in=run_ids, digests__isnull=False).order_by("pk")
    kept: dict[UUID, bytes] = {}
    for run_id, digests in rows_of(rows.values_list("run_id", "digests")):
        kept[run_id] = kept.get(run_id, b"") + digests
    return kept


def _picked(kept: bytes, wanted: NDArray[np.int64]) -> bytes | None:
    """Return the last digest of each ranking that is wanted; None where one is missing."""
    if not len(wanted):
        return b""
    digested = np.frombuffer(kept, DIGESTED)
    rising = np.argsort(digested["asked"], kind="stable")
    last = np.searchsorted(digested["asked"][rising], wanted, side="right") - 1
    if not len(rising) or (digested["asked"][rising[last]] != wanted).any():
        return None
    return digested["digest"][rising[last]].tobytes()


def _read_digests(source_id: int | None, sharing: Sequence[Run]) -> dict[UUID, bytes]:
    """Return the digests of the stored rankings of runs that share a source, in order."""
    lists = sorted(stored_lists(source_id), key=lambda stored: (stored.key, stored.query_id, stored.repetition))
    names = _Names(stored.document_ids for stored in lists)
    digests = _digests([stored.key for stored in lists], lists, names)
    return {run.pk: digests[:, run.place - 1].tobytes() for run in sharing}


class _Names:
    """External ids of documents, as they enter digests."""

    def __init__(self, documents: Iterable[NDArray[np.int64]]) -> None:
        """Read those of all that are in `documents`, in one query."""
        self._ids = np.unique(np.concatenate([np.empty(0, np.int64), *documents]))
        with binary_cursor() as cursor:  # thousands of ids: as one array, of which Django would make as many parameters
            names = cursor.execute(EXTERNAL_IDS, [self._ids.tolist()], binary=True).fetchall()
        self._names = np.array([sha256(name.encode()).digest()[: np.dtype(NAME).itemsize] for (name,) in names], NAME)

    def of(self, documents: NDArray[np.int64]) -> NDArray[np.void]:
        return self._names[np.searchsorted(self._ids, documents)]


def _digests(keys: Sequence[str], lists: Sequence[FinalList | StoredList], names: _Names) -> NDArray[np.void]:
    """Return the digests of what the runs return of lists of one source, (lists, places); `keys` are their queries'."""
    ends = np.cumsum([0, *(len(ranked.document_ids) for ranked in lists)])
    ranked_documents = np.empty(ends[-1], RANKED)
    if lists:
        ranked_documents["name"] = names.of(np.concatenate([ranked.document_ids for ranked in lists]))
        ranked_documents["score"] = np.concatenate([ranked.document_scores for ranked in lists])
    whole = memoryview(ranked_documents.tobytes())
    starts = (ends * RANKED.itemsize).tolist()
    made = [_of_one(key, ranked, whole[start:]) for key, ranked, start in zip(keys, lists, starts, strict=False)]
    return np.frombuffer(b"".join(made), DIGEST).reshape(len(lists), -1)


def _of_one(key: str, ranked: FinalList | StoredList, documents: memoryview) -> bytes:
    """Return the digests of what the runs return of a list, by their place; `documents` begins with its own."""
    head = json.dumps([key, ranked.repetition]).encode() + b"\n"
    if ranked.error:
        return sha256(head + b"null").digest() * len(ranked.lengths)
    digest, end, made = sha256(head), 0, {}
    for length in sorted(set(ranked.lengths)):  # each goes on where the shorter one ended
        start, end = end, length * RANKED.itemsize
        digest.update(documents[start:end])
        made[length] = digest.copy().digest()
    return b"".join(map(made.__getitem__, ranked.lengths))


def values_hash(evaluation: Evaluation, *, keys: dict[int, str], measures: Collection[str]) -> str:
    """Return the SHA-256 over the per-query values: those of `measures` that it has, in its own order, queries in the
    order of their `keys` (by id).

    A query without a value counts as NaN.
    """
    order = sorted(range(len(evaluation.query_ids)), key=lambda place: keys[evaluation.query_ids[place]])
    digest = sha256(json.dumps([keys[evaluation.query_ids[place]] for place in order]).encode())
    for name, row in zip(evaluation.measures, evaluation.values, strict=True):
        if name not in measures:
            continue
        values = np.array([np.nan if row[place] is None else row[place] for place in order], "<f8")
        digest.update(name.encode() + b"\n" + values.tobytes())
    return digest.hexdigest()


def keys_of(query_ids: Sequence[int]) -> dict[int, str]:
    """Return the keys of queries by their ids, in one query."""
    return dict(Query.objects.filter(pk__in=query_ids).values_list("pk", "key"))
