"""Searching an index: open ones stay in this process, as many as BENCHBENCH_RESIDENT_BYTES hold."""

import json
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TypeVar
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.collections.models import Document
from apps.retrieval.encoders.encoding import query_vectors
from apps.retrieval.filters import Filter, admitted
from apps.retrieval.models import Index
from apps.retrieval.search import exact, full_text
from apps.retrieval.search.approximate import ApproximateView, Approximation, Collections
from apps.retrieval.search.exact import TruncatedView
from apps.retrieval.search.layouts import IndexView, Layout, Nearest
from apps.retrieval.search.lexical_indexes import load_lexical_index
from apps.retrieval.search.vectors import local_vectors, vectors_file
from apps.retrieval.stores.base import Collection
from apps.retrieval.strategies import get_strategy
from apps.retrieval.strategies.base import Answer, Asked
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Mask, ScoredList, Vectors
from benchbench.local_files.sealed import checked_as, is_still

Filters = Sequence[Filter] | None
Texts = Sequence[str] | None
Result = TypeVar("Result")


class SearchError(BenchbenchError):
    """An index that cannot be searched, or not in this way."""

    code = "search"


class OpenIndex:
    """A ready index with all that searching it takes. Chunks are named by their positions, 0..n-1; summaries above
    them, which no list returns, have the positions from n on.

    Batches go in and lists come out, one for each query, and a query's list is the same bits in any batch. `filters`
    holds for each query the metadata that its documents must have (`apps.retrieval.filters`); an empty one admits all.
    """

    def __init__(self, index: Index) -> None:
        if index.status != Index.Status.READY or index.chunk_set is None:
            raise SearchError(f'The index "{index}" is {index.status}: build it before it is searched.')
        self.index = index
        self.chunk_set_id: UUID = index.chunk_set.pk
        rows = index.chunk_set.leaves.order_by("position").values_list("pk", "document_id").iterator(chunk_size=10_000)
        ids = np.fromiter(rows, dtype=[("chunk", "i8"), ("document", "i8")], count=index.chunk_set.chunk_count)
        self.chunk_ids: NDArray[np.int64] = ids["chunk"].copy()
        self.document_ids: NDArray[np.int64] = ids["document"].copy()
        self._strategy = get_strategy(index.strategy)
        self._parameters = self._strategy.check(index.chunk_parameters)
        self._vectors = local_vectors(index) if index.has_vectors else None
        self._file = vectors_file(index)
        self._mapped = checked_as(self._file) if self._vectors is not None and len(self._vectors) else None
        self._truncated: dict[int, TruncatedView] = {}
        self.collections = Collections(index, self._vectors)
        self._words = load_lexical_index(index.lexical_index) if index.lexical_index else None
        if self._words is not None:
            self._words.search(["warm"], 1)  # imports what it needs, which is no part of the first query's cost

    @property
    def is_current(self) -> bool:
        """Whether the file that the vectors are mapped from is still there as it was checked when it was mapped."""
        return self._mapped is None or is_still(self._file, self._mapped)

    @property
    def nbytes(self) -> int:
        layout = vars(self).get("layout")  # where it was asked for
        parts = (self.chunk_ids, self.document_ids, self._vectors, self._words, layout, *self._truncated.values())
        return self.collections.nbytes + sum(part.nbytes for part in parts if part is not None)

    @cached_property
    def layout(self) -> Layout:
        """What each position is, summaries too."""
        assert self.index.chunk_set is not None
        return Layout.of(self.index.chunk_set)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of queries, (q, d), each encoded once and then kept. Raises ModelError, EncoderError."""
        made = [one.vector for one in query_vectors(self.index, texts)]
        return np.array(made, np.float32).reshape(len(texts), self.index.dimension or 0)

    def answers(
        self,
        queries: Vectors,
        depth: int,
        filters: Filters = None,
        *,
        texts: Texts = None,
        dimensions: int | None = None,
    ) -> list[Answer]:
        """The best `depth` chunks for each query vector of (q, d), as the index's strategy finds them by cosine
        similarity, with its calls. Raises SearchError.

        `texts` are those of the queries, for a strategy that reads them. `dimensions`: by the first so many of the d
        alone, of vectors that are of length 1 again.
        """
        near = self.nearest if dimensions is None else self.truncated_to(dimensions).nearest

        def search(chosen: list[int], filter: Filter, mask: Mask | None) -> Sequence[Answer]:
            return self._by_strategy(near, queries[chosen], depth, mask, [texts[n] for n in chosen] if texts else None)

        return self._grouped(len(queries), filters, search)

    def _by_strategy(
        self, near: Nearest, vectors: Vectors, depth: int, mask: Mask | None, texts: Texts = None
    ) -> list[Answer]:
        """What the strategy finds for queries that are filtered alike; `mask` is over the chunks."""
        if mask is not None and self._strategy.has_summaries:
            mask = self.layout.admitted(mask)
        asked = [Asked(text, vector, mask) for text, vector in zip(texts or [""] * len(vectors), vectors, strict=True)]
        return self._strategy.search(asked, IndexView(self.index, lambda: self.layout, near), depth, self._parameters)

    def approximate(
        self,
        queries: Vectors,
        depth: int,
        setting: Ann,
        filters: Filters = None,
        *,
        texts: Texts = None,
    ) -> Approximation:
        """What `answers` does, by the store and the method of `setting`, which `make_arm` made. Not in a transaction.

        It finds what that finds, up to `depth`, in the order of exact scores. Raises SearchError, StoreError.
        """
        return self.collections.search(setting, partial(self._approximate, queries, depth, setting, filters, texts))

    def _approximate(
        self, queries: Vectors, depth: int, setting: Ann, filters: Filters, texts: Texts, collection: Collection | None
    ) -> Approximation:
        vectors = self._required_vectors()
        costs = [0.0] * len(queries)
        notes: defaultdict[str, list[int]] = defaultdict(list)

        def search(chosen: list[int], filter: Filter, mask: Mask | None) -> Sequence[Answer]:
            if self._strategy.has_summaries or self._strategy.asks:
                return [alone(number, mask) for number in chosen]
            view = ApproximateView(self.index, vectors, setting, filter, collection)
            answers = self._by_strategy(view.nearest, queries[chosen], depth, mask)
            for number, seconds in zip(chosen, view.seconds, strict=True):
                costs[number] = seconds * 1000
            for name, places in view.notes.items():
                notes[name] += [chosen[place] for place in places]
            return answers

        def alone(number: int, mask: Mask | None) -> Answer:
            """A query by a strategy that searches several times for it, each time among other positions."""
            view = ApproximateView(self.index, vectors, setting, None, collection)
            started = time.perf_counter()
            (answer,) = self._by_strategy(view.nearest, queries[[number]], depth, mask, texts and [texts[number]])
            ms = (time.perf_counter() - started) * 1000 if answer.ms is None else answer.ms
            costs[number] = ms - view.apart * 1000
            for name in view.notes:
                notes[name].append(number)
            return answer

        return Approximation(self._grouped(len(queries), filters, search), costs, notes)

    def lexical(
        self, texts: Sequence[str], depth: int, filters: Filters = None, *, engine: str = "bm25"
    ) -> list[ScoredList]:
        """The best `depth` chunks that share a word with each text, by BM25 or full text. Raises SearchError."""
        words = self._full_text if engine == full_text.ENGINE else self._bm25()

        def search(chosen: list[int], filter: Filter, mask: Mask | None) -> Sequence[ScoredList]:
            return words([texts[number] for number in chosen], depth, mask=mask)

        return self._grouped(len(texts), filters, search)

    def nearest(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """The nearest positions among those that `mask` (n,) admits, exactly. For the strategy."""
        return exact.nearest(self._required_vectors(), queries, depth, mask=mask)

    def truncated_to(self, dimensions: int) -> TruncatedView:
        """Return the index by the first dimensions of its vectors, which takes a while when it is first asked for."""
        if dimensions not in self._truncated:
            self._truncated[dimensions] = TruncatedView(self._required_vectors(), dimensions)
        return self._truncated[dimensions]

    def prepare(self, dimensions: int | None = None) -> None:
        """Read and make what searches by vectors, or by the first dimensions of them, need of the index."""
        if self._strategy.has_summaries:
            _ = self.layout
        if dimensions is not None:
            self.truncated_to(dimensions)

    def texts(self, positions: Sequence[int]) -> list[str]:
        """Return the texts of chunks in the order of `positions`."""
        wanted = [int(position) for position in positions]
        assert self.index.chunk_set is not None
        chunks = self.index.chunk_set.chunks.filter(position__in=wanted)
        texts = dict(chunks.values_list("position", "text"))
        return [texts[position] for position in wanted]

    def _required_vectors(self) -> Vectors:
        if self._vectors is None:
            raise SearchError(f'The index "{self.index}" has no vectors: make a version of it with an encoder.')
        return self._vectors

    def _bm25(self) -> Callable[..., list[ScoredList]]:
        if self._words is None:
            raise SearchError(f'The index "{self.index}" has no lexical side: make a version of it that has.')
        return self._words.search

    def _full_text(self, texts: Sequence[str], depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        assert self.index.chunk_set is not None
        words = full_text.find_full_text(self.index.chunk_set)
        if words is None:
            raise SearchError(
                f'The chunks of the index "{self.index}" are not indexed for full-text search: starting a benchmark '
                "that searches them so does it."
            )
        return full_text.search_full_text(words, texts, depth, mask=mask)

    def _grouped(
        self,
        count: int,
        filters: Filters,
        search: Callable[[list[int], Filter, Mask | None], Sequence[Result]],
    ) -> list[Result]:
        """Search together what is filtered alike, and put the results in the order of the queries."""
        groups: dict[str, list[int]] = {}
        for number in range(count):
            groups.setdefault(json.dumps(filters[number] if filters else {}, sort_keys=True), []).append(number)
        results: dict[int, Result] = {}
        for key, chosen in groups.items():
            filter = json.loads(key)
            results |= zip(chosen, search(chosen, filter, self._mask(filter)), strict=True)
        return [results[number] for number in range(count)]

    def _mask(self, filter: Filter) -> Mask | None:
        """Which chunks (n,) a filter admits: those of the documents that it admits."""
        if not filter:
            return None
        documents = admitted(Document.objects.filter(collection=self.index.collection_id), filter)
        return np.isin(self.document_ids, np.fromiter(documents.values_list("pk", flat=True), np.int64))


_open: OrderedDict[UUID, OpenIndex] = OrderedDict()


def open_index(index: Index) -> OpenIndex:
    """Return an index ready to be searched, kept in this process while there is room, least recently used out first.

    One whose file was written or replaced since is opened, and so checked, again. Raises SearchError, VectorsError,
    OutputError, LexicalIndexError.
    """
    opened = _open.pop(index.pk, None)
    if opened is None or not opened.is_current:
        opened = OpenIndex(index)
    _open[index.pk] = opened
    while len(_open) > 1 and sum(kept.nbytes for kept in _open.values()) > settings.BENCHBENCH_RESIDENT_BYTES:
        _open.popitem(last=False)
    return opened


def close_indexes() -> None:
    """Forget every open index of this process."""
    _open.clear()
