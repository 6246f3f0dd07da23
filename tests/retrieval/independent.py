"""The rankings of vectors as docs/stores.md defines them: plain NumPy in float64, without any code of BenchBench."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
EQUAL = 1e-13  # differently ordered float64 sums of some hundred products differ by less


class VectorFile(NamedTuple):
    """The ids of documents, rising, and of queries, with their vectors in float64, of length 1."""

    documents: list[str]
    document_vectors: Values
    queries: list[str]
    query_vectors: Values


def read_vectors(path: Path) -> VectorFile:
    with np.load(path) as file:
        order = np.argsort(file["document_ids"])
        return VectorFile(
            file["document_ids"][order].tolist(),
            to_unit_length(file["document_vectors"][order]),
            file["query_ids"].tolist(),
            to_unit_length(file["query_vectors"]),
        )


def to_unit_length(vectors: NDArray[Any]) -> Values:
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True)))


def as_stored(vectors: Values) -> Values:
    """Return unit vectors as an index holds them: rounded to float32."""
    return vectors.astype(np.float32).astype(np.float64)


def score(documents: Values, queries: Values, *, precision: str = "float32", dimensions: int = 0) -> Values:
    """Return the scores of documents compressed so for each query, (q, n)."""
    if dimensions:
        documents, queries = (to_unit_length(vectors[:, :dimensions]) for vectors in (documents, queries))
    match precision:
        case "binary":
            signs = np.where(documents > 0, 1.0, -1.0), np.where(queries > 0, 1.0, -1.0)
            return np.asarray(signs[1] @ signs[0].T / documents.shape[1])
        case "int8":
            steps = np.abs(documents).max(axis=0) / 127
            steps[steps == 0] = 1
            documents = np.rint(documents / steps) * steps
        case _:
            documents = documents.astype(precision).astype(np.float64)
    return np.asarray(queries @ documents.T)


def find_swaps(rankings: NDArray[np.int64], scores: Values, *, band: float = EQUAL) -> Iterator[tuple[int, float]]:
    """Yield each query in whose ranking a document with a score lower by more than `band` comes first, and by how much.

    A document outside the ranking counts as one after its last.
    """
    for number, (ranking, personal) in enumerate(zip(rankings, scores, strict=True)):
        ranked, remaining = personal[ranking], np.delete(personal, ranking)
        lacking = np.maximum.accumulate(np.append(ranked, remaining.max(initial=-np.inf))[::-1])[::-1][1:] - ranked
        if lacking.max() > band:
            yield number, float(lacking.max())
