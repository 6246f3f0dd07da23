"""Approximate search: a store nominates chunks, which are ranked by their full vectors."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import TypeVar

import numpy as np

from apps.retrieval.availability import describe_missing
from apps.retrieval.filters import SHARE_KEY, Filter
from apps.retrieval.models import Index
from apps.retrieval.search import exact, pgvector
from apps.retrieval.search.admission import Among
from apps.retrieval.search.vectors import build_table_error, locate_vectors
from apps.retrieval.stores import STORES
from apps.retrieval.stores.base import AnswerError, Collection, Nominate, StoreError
from apps.retrieval.stores.filling import OpenCollection, name_collection, open_collection
from apps.retrieval.stores.memory_store import CompressedCollection
from apps.retrieval.strategies.base import Answer
from benchbench.errors import UnfitWorkerError, error_text
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import RESCORE_BAND, score_pairs, top
from benchbench.ir.records import Mask, Positions, ScoredList, Scores, Vectors
from benchbench.process import calling

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class SearchFault(Exception):
    """A search of a collection failed with `error` and is repeated once its files are verified."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def locate_collections(index: Index) -> Path:
    """Return the folder of an index's collections, each in its own subfolder."""
    return locate_vectors(index).with_suffix(".stores")


class Collections:
    """The collections of an open index, opened on first use and then kept open. Threads may share them."""

    def __init__(self, index: Index, vectors: Vectors | None) -> None:
        self._index = index
        self._vectors = vectors
        self._open: dict[str, OpenCollection] = {}
        self._opening = threading.RLock()

    @property
    def nbytes(self) -> int:
        return sum(opened.bytes for opened in self._open.values())

    def search(self, setting: Ann, run: Callable[[Collection | None], Result]) -> Result:
        """Return the result of `run` on the collection that a setting searches, None for one in PostgreSQL.

        If `run` raises SearchFault, or the files changed meanwhile, the collection is closed, verified, refilled if
        damaged, and searched once more. Raises the cause of the second SearchFault, StoreError if the files changed
        again, and the errors of `ensure_filled`.
        """
        if setting.store not in STORES or self._vectors is None or not len(self._vectors):
            return run(None)
        try:
            return self._run_once(setting, run)
        except SearchFault as fault:
            log.warning("%s is verified and searched again: %s", setting, error_text(fault.error))
        self._close(name_collection(setting))
        try:
            return self._run_once(setting, run)
        except SearchFault as fault:
            raise fault.error from None

    def _run_once(self, setting: Ann, run: Callable[[Collection], Result]) -> Result:
        opened = self.ensure_filled(setting)
        result = run(opened.collection)
        if not opened.is_current:
            raise SearchFault(
                StoreError(
                    f"The files of {setting} changed during the search: only BenchBench may write to "
                    "BENCHBENCH_VECTOR_DIR."
                )
            )
        return result

    def ensure_filled(self, setting: Ann) -> OpenCollection:
        """Return the collection that a setting of a store searches, filling it first if needed, which takes a while.

        Raises StoreError, OutputError; UnfitWorkerError if the store is not installed.
        """
        assert self._vectors is not None
        if missing := describe_missing({"store": setting.store}):
            raise UnfitWorkerError(f"{setting} cannot be searched on {gethostname()}: {missing}.")
        name = name_collection(setting)
        with self._opening:
            if name in self._open and not self._open[name].is_current:
                self._close(name)
            if name not in self._open:
                folder, store = locate_collections(self._index) / name, STORES[setting.store]
                self._open[name] = open_collection(folder, store, setting, self._vectors, holds=self._index.fingerprint)
            return self._open[name]

    def _close(self, name: str) -> None:
        if opened := self._open.pop(name, None):  # another thread may have closed it
            opened.close()


SPARE = 8  # extra chunks requested beyond the depth, to include all of equal score


@dataclass(frozen=True, slots=True)
class Approximation:
    """The answers to queries, the cost of each in milliseconds, and notes for reports.

    `notes` lists query numbers. "without_index": the statement could not use its index. "searched_exactly": the store
    found too few chunks that pass the query's own filter, so all were compared instead. "short": the store found fewer
    chunks than requested although more exist.
    """

    answers: list[Answer]
    costs: list[float]
    notes: dict[str, list[int]]

    @property
    def lists(self) -> list[ScoredList]:
        return [answer.ranked for answer in self.answers]


