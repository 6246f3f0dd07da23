"""Random vectors of documents and queries."""

from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from apps.retrieval.importing_vectors import import_vectors
from apps.retrieval.indexing import create_index
from tests.factories import make_collection
from tests.kept import made_once

COUNT, DIMENSION = 400, 16  # of the random vectors


@made_once
def make_random():
    """Random vectors of documents, a tenth of them red and the rest green."""
    random = np.random.default_rng(1).standard_normal((COUNT, DIMENSION)).astype(np.float32)
    documents = [
        {"external_id": f"d{n:03}", "text": f"text {n}", "metadata": {"colour": "green" if n % 10 else "red"}}
        for n in range(COUNT)
    ]
    index = create_index(make_collection("random", documents), name="random")
    with NamedTemporaryFile(suffix=".npz") as file:
        np.savez(
            file.name,
            document_ids=np.array([document["external_id"] for document in documents]),
            document_vectors=random,
            query_ids=np.array([], str),
            query_vectors=np.empty((0, DIMENSION), np.float32),
        )
        import_vectors(index, Path(file.name))
    return index


def unit(count, dimension=16, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
