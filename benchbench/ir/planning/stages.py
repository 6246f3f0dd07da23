"""Stages of a plan: work that several runs may need, with a key of all that it depends on, and a name for people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import ClassVar

from benchbench.ir.planning.query_text import PROMPT_VERSION

NAMES = {"bm25": "lexical", "fts": "full text"}
MAX_LENGTH, MAX_BYTES, KEPT_LENGTH = 1000, 2500, 400  # of a key that PostgreSQL can index; characters of a longer one


@lru_cache(maxsize=10_000)  # asked for every query of every run
def name_stage(kind: str, *values: str | float | None) -> str:
    """Return a readable name of a stage that is unique in its benchmark; a hash ends a long one."""
    name = f"{kind}({', '.join(str(value) for value in values if value is not None)})"
    is_long = len(name) > MAX_LENGTH or len(name.encode()) > MAX_BYTES
    return f"{name[:KEPT_LENGTH]}… sha256:{sha256(name.encode()).hexdigest()})" if is_long else name


@dataclass(frozen=True, slots=True)
class RewriteStage:
    """The texts that the language model `llm` makes of each query, as `method`, the text of a `QueryText`, says."""

    method: str
    llm: str

    name: ClassVar[str] = "rewritten"

    @property
    def key(self) -> str:
        return name_stage("query", self.method, f"prompt {PROMPT_VERSION}", self.llm)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Wording:
    """The text by its number from 0 of those that `stage` makes. A passage is encoded as documents are."""

    stage: str
    position: int = 0
    is_passage: bool = False

    def __str__(self) -> str:
        return f"{self.stage}[{self.position}]"


@dataclass(frozen=True, slots=True)
class EncodeStage:
    """The vectors of the query texts, by the encoder of an index; of the queries as asked, where no `wording` is."""

    index: str | None
    wording: Wording | None = None

    name: ClassVar[str] = "encoded"

    @property
    def key(self) -> str:
        return name_stage("encode", self.index, _render_wording(self.wording))

    @property
    def needs(self) -> tuple[str, ...]:
        return _list_rewriting(self.wording)


@dataclass(frozen=True, slots=True)
class DenseStage:
    """The chunks nearest to each query vector, exact or by the ANN setting `ann`, `depth` of them.

    They are near by the first `dimensions` of their vectors, or by all; a `filter_share` of the documents is admitted.
    """

    index: str | None
    ann: str
    depth: int
    dimensions: int | None = None
    wording: Wording | None = None
    filter_share: float | None = None

    @property
    def key(self) -> str:
        depth = None if self.ann == "exact" else self.depth
        return name_stage("dense", self.index, self.ann, depth, *self._list_restrictions())

    def _list_restrictions(self) -> tuple[str | float | None, ...]:
        dimensions = f"{self.dimensions} dimensions" if self.dimensions else None
        return dimensions, self.filter_share and f"share {self.filter_share}", _render_wording(self.wording)

    @property
    def needs(self) -> tuple[str, ...]:
        return (EncodeStage(self.index, self.wording).key,)

    @property
    def name(self) -> str:
        suffix = f", {self.dimensions} dimensions" if self.dimensions else ""
        return f"dense{_name_method(self.ann)}{suffix}{_name_text(self.wording, self.filter_share)}"


@dataclass(frozen=True, slots=True)
class AskStage(DenseStage):
    """Search by a strategy that asks a language model, for `depth` chunks.

    `ann` is the method for comparing vectors. The result at one depth need not contain that at another, and a second
    search may give another result.
    """

    @property
    def name(self) -> str:
        return f"by language model{_name_method(self.ann)}{_name_text(self.wording, self.filter_share)}"

    @property
    def key(self) -> str:
        ann = None if self.ann == "exact" else self.ann
        return name_stage("asked", self.index, ann, self.depth, *self._list_restrictions())


@dataclass(frozen=True, slots=True)
class LexicalStage:
    """The chunks that the engine `lexical` scores highest, `depth` of them, among a `filter_share` of the documents."""

    index: str | None
    lexical: str
    depth: int
    wording: Wording | None = None
    filter_share: float | None = None

    @property
    def key(self) -> str:
        share = self.filter_share and f"share {self.filter_share}"
        return name_stage("lexical", self.index, self.lexical, share, _render_wording(self.wording))

    @property
    def needs(self) -> tuple[str, ...]:
        return _list_rewriting(self.wording)

    @property
    def name(self) -> str:
        return NAMES.get(self.lexical, self.lexical) + _name_text(self.wording, self.filter_share)


@dataclass(frozen=True, slots=True)
class EngineStage:
    """The documents, by primary key, that the search engine `engine`, the text of an `EngineSetting`, ranks first.

    An engine may rank others first if it is asked for more, so the key has the `depth`. A score is 1 / rank: engines
    order by more than their scores.
    """

    engine: str
    depth: int

    @property
    def key(self) -> str:
        return name_stage("engine", self.engine, self.depth)

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    @property
    def name(self) -> str:
        return f"asked of {self.engine}"


@dataclass(frozen=True, slots=True)
class LocateStage:
    """A chunk of an index for each of the `depth` documents that an engine ranked, in its order.

    It is the chunk that the list `partner` ranks first, otherwise the document's first chunk.
    """

    index: str | None
    source: str
    depth: int
    partner: str | None = None

    name: ClassVar[str] = "located"

    @property
    def key(self) -> str:
        return name_stage("locate", self.index, self.source, self.partner)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.source, self.partner) if self.partner else (self.source,)


@dataclass(frozen=True, slots=True)
class MergeStage:
    """One list of the first `candidates` entries of the lists that the variants of a query found, cut to `candidates`
    again: by reciprocal rank fusion, each variant alike."""

    index: str | None
    lists: tuple[str, ...]
    candidates: int

    @property
    def key(self) -> str:
        return name_stage("merge", self.lists[0], self.candidates)  # which says how many variants there are

    @property
    def needs(self) -> tuple[str, ...]:
        return self.lists

    @property
    def name(self) -> str:
        return f"{'lexical' if self.lists[0].startswith('lexical') else 'dense'} variants fused"


@dataclass(frozen=True, slots=True)
class FuseStage:
    """One list of the first `candidates` entries of a dense and a lexical list, cut to `candidates` again.

    One of the two may be that of a search engine.
    """

    index: str | None
    dense: str
    lexical: str
    fusion: str
    rrf_k: int
    weights: tuple[float, float] | None
    candidates: int

    name: ClassVar[str] = "fused"

    @property
    def key(self) -> str:
        method = f"rrf {self.rrf_k}" if self.fusion == "rrf" else f"{self.fusion} {self.weights}"
        return name_stage("fuse", self.dense, self.lexical, method, self.candidates)

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

    name: ClassVar[str] = "reranked"

    @property
    def key(self) -> str:
        return name_stage("rerank", self.source, self.reranker, self.depth)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.source,)


def _render_wording(wording: Wording | None) -> str | None:
    return None if wording is None else str(wording)


def _name_method(ann: str) -> str:
    """Return the part of a name for the vector search method; "" for exact search in memory."""
    return "" if ann == "exact" else f", {ann.partition('(')[0]}"


def _name_text(wording: Wording | None, share: float | None) -> str:
    """Return the part of a name for the documents and the searched text; "" for all, and the query as asked."""
    among = "" if share is None else f", {share:g} of the documents"
    if wording is None:
        return among
    return f"{among}, passage" if wording.is_passage else f"{among}, text {wording.position + 1}"


def _list_rewriting(wording: Wording | None) -> tuple[str, ...]:
    return () if wording is None else (wording.stage,)


OfIndex = EncodeStage | DenseStage | AskStage | LexicalStage | MergeStage | LocateStage | FuseStage | RerankStage
Stage = (  # in the order in which they run
    RewriteStage
    | EncodeStage
    | DenseStage
    | AskStage
    | LexicalStage
    | EngineStage
    | MergeStage
    | LocateStage
    | FuseStage
    | RerankStage
)
Searching = DenseStage | AskStage | LexicalStage | MergeStage | LocateStage | FuseStage | RerankStage  # list chunks
Search = DenseStage | AskStage | LexicalStage | LocateStage  # each makes a list without reading another
