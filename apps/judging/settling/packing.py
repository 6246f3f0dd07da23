"""Packing of what a round asks: its question and its items as arrays in a few hundred kilobytes, read by one statement.

To read the rankings of 16 runs and the judgments of their queries from the tables takes seconds.
"""

import io
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.judging.models import Round
from apps.judging.ordering import Question, Truths
from apps.judging.scales import grades_of
from benchbench.ir.judging.evidence import AXES
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Measure

Numbers = NDArray[np.int64]
UNRANKED = 0  # in place of a rank


def pack(question: Question, items: Numbers) -> bytes:
    """Return a question and `items` (size,), the id of the item of each pair of its pool, 0 where that is none."""
    pool = question.pool
    ranks = pool.ranks[(slice(None), *pool.cells.T)]
    arrays = {
        "lengths": np.array([len(ids) for ids in pool.documents], np.int64),
        "documents": np.array([document for ids in pool.documents for document in ids], np.int64),
        "ranks": np.where(np.isfinite(ranks), ranks, UNRANKED).astype(np.uint16),
        "answered": pool.answered,
        "judged": np.array([len(truth) for truth in question.truths], np.int64),
        "known": np.array([pair for truth in question.truths for pair in truth.items()], np.int64).reshape(-1, 2),
        "items": items,
        "axes": np.empty((0, AXES), np.float16) if question.axes is None else question.axes,
    }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack(packed: bytes, round: Round) -> tuple[Question, Numbers]:
    """Return what `pack` packed of a round."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as file:
        arrays: dict[str, NDArray[Any]] = dict(file)
    documents = tuple(map(tuple, _cut(arrays["documents"].tolist(), arrays["lengths"])))
    known = arrays["known"].tolist()
    truths: Truths = [dict(pairs) for pairs in _cut(known, arrays["judged"])]
    pool = Pool(documents, _cells(arrays), arrays["answered"], round.depth)
    axes = arrays["axes"] if len(arrays["axes"]) else None
    question = Question(pool, Measure.parse(round.measure), grades_of(round.scale), truths, round.seed, axes)
    return question, arrays["items"]


def _cells(arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return the ranks of a pool, (R, Q, width): infinite where a run does not rank the document."""
    lengths, ranks = arrays["lengths"], arrays["ranks"].astype(np.float64)
    width = max(int(lengths.max(initial=0)), 1)
    cells = np.full((len(ranks), len(lengths), width), np.inf)
    ranks[ranks == UNRANKED] = np.inf
    cells[:, np.arange(width) < lengths[:, None]] = ranks
    return cells


def _cut(whole: Sequence[Any], lengths: NDArray[Any]) -> list[Sequence[Any]]:
    return [whole[start:stop] for start, stop in pairwise(accumulate(lengths.tolist(), initial=0))]
