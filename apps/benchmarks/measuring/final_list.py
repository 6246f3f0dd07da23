"""The final list of one query, as it was searched or imported, before it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.records import Calls

NO_IDS = np.empty(0, np.int64)
NO_SCORES = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class FinalList:
    """One query's final list: chunks best first (c,), their documents (d,), and how many of these each run returns.

    `chunk_ranks` (d,) is the rank, from 1, of the chunk that brought each document; None where each chunk is a document
    of its own. `lengths` and `short` are by the place of the runs, `run_ids`. `short`: as many chunks were kept as the
    run keeps at most, and they hold fewer documents than the greatest cutoff. Where there is an `error`, no run returns
    anything; `chunk_ids` is None where the list could not be made at all, and empty for imported rankings. `calls` are
    those of one run alone; None for imported rankings.
    """

    source: int
    run_ids: tuple[UUID, ...]
    query_id: int
    repetition: int = 1
    chunk_ids: NDArray[np.int64] | None = field(default_factory=lambda: NO_IDS)
    scores: NDArray[np.float64] = field(default_factory=lambda: NO_SCORES)
    threshold_scores: NDArray[np.float64] | None = None
    document_ids: NDArray[np.int64] = field(default_factory=lambda: NO_IDS)
    chunk_ranks: NDArray[np.int64] | None = None
    lengths: tuple[int, ...] = (0,)
    short: tuple[bool, ...] = (False,)
    duration_ms: float | None = None
    timings: Mapping[str, float] | None = None
    calls: Calls | None = None
    error: str = ""
