"""Stages of a plan: each a piece of work that several runs may need, with a key that says all it depends on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@lru_cache(maxsize=10_000)  # asked for every query of every run
def stage_key(kind: str, *parts: str | float | None) -> str:
    """A name for a stage that tells it from every other of its benchmark, and that a reader can make out."""
    return f"{kind}({', '.join(str(part) for part in parts if part is not None)})"


@dataclass(frozen=True, slots=True)
class EncodeStage:
    """The vectors of the query texts, by the encoder of an index."""

    index: str | None

    @property
    def key(self) -> str:
        return stage_key("encode", self.index)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class DenseStage:
    """The chunks nearest to each query vector, exact or by the ANN setting `ann`, `depth` of them.

    They are near by the first `dimensions` of their vectors, or by all.
    """

    index: str | None
    ann: str
    depth: int
    dimensions: int | None = None

    @property
    def key(self) -> str:
        of = f"{self.dimensions} dimensions" if self.dimensions else None
        return stage_key("dense", self.index, self.ann, None if self.ann == "exact" else self.depth, of)

    @property
    def needs(self) -> tuple[str, ...]:
        return (EncodeStage(self.index).key,)


@dataclass(frozen=True, slots=True)
class AskStage(DenseStage):
    """The chunks that a strategy finds which asks a language model while it searches, `depth` of them.

    What it finds at one depth is no part of what it finds at another, and a second time it may be something else.
    """

    @property
    def key(self) -> str:
        of = f"{self.dimensions} dimensions" if self.dimensions else None
        return stage_key("asked", self.index, self.depth, of)


@dataclass(frozen=True, slots=True)
class LexicalStage:
    """The chunks that the lexical engine `engine` scores highest, `depth` of them."""

    index: str | None
    engine: str
    depth: int

    @property
    def key(self) -> str:
        return stage_key("lexical", self.index, self.engine)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class FuseStage:
    """One list of the first `candidates` entries of a dense and a lexical list, cut to `candidates` again."""

    index: str | None
    dense: str
    lexical: str
    fusion: str
    constant: int
    weights: tuple[float, float] | None
    candidates: int

    @property
    def key(self) -> str:
        how = f"rrf {self.constant}" if self.fusion == "rrf" else f"{self.fusion} {self.weights}"
        return stage_key("fuse", self.dense, self.lexical, how, self.candidates)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.dense, self.lexical)


@dataclass(frozen=True, slots=True)
class RerankStage:
    """The first `depth` chunks of a list in the order of a reranker's scores; what lies deeper is dropped."""

    index: str | None
    source: str
    reranker: str
    depth: int

    @property
    def key(self) -> str:
        return stage_key("rerank", self.source, self.reranker, self.depth)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.source,)


Stage = EncodeStage | DenseStage | AskStage | LexicalStage | FuseStage | RerankStage
