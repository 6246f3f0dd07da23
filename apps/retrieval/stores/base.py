"""The contract of a store whose files lie on this machine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Mask, Positions, Vectors

Nominate = Callable[[Vectors, int], Positions]


class StoreError(BenchbenchError):
    """A vector store that cannot do what is asked, or did not do what it promises."""

    code = "store"


class Collection(Protocol):
    """The vectors of an index in a store, open to be searched until it is closed."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many vectors it holds, as the store itself counts them, and their dimension."""

    def nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        """Return the search of one setting and one filter: of a query (d,) and a depth it gives the positions of the
        nearest, at most so many, in any order.

        They are among those that `mask` (n,) admits: the filter applies inside the search, not to what that found.
        """

    def read_back(self, setting: Ann) -> Mapping[str, Any]:
        """Return the options of the setting as the open store has them, where it tells them."""

    def close(self) -> None:
        """Close its files and connections."""


class Store(Protocol):
    """Fills collections from vectors of unit length and opens them again. It has no state.

    A vector's id is its position, a number from 0. A collection is filled once and never changes. The store only
    nominates; what is nominated is scored from the full vectors, by which it is ranked.
    """

    name: str
    packages: dict[str, str]  # what it needs, each with its module; a collection is bound to the first one's version
    fixed: bool  # whether opening leaves its files as they are, byte by byte; else each opening has a copy of its own

    def lack(self, setting: Ann, count: int, dimension: int) -> str:
        """Say why it cannot hold so many vectors of that dimension by this setting; "" where it can."""

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        """Make the collection of `vectors` (n, d), n > 0, in an empty folder, and close it."""

    def open(self, folder: Path, setting: Ann) -> Collection:
        """Open what `fill` made, maybe at another path. Any error means that the folder is damaged: it is refilled."""
