"""The layout of an index (level and children of each position), and the view of an index for strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.llms.asking import ask
from apps.retrieval.llms.clients import Reply
from apps.retrieval.models import Chunk, ChunkSet, Index
from apps.retrieval.strategies.base import Passage
from benchbench.ir.records import Mask, Positions, ScoredList, Vectors


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The level and the children of each position (n,).

    The children of position p are `children[starts[p]:starts[p + 1]]`, on lower levels; chunks have no children.
    """

    levels: NDArray[np.int16]
    starts: NDArray[np.int64]
    children: Positions

    @classmethod
    def load(cls, chunk_set: ChunkSet) -> Layout:
        count = chunk_set.vector_count
        levels = chunk_set.chunks.order_by("position").values_list("level", flat=True)
        links = Chunk.children.through.objects.filter(from_chunk__chunk_set=chunk_set).order_by(
            "from_chunk__position", "to_chunk__position"
        )
        pairs = np.fromiter(
            links.values_list("from_chunk__position", "to_chunk__position").iterator(10_000),
            dtype=[("parent", "i8"), ("child", "i8")],
        )
        starts = np.searchsorted(pairs["parent"], np.arange(count + 1))
        return cls(np.fromiter(levels.iterator(10_000), np.int16, count), starts, pairs["child"].copy())

    @property
    def nbytes(self) -> int:
        return self.levels.nbytes + self.starts.nbytes + self.children.nbytes

    def find_children(self, positions: Positions) -> Positions:
        """Return the children of all `positions`, distinct and ascending."""
        children = [self.children[self.starts[position] : self.starts[position + 1]] for position in positions.tolist()]
        return np.unique(np.concatenate(children)) if children else np.empty(0, np.int64)

    def extend_mask(self, chunks: Mask) -> Mask:
        """Extend a mask of `chunks` (level 0) to all positions (n,). A summary is admitted if a child is."""
        mask = np.zeros(len(self.levels), bool)
        mask[: len(chunks)] = chunks
        for level in range(1, int(self.levels.max(initial=0)) + 1):
            positions = np.flatnonzero(self.levels == level)
            admitted = np.concatenate([[0], np.cumsum(mask[self.children])])  # number of admitted children before each
            mask[positions] = admitted[self.starts[positions + 1]] > admitted[self.starts[positions]]
        return mask


class Nearest(Protocol):
    """A search for the nearest positions to each of `queries` (q, d), with one mask (n,) for all."""

    def __call__(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]: ...


class IndexView:
    """The view of an open index for a strategy. `near` searches; the layout is read on first use."""

    def __init__(self, index: Index, layout: Callable[[], Layout], near: Nearest) -> None:
        self._index = index
        self._layout = layout
        self._near = near

    @property
    def levels(self) -> NDArray[np.int16]:
        return self._layout().levels

    def find_children(self, positions: Positions) -> Positions:
        return self._layout().find_children(positions)

    def find_nearest(self, queries: Vectors, depth: int, masks: Sequence[Mask | None]) -> list[ScoredList]:
        """Return the nearest positions to each of `queries` (q, d), searching those with the same mask together."""
        groups: dict[int, list[int]] = {}
        for number, mask in enumerate(masks):
            groups.setdefault(id(mask), []).append(number)
        lists: dict[int, ScoredList] = {}
        for chosen in groups.values():
            lists |= zip(chosen, self._near(queries[chosen], depth, mask=masks[chosen[0]]), strict=True)
        return [lists[number] for number in range(len(queries))]

    def load_passages(self, positions: Positions) -> list[Passage]:
        """Return the descriptions of `positions`, in their order."""
        rows = Chunk.objects.filter(chunk_set=self._index.chunk_set_id, position__in=positions.tolist())
        values = rows.values_list("position", "document__external_id", "section__section_id", "text")
        by_position = {position: Passage(document, section or "", text) for position, document, section, text in values}
        return [by_position[position] for position in positions.tolist()]

    def ask(self, prompt: str, accepts: Callable[[str], bool]) -> Reply:
        """Return the answer of the index's language model, stored only if `accepts` returns true. Raises LLMError."""
        return ask(self._index, prompt, accepts)