class ApproximateView:
    """A view of an open index for one setting and one filter. `seconds` has the cost of each search.

    Preparation per connection or filter does not count; `setup_seconds` is that per connection. Without a
    `collection`, pgvector is searched: it filters by the metadata in its table, or without a `filter` by the positions
    of any mask.
    """

    def __init__(
        self, index: Index, vectors: Vectors, setting: Ann, filter: Filter | None, collection: Collection | None = None
    ) -> None:
        self._index = index
        self._vectors = vectors
        self._setting = setting
        self._filter = filter
        self._needs_enough = SHARE_KEY not in (filter or {})  # a share measures the store: too few results stay so
        self._collection = collection
        self.seconds: list[float] = []
        self.setup_seconds = 0.0
        self.notes: defaultdict[str, list[int]] = defaultdict(list)  # numbers among all queries so far

    def find_nearest(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """Return the best `depth` of the store's nominees for each query. `mask` (n,) must match the filter.

        Raises SearchFault for any error of a collection.
        """
        if not (len(queries) and len(self._vectors)):
            self.seconds += [0.0] * len(queries)
            return [ScoredList.empty()] * len(queries)
        nominating = self._nominating(len(queries), depth, mask)
        with calling(f"The search by {self._setting}"), self._fault(), nominating as nominate:
            best = self._find_best_of_all if self._setting.compares_all else self._find_best
            lists = []
            for query in queries:
                started = time.perf_counter()
                lists.append(best(nominate, query, depth, mask))
                self.seconds.append(time.perf_counter() - started)
            return lists

    @contextmanager
    def _fault(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self._collection is None:
                raise
            raise SearchFault(error) from error

    @contextmanager
    def _nominating(self, queries: int, depth: int, mask: Mask | None) -> Iterator[Nominate]:
        if self._collection is not None:
            yield self._collection.build_nominator(self._setting, mask)
            return
        nominees = self._setting.count_nominees(depth)
        search = pgvector.nominating(self._index, self._setting, Among(self._filter, mask), nominees)
        with search as (nominate, uses_index, setup_seconds):
            self.setup_seconds += setup_seconds
            if not uses_index:
                self.notes["without_index"] += range(len(self.seconds), len(self.seconds) + queries)
            yield nominate

    def _find_best(self, nominate: Nominate, query: Vectors, depth: int, mask: Mask | None) -> ScoredList:
        ids = self._find_nominees(nominate, query, self._setting.count_nominees(depth), mask)
        if len(ids) < min(depth, self._count_admitted(mask)):
            if mask is not None and self._needs_enough:
                return self._search_exactly(query, depth, mask)
            self.notes["short"].append(len(self.seconds))
        return top(self._compute_scores(ids, query), depth, ids=ids)

    def _find_best_of_all(self, nominate: Nominate, query: Vectors, depth: int, mask: Mask | None) -> ScoredList:
        """Return the results of a store that compares all vectors: the same as those of exact search.

        The store compares in float32, so chunks that it leaves out may score as high as the result at `depth`. So more
        are requested until the last nominee scores lower by RESCORE_BAND. Raises AnswerError if too few are returned.
        """
        limit, admitted = depth + SPARE, self._count_admitted(mask)
        while True:
            ids = self._find_nominees(nominate, query, limit, mask)
            if len(ids) < min(limit, admitted):
                if mask is not None:
                    return self._search_exactly(query, depth, mask)
                raise AnswerError(
                    f"{self._setting} returned {len(ids):,} of {min(limit, admitted):,} requested chunks, so it does "
                    "not compare all. Leave it out, or try another version of the store."
                )
            scores = self._compute_scores(ids, query)
            best = top(scores, depth, ids=ids)
            if len(ids) == admitted or best.scores[-1] - scores.min() > RESCORE_BAND:
                return best
            limit *= 2

    def _search_exactly(self, query: Vectors, depth: int, mask: Mask) -> ScoredList:
        self.notes["searched_exactly"].append(len(self.seconds))
        return exact.find_nearest(self._vectors, query[None], depth, mask=mask)[0]

    def _count_admitted(self, mask: Mask | None) -> int:
        return len(self._vectors) if mask is None else int(np.count_nonzero(mask))

    def _compute_scores(self, ids: Positions, query: Vectors) -> Scores:
        if not self._setting.rescores:
            assert isinstance(self._collection, CompressedCollection)
            return self._collection.score(ids, query)
        return score_pairs(self._vectors.take(ids, axis=0), query)  # indexing by brackets takes 1.5 times as long

    def _find_nominees(self, nominate: Nominate, query: Vectors, depth: int, mask: Mask | None) -> Positions:
        """Return the store's valid nominees, ascending. Raises AnswerError for unknown or repeated positions."""
        ids = np.sort(nominate(query, depth))
        if len(ids) and not (ids[0] >= 0 and ids[-1] < len(self._vectors)):
            if self._collection is None:
                raise build_table_error(self._index)
            raise AnswerError(
                f"{self._setting} returned a chunk that does not exist: try another version of the store."
            )
        if np.count_nonzero(ids[1:] == ids[:-1]):
            raise AnswerError(
                f"{self._setting} returned a chunk twice for one query: try another version of the store."
            )
        # The metadata of a document may have changed since the table was filled.
        return ids if mask is None else ids[mask[ids]]
