"""The flat strategy: chunks of one level, each query compared with all of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.strategies.base import Mask, Piece, Searchable, StrategyError
from benchbench.ir.chunking import check_chunk_parameters, spans
from benchbench.ir.records import ScoredList

EXAMPLE = '{} for whole documents, or {"size": 500, "overlap": 50, "title": false}, sizes in characters'


class FlatStrategy:
    """Without parameters a document is one chunk, `title + " " + text`; it may be empty.

    With `size` and `overlap`, windows of its text; `title: true` puts the title before each of them. A document whose
    text is blank is then one chunk of its title.
    """

    name = "flat"
    requires_llm = False

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if not parameters:
            return {}
        complete = {"overlap": 0, "title": False, **parameters}
        kinds = {"size": int, "overlap": int, "title": bool}
        if complete.keys() != kinds.keys() or any(type(complete[key]) is not kind for key, kind in kinds.items()):
            raise StrategyError(f"Chunk parameters are {EXAMPLE}; not {dict(parameters)}.", field="chunk_parameters")
        check_chunk_parameters(size=complete["size"], overlap=complete["overlap"])
        return complete

    def chunks(self, title: str, text: str, parameters: Mapping[str, Any]) -> Iterable[Piece]:
        if not parameters:
            return [Piece(f"{title} {text}".strip(), 0, len(text))]
        prefix = f"{title} " if parameters["title"] else ""
        windows = spans(text, size=parameters["size"], overlap=parameters["overlap"])
        if not windows:
            return [Piece(title.strip(), 0, 0)] if title.strip() else []
        return [Piece(f"{prefix}{text[start:end]}".strip(), start, end) for start, end in windows]

    def search(
        self, index: Searchable, queries: NDArray[np.float32], depth: int, *, mask: Mask | None = None
    ) -> Sequence[ScoredList]:
        return index.nearest(queries, depth, mask=mask)
