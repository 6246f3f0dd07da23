"""Search of open indexes, which stay in this process up to BENCHBENCH_RESIDENT_BYTES."""

import json
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TypeVar
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval import process
from apps.retrieval.encoders.encoding import compute_query_vectors
from apps.retrieval.filters import Filter
from apps.retrieval.models import Index
from apps.retrieval.search import exact
from apps.retrieval.search.admission import Admission
from apps.retrieval.search.approximate import ApproximateView, Approximation, Collections
from apps.retrieval.search.exact import TruncatedView
from apps.retrieval.search.layouts import IndexView, Layout, Nearest
from apps.retrieval.search.vectors import locate_vectors, map_vectors
from apps.retrieval.search.words import OpenWords, SearchError
from apps.retrieval.stores.base import Collection
from apps.retrieval.strategies import get_strategy
from apps.retrieval.strategies.base import Answer, SearchQuery
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.records import Mask, Positions, ScoredList, Vectors
from benchbench.local_files.sealed import find_identity, is_unchanged

Filters = Sequence[Filter] | None
Texts = Sequence[str] | None
Result = TypeVar("Result")


class OpenIndex:
    """A ready index, loaded for search. Chunks have the positions 0..n-1.

    Summaries have the positions from n on and are never returned. Searches take batches of queries and return a list
    for each; its bits do not depend on the batch. `filters` has for each query the metadata that its documents must
    have (`apps.retrieval.filters`); an empty filter admits all.
    """

    def __init__(self, index: Index) -> None:
        if index.status != Index.Status.READY or index.chunk_set is None:
            raise SearchError(f'The index "{index}" is {index.status}: build it first.')
        self.index = index
        self.chunk_set_id: UUID = index.chunk_set.pk
        rows = index.chunk_set.leaves.order_by("position").values_list("pk", "document_id").iterator(chunk_size=10_000)
        ids = np.fromiter(rows, dtype=[("chunk", "i8"), ("document", "i8")], count=index.chunk_set.chunk_count)
        self.chunk_ids: NDArray[np.int64] = ids["chunk"].copy()
        self.document_ids: NDArray[np.int64] = ids["document"].copy()
        self._admission = Admission(index, self.document_ids)
        self._strategy = get_strategy(index.strategy)
        self._parameters = self._strategy.check(index.chunk_parameters)
        self._vectors = map_vectors(index) if index.has_vectors else None
        self._truncated: dict[int, TruncatedView] = {}
        self.collections = Collections(index, self._vectors)
        self.words = OpenWords(index)
        files = [locate_vectors(index)] if self._vectors is not None and len(self._vectors) else []
        self._mapped = {file: find_identity(file) for file in files}

    @property
    def is_current(self) -> bool:
        """Return whether the mapped files of vectors and words are unchanged since they were checked."""
        return self.words.is_current and all(is_unchanged(file, identity) for file, identity in self._mapped.items())

    @property
    def nbytes(self) -> int:
        layout = vars(self).get("layout")  # if already loaded
        structures = (self.chunk_ids, self.document_ids, self._vectors, self.words, layout, *self._truncated.values())
        return (
            self.collections.nbytes
            + self._admission.nbytes
            + sum(structure.nbytes for structure in structures if structure is not None)
        )

    @cached_property
    def layout(self) -> Layout:
        """Return the layout of all positions, including summaries."""
        assert self.index.chunk_set is not None
        return Layout.load(self.index.chunk_set)

    @cached_property
    def _first_chunks(self) -> dict[int, int]:
        documents, positions = np.unique(self.document_ids[: len(self.chunk_ids)], return_index=True)
        return dict(zip(documents.tolist(), positions.tolist(), strict=True))

    def locate(self, documents: Positions, partner: Positions | None = None) -> Positions:
        """Return the position of one chunk of each document: the first of `partner` that it has, else its first chunk.

        `documents` are primary keys. Raises SearchError for a document that the index does not have.
        """
        chosen = dict(self._first_chunks)
        if partner is not None:
            chosen |= dict(zip(self.document_ids[partner[::-1]].tolist(), partner[::-1].tolist(), strict=True))
        try:
            return np.array([chosen[document] for document in documents.tolist()], np.int64)
        except KeyError as error:
            raise SearchError(
                f'The index "{self.index}" has no chunk of the document {error.args[0]}, which an engine found: build '
                "a new version of the index."
            ) from None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of queries, (q, d), each encoded once and cached. Raises ModelError, EncoderError."""
        vectors = [one.vector for one in compute_query_vectors(self.index, texts)]
        return np.array(vectors, np.float32).reshape(len(texts), self.index.dimension or 0)

    def find_answers(
        self,
        queries: Vectors,
        depth: int,
        filters: Filters = None,
        *,
        texts: Texts = None,
        dimensions: int | None = None,
    ) -> list[Answer]:
        """Return the best `depth` chunks for each query vector of (q, d) by the index's strategy, with its calls.

        The strategy compares by cosine similarity. `texts` are those of the queries, for strategies that read them.
        With `dimensions`, only so many first dimensions are compared, scaled to length 1. Raises SearchError.
        """
        near = self.find_nearest if dimensions is None else self.truncate_to(dimensions).find_nearest

        def search(chosen: list[int], filter: Filter, mask: Mask | None) -> Sequence[Answer]:
            return self._run_strategy(near, queries[chosen], depth, mask, [texts[n] for n in chosen] if texts else None)

        return self._search_grouped(len(queries), filters, search)

    def _run_strategy(
        self, near: Nearest, vectors: Vectors, depth: int, mask: Mask | None, texts: Texts = None
    ) -> list[Answer]:
        """Search by the strategy for queries with the same filter. `mask` is over the chunks."""
        if mask is not None and self._strategy.has_summaries:
            mask = self.layout.extend_mask(mask)
        queries = [
            SearchQuery(text, vector, mask) for text, vector in zip(texts or [""] * len(vectors), vectors, strict=True)
        ]
        return self._strategy.search(queries, IndexView(self.index, lambda: self.layout, near), depth, self._parameters)

    def approximate(
        self,
        queries: Vectors,
        depth: int,
        setting: Ann,
        filters: Filters = None,
        *,
        texts: Texts = None,
    ) -> Approximation:
        """Search like `find_answers`, by the store and method of `setting`, built by `make_arm`. Not in a transaction.

        Return the found chunks, up to `depth`, in the order of exact scores. Raises SearchError, StoreError.
        """
        return self.collections.search(setting, partial(self._approximate, queries, depth, setting, filters, texts))

    def _approximate(
        self, queries: Vectors, depth: int, setting: Ann, filters: Filters, texts: Texts, collection: Collection | None
    ) -> Approximation:
        vectors = self._require_vectors()
        costs = [0.0] * len(queries)
        notes: defaultdict[str, list[int]] = defaultdict(list)

        def search(chosen: list[int], filter: Filter, mask: Mask | None) -> Sequence[Answer]:
            if self._strategy.has_summaries or self._strategy.asks:
                return [search_one(number, mask) for number in chosen]
            view = ApproximateView(self.index, vectors, setting, filter, collection)
            answers = self._run_strategy(view.find_nearest, queries[chosen], depth, mask)
            for number, seconds in zip(chosen, view.seconds, strict=True):
                costs[number] = seconds * 1000
            for name, rows in view.notes.items():
                notes[name] += [chosen[row] for row in rows]
            return answers

        def search_one(number: int, mask: Mask | None) -> Answer:
            """Search for one query by a strategy that searches several times, each time with another mask."""
            view = ApproximateView(self.index, vectors, setting, None, collection)
            started = time.perf_counter()
            (answer,) = self._run_strategy(view.find_nearest, queries[[number]], depth, mask, texts and [texts[number]])
            ms = (time.perf_counter() - started) * 1000 if answer.ms is None else answer.ms
            costs[number] = ms - view.setup_seconds * 1000
            for name in view.notes:
                notes[name].append(number)
            return answer

        return Approximation(self._search_grouped(len(queries), filters, search), costs, notes)

    def search_words(
        self, texts: Sequence[str], depth: int, filters: Filters = None, *, lexical: str = "bm25"
    ) -> list[ScoredList]:
        """Return the best `depth` chunks that share a word with each text, by BM25 or full text. Raises SearchError."""
        setting = Lexical.parse(lexical)

        def search(chosen: list[int], filter: Filter, mask: Mask | None) -> Sequence[ScoredList]:
            return self.words.search(setting, [texts[number] for number in chosen], depth, mask=mask)

        return self._search_grouped(len(texts), filters, search)

    def find_nearest(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """Return the nearest positions among those that `mask` (n,) admits, by exact search, for the strategy."""
        return exact.find_nearest(self._require_vectors(), queries, depth, mask=mask)

    def truncate_to(self, dimensions: int) -> TruncatedView:
        """Return the index by the first dimensions of its vectors. Slow on first use."""
        if dimensions not in self._truncated:
            self._truncated[dimensions] = TruncatedView(self._require_vectors(), dimensions)
        return self._truncated[dimensions]

    def prepare(self, dimensions: int | None = None, share: float | None = None) -> None:
        """Load what searches by vectors, or by their first dimensions, or among a share of documents need."""
        if share is not None:
            self._admission.mask_share(share)
        if self._strategy.has_summaries:
            _ = self.layout
        if dimensions is not None:
            self.truncate_to(dimensions)

    def load_texts(self, positions: Sequence[int]) -> list[str]:
        """Return the texts of chunks in the order of `positions`."""
        position_list = [int(position) for position in positions]
        assert self.index.chunk_set is not None
        chunks = self.index.chunk_set.chunks.filter(position__in=position_list)
        texts = dict(chunks.values_list("position", "text"))
        return [texts[position] for position in position_list]

    def _require_vectors(self) -> Vectors:
        if self._vectors is None:
            raise SearchError(f'The index "{self.index}" has no vectors: make a version of it with an encoder.')
        return self._vectors

    def _search_grouped(
        self,
        count: int,
        filters: Filters,
        search: Callable[[list[int], Filter, Mask | None], Sequence[Result]],
    ) -> list[Result]:
        """Search queries with the same filter together, and return the results in the order of the queries."""
        groups: dict[str, list[int]] = {}
        for number in range(count):
            groups.setdefault(json.dumps(filters[number] if filters else {}, sort_keys=True), []).append(number)
        results: dict[int, Result] = {}
        for key, chosen in groups.items():
            filter = json.loads(key)
            results |= zip(chosen, search(chosen, filter, self._admission.build_mask(filter)), strict=True)
        return [results[number] for number in range(count)]


_open, _opening = OrderedDict[UUID, OpenIndex](), threading.RLock()
process.add(_open.clear)


def open_index(index: Index) -> OpenIndex:
    """Return an index ready for search, from this process's LRU cache.

    An index whose files changed since is opened, and so checked, again. Raises SearchError, VectorsError, OutputError.
    """
    with _opening:  # threads of a run under load share them
        opened = _open.pop(index.pk, None)
        _open[index.pk] = opened = opened if opened and opened.is_current else OpenIndex(index)
        limit = settings.BENCHBENCH_RESIDENT_BYTES
        while len(_open) > 1 and sum(resident.nbytes for resident in _open.values()) > limit:
            _open.popitem(last=False)
        return opened
