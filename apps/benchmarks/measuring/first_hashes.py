"""Hashes of rankings, version 1: one SHA-256 over all. Imported runs are known by it, and old manifests hold it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike

from apps.benchmarks.measuring.reading import by_source, stored_lists
from apps.benchmarks.models import Run
from apps.collections.models import Document
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


def first_rankings_hashes(runs: Iterable[Run]) -> dict[UUID, str]:
    """Return the `hash_of_rankings` of all that is stored of each run of one collection.

    Every list is read once for the runs that share it.
    """
    hashes: dict[UUID, str] = {}
    names: Written | None = None
    for source_id, sharing in by_source(runs).items():
        names = names or Written(_external_ids(sharing[0]))
        digests = [(run.place - 1, sha256()) for run in sharing]
        for stored in stored_lists(source_id):
            written = None if stored.error else list(map(names.__getitem__, stored.document_ids.tolist()))
            ranking = _Hashed(stored.key, stored.repetition, written, stored.document_scores)
            for place, digest in digests:
                ranking.enter(digest, stored.lengths[place])
        hashes |= {run.pk: digest.hexdigest() for run, (_, digest) in zip(sharing, digests, strict=True)}
    return hashes


def hash_of_rankings(rankings: Iterable[Ranking]) -> str:
    """Return the SHA-256 over rankings, by query key, then repetition.

    Of each enter the JSON of [key, repetition, external ids] in a line, and the bytes of its scores, float64, the
    lowest byte first. Of a query that failed, whose ids are None, only the failure enters: its words may name a time.
    """
    digest = sha256()
    for key, repetition, ids, scores in rankings:
        written = None if ids is None else [json.dumps(external_id) for external_id in ids]
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


def _external_ids(run: Run) -> dict[int, str]:
    """Return the external id of every document of a run's collection, removed ones included, in one query."""
    documents = Document.objects.filter(collection=run.benchmark.mapping.collection_id)
    return dict(documents.values_list("pk", "external_id"))
