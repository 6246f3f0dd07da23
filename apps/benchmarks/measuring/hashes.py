"""Hashes of rankings and of values, equal on any site where both are equal."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike

from apps.benchmarks.measuring.reading import Stored
from apps.benchmarks.measuring.run_result import RunResult
from apps.benchmarks.models import Evaluation
from apps.collections.models import Document
from apps.datasets.models import Query

Id = TypeVar("Id")
Ranking = tuple[str, int, Sequence[Id] | None, ArrayLike]  # query key, repetition, documents, scores


class Written(dict[int, str]):
    """External ids as JSON writes them, by document, each written when it is first asked for."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def __missing__(self, document: int) -> str:
        written = self[document] = json.dumps(self._names[document])
        return written


def rankings_hash(results: Iterable[Stored], names: Written) -> str:
    """Return the `hash_of_rankings` of all that is stored of a run. `names` knows every document of the collection."""
    rankings = ((one.key, one.repetition, None if one.error else one.document_ids, one.scores) for one in results)
    return hash_of_rankings(rankings, written=names.__getitem__)


def results_hash(results: Iterable[RunResult], keys: Mapping[int, str], names: Written) -> str:
    """Return the `rankings_hash` of a run before it is stored: of its results for all queries of `keys`, key by id.

    `keys` are in the database's order of them, which is that of the hash.
    """
    by_query: dict[int, list[RunResult]] = {query_id: [] for query_id in keys}
    for result in results:
        by_query[result.query_id].append(result)
    rankings = (
        (key, one.repetition, None if one.error else one.document_ids.tolist(), one.scores)
        for query_id, key in keys.items()
        for one in sorted(by_query[query_id], key=lambda one: one.repetition)
    )
    return hash_of_rankings(rankings, written=names.__getitem__)


def hash_of_rankings(rankings: Iterable[Ranking[Id]], *, written: Callable[[Id], str] = json.dumps) -> str:
    """Return the SHA-256 over rankings: query keys in order, repetitions, external ids, bytes of scores.

    Each ranking enters as the JSON of [key, repetition, ids], in which `written` writes the external id of a document.
    Of a query that failed, whose documents are None, only the failure enters: its words may name a time.
    """
    digest = sha256()
    for key, repetition, ranked, scores in rankings:
        ids = "null" if ranked is None else f"[{', '.join(map(written, ranked))}]"
        digest.update(f"[{json.dumps(key)}, {repetition}, {ids}]\n".encode())
        digest.update(b"" if ranked is None else np.asarray(scores, "<f8").tobytes())
    return digest.hexdigest()


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
