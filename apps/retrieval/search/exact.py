"""Exact nearest neighbours by matrix product, optionally by only the first dimensions of vectors."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from apps.retrieval.encoders.gpu_memory import Budget, place_vectors
from benchbench.ir.compression import truncate
from benchbench.ir.ranking import RESCORE_BAND, RankingError, nominate, score_pairs, top
from benchbench.ir.records import Mask, Positions, ScoredList, Vectors

# Bytes of the float32 similarities of all queries with one block of vectors, and on a GPU of the block too.
BUDGET = Budget("Exact search", 64 * 2**20)
GPU_BLOCKS = 8  # times as large is a block on a GPU
GATHERED_BYTES = 4 * 2**20  # of the copied rows of a block, which then stay in the processor's cache


def find_nearest(
    vectors: Vectors,
    queries: Vectors,
    depth: int,
    *,
    mask: Mask | None = None,
    device: str | None = None,
) -> list[ScoredList]:
    """Return the best `depth` rows of `vectors` (n, d) for each of `queries` (q, d), by inner product, then row number.

    `mask` (n,) admits rows before they are ranked. Products are computed in float32, block by block; the ranking uses
    float64 scores of single pairs, so that it does not depend on blocks, batches or threads (`nominate`). Uses about
    BUDGET.size bytes of memory in addition to the vectors. torch computes the products on `device`, by default the GPU
    used by models of this process, where read-only vectors stay (`place_vectors`); without one, NumPy does.
    """
    device = device or find_gpu()
    admitted = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    nominees = [admitted[rows] for rows in _nominate(vectors, admitted, queries, depth, device)]
    return [
        top(score_pairs(vectors[rows], query), depth, ids=rows) for query, rows in zip(queries, nominees, strict=True)
    ]


def _take_rows(vectors: Any, admitted: Positions) -> Any:
    """Return ascending rows of an array or tensor, without a copy if they are contiguous, such as those of a level."""
    if _are_contiguous(admitted):
        return vectors[admitted[0] : admitted[-1] + 1]
    return vectors[admitted]


def _are_contiguous(admitted: Positions) -> bool:
    return bool(len(admitted) and admitted[-1] - admitted[0] + 1 == len(admitted))


def find_gpu() -> str | None:
    """Return the GPU if torch is loaded and multiplies in full float32, as nomination requires."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or torch.backends.cuda.matmul.allow_tf32:
        return None
    return "cuda"


def _nominate(
    vectors: Vectors, admitted: Positions, queries: Vectors, depth: int, device: str | None
) -> list[Positions]:
    """Return for each query the indices, ascending, of the admitted rows that may be among its best."""

    def scan(block: Sequence[int]) -> Iterable[tuple[Positions, Vectors]]:
        rows = admitted[block[0] : block[-1] + 1]
        if device is None:
            return scan_numpy(_take_rows(vectors, rows), queries, depth)
        return scan_torch(_take_rows(place_vectors(vectors, device), rows), queries, depth, device)

    if device is not None:
        size, width = GPU_BLOCKS * BUDGET.size, vectors.shape[1]
    elif _are_contiguous(admitted):
        size, width = BUDGET.size, 0
    else:
        size, width = min(BUDGET.size, GATHERED_BYTES), vectors.shape[1]
    count = max(1, depth, size // (4 * max(1, len(queries) + width)))
    nominees: list[list[Positions]] = [[] for _ in queries]
    nominee_scores: list[list[Vectors]] = [[] for _ in queries]
    for block, nominated in BUDGET.run(range(len(admitted)), scan, count):
        for number, (chosen, similarities) in enumerate(nominated):
            nominees[number].append(chosen + block[0])
            nominee_scores[number].append(similarities)
    return [_merge_blocks(*blocks, depth) for blocks in zip(nominees, nominee_scores, strict=True)]


def _merge_blocks(nominees: list[Positions], nominee_scores: list[Vectors], depth: int) -> Positions:
    """Return the nominees of all blocks that may be among the best overall."""
    if len(nominees) < 2:
        return nominees[0] if nominees else np.empty(0, np.int64)
    return np.concatenate(nominees)[nominate(np.concatenate(nominee_scores), depth)]


def scan_numpy(block: Vectors, queries: Vectors, depth: int) -> Iterable[tuple[Positions, Vectors]]:
    for similarities in queries @ block.T:
        chosen = nominate(similarities, depth)
        yield chosen, similarities[chosen]


def scan_torch(block: object, queries: Vectors, depth: int, device: str) -> Iterable[tuple[Positions, Vectors]]:
    """Nominate like `scan_numpy`, for all queries at once. Only nominees are copied from the device."""
    import torch

    if not isinstance(block, torch.Tensor):
        block = torch.tensor(block, device=device)
    similarities = torch.tensor(queries, device=device) @ block.T
    best = similarities.topk(min(depth, len(block)), dim=1).values
    if best.isnan().any():  # topk ranks NaN highest
        raise RankingError("A similarity is not a number (NaN): check the vectors for zeros or infinities.")
    numbers, columns = (similarities >= best[:, -1:] - RESCORE_BAND).nonzero(as_tuple=True)
    nominee_scores = similarities[numbers, columns].cpu().numpy()
    ends = np.searchsorted(numbers.cpu().numpy(), np.arange(1, len(queries)))
    return zip(np.split(columns.cpu().numpy(), ends), np.split(nominee_scores, ends), strict=True)


class TruncatedView:
    """A view of an open index by the first `dimensions` of its vectors (n, d). Raises TruncationError."""

    def __init__(self, vectors: Vectors, dimensions: int) -> None:
        self._dimensions = dimensions
        self._vectors = truncate(vectors, dimensions, kind="chunk")
        self._vectors.flags.writeable = False  # so that they may stay on a GPU

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes

    def find_nearest(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """Return the nearest chunks to each of `queries` (q, d) among those that `mask` (n,) admits."""
        return find_nearest(self._vectors, truncate(queries, self._dimensions, kind="query"), depth, mask=mask)
