"""Documents with scores from a file of results, and their ranking."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from benchbench.errors import BenchbenchError

Id = TypeVar("Id", str, bytes)


class RepeatedDocumentError(BenchbenchError):
    """A document that stands twice among the results of one query."""

    code = "repeated_document"


@dataclass(frozen=True, slots=True)
class ScoredDocuments(Generic[Id]):
    """The results of one query, in any order. `place` begins the sentence of an error: "bm25.run, query 'q1',"."""

    place: str
    documents: list[Id] = field(default_factory=list, repr=False)
    scores: list[float] = field(default_factory=list, repr=False)

    def ranking(self) -> list[Id]:
        """The documents, best first, as trec_eval ranks them. Raises RepeatedDocumentError.

        By score as a float32, falling; equal ones by id, falling. Python orders text by code point, which is the order
        of its UTF-8 bytes. Not our own order, which has ids rising: figures of a file must be those of trec_eval.
        """
        if len(set(self.documents)) < len(self.documents):
            repeated = Counter(self.documents).most_common(1)[0][0]
            name = repeated.decode(errors="replace") if isinstance(repeated, bytes) else repeated
            raise RepeatedDocumentError(
                f"{self.place} ranks the document {name[:60]!a} more than once: a ranking holds it once."
            )
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, in C too
            singles = np.array(self.scores).astype(np.float32)
        if (singles[1:] < singles[:-1]).all():  # as most files are written: nothing to sort
            return list(self.documents)
        return [document for _, document in sorted(zip(singles.tolist(), self.documents, strict=True), reverse=True)]
