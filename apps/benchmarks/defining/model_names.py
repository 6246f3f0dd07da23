"""Names of models in a matrix that a client states."""

from collections.abc import Mapping
from typing import Any

from apps.retrieval.encoders.admitting import PUBLISHED
from benchbench.ir.planning.matrix import MatrixError


def require_published(matrix: Any) -> None:
    """Raise MatrixError for a reranker that is no published name: no client names a folder of the server.

    What else may be wrong with a matrix is left to the use case.
    """
    rerankers = matrix.get("rerankers") if isinstance(matrix, Mapping) else None
    for name in rerankers if isinstance(rerankers, list) else ():
        if isinstance(name, str) and name.strip() and not PUBLISHED.fullmatch(name):
            raise MatrixError(
                f'rerankers: {name[:80]!r} is not the name of a model, as in "cross-encoder/ms-marco-MiniLM-L6-v2": '
                "folders of the server are named by commands only.",
                field="rerankers",
            )
