"""Hashes of rankings and of values, equal on any site where both are equal."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike

from apps.benchmarks.measuring.reading import by_source, stored_lists
from apps.benchmarks.models import Evaluation, Run
from apps.collections.models import Document
from apps.datasets.models import Query
from benchbench.ir.records import Scores

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

Ranking = tuple[str, int, Sequence[str] | None, ArrayLike]  # query key, repetition, external ids, scores


class Written(dict[int, str]):
    """External ids as JSON writes them, by document, each written when it is first asked for."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def __missing__(self, document: int) -> str:
        written = self[document] = json.dumps(self._names[document])
        return written


def rankings_hashes(runs: Iterable[Run], names: Written) -> dict[UUID, str]:
    """Return the `hash_of_rankings` of all that is stored of each run, every list read once for the runs that share it.

    `names` knows every document of the collection.
    """
    hashes: dict[UUID, str] = {}
    for source_id, sharing in by_source(runs).items():
        digests = [(run.place - 1, sha256()) for run in sharing]
        for one in stored_lists(source_id):
            written = None if one.error else list(map(names.__getitem__, one.document_ids.tolist()))
            ranking = _Hashed(one.key, one.repetition, written, one.document_scores)
            for place, digest in digests:
                ranking.enter(digest, one.lengths[place])
        hashes |= {run.pk: digest.hexdigest() for run, (_, digest) in zip(sharing, digests, strict=True)}
    return hashes


def hash_of_rankings(rankings: Iterable[Ranking]) -> str:
    """Return the SHA-256 over rankings, by query key, then repetition.

    Of each enter the JSON of [key, repetition, external ids] in a line, and the bytes of its scores, float64, the
    lowest byte first. Of a query that failed, whose ids are None, only the failure enters: its words may name a time.
    """
    digest = sha256()
    for key, repetition, ids, scores in rankings:
        written = None if ids is None else [json.dumps(one) for one in ids]
        _Hashed(key, repetition, written, np.asarray(scores, np.float64)).enter(digest, len(ids or ()))
    return digest.hexdigest()


class _Hashed:
    """A ranking as bytes, of which its first documents may enter a hash as well."""

    def __init__(self, key: str, repetition: int, written: Sequence[str] | None, scores: Scores) -> None:
        """`written` are the external ids as JSON writes them, all in ASCII; None of a query that failed."""
        self._head = f"[{json.dumps(key)}, {repetition}, ".encode()
        self._ids = ", ".join(written or ()).encode()
        self._ends = [0, *accumulate(map(len, written or ()))]  # of the names alone
        self._scores = scores.astype("<f8").tobytes()
        self._failed = written is None

    def enter(self, digest: "Hash", length: int) -> None:
        """Add the first `length` documents, and what stands around them."""
        if self._failed:
            digest.update(self._head + b"null]\n")
            return
        ids = self._ids[: self._ends[length] + len(", ") * max(length - 1, 0)]
        digest.update(b"".join((self._head, b"[", ids, b"]]\n", self._scores[: length * 8])))


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


def external_ids(collection_id: UUID) -> dict[int, str]:
    """Return the external id of every document of a collection, removed ones included, in one query."""
    return dict(Document.objects.filter(collection=collection_id).values_list("pk", "external_id"))
