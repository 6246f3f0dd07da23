"""The protocol of stores with files on this machine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Mask, Positions, Vectors

Nominate = Callable[[Vectors, int], Positions]


class StoreError(BenchbenchError):
    """A vector store cannot do the request, or returned an invalid result."""

    code = "store"


class AnswerError(StoreError):
    """A vector store returned an invalid result for a query."""


class Collection(Protocol):
    """The vectors of an index in a store, open for search until closed."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of vectors, as counted by the store, and their dimension."""

    def build_nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        """Return a search function for one setting and one filter.

        Given a query (d,) and a depth, it returns at most so many nearest positions in any order. They are among those
        that `mask` (n,) admits: the filter applies inside the search, not to its results.
        """

    def read_back(self, setting: Ann) -> Mapping[str, object]:
        """Return the setting's options as the open store reports them."""

    def close(self) -> None:
        """Close its files and connections."""


class Store(Protocol):
    """A vector store: it fills collections with unit vectors and opens them. It has no state.

    A vector's id is its position, from 0. A collection is filled once and never changes. The store only nominates
    positions; they are scored and ranked by the full vectors.
    """

    name: str
    packages: dict[str, str]  # required packages with their modules; a collection depends on the first one's version
    fixed: bool  # whether opening leaves its files unchanged; otherwise each opening uses its own copy

    def describe_obstacle(self, setting: Ann, count: int, dimension: int) -> str:
        """Return why it cannot hold `count` vectors of this dimension with this setting; "" if it can."""

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        """Create the collection of `vectors` (n, d), n > 0, in an empty folder, and close it."""

    def open(self, folder: Path, setting: Ann) -> Collection:
        """Open a filled folder, perhaps moved since. Any error means that it is damaged and will be refilled."""
