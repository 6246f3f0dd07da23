"""One ranking of one run, as it was searched or imported, before it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

NO_IDS = np.empty(0, np.int64)
NO_SCORES = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class RunResult:
    """One ranking of one run: documents best first, with the chunk that brought each and its score, all (n,).

    `short`: as many chunks were kept as the run keeps at most, and they hold fewer documents than the greatest cutoff.
    """

    run_id: UUID
    query_id: int
    repetition: int = 1
    document_ids: NDArray[np.int64] = field(default_factory=lambda: NO_IDS)
    chunk_ids: NDArray[np.int64] = field(default_factory=lambda: NO_IDS)
    scores: NDArray[np.float64] = field(default_factory=lambda: NO_SCORES)
    timings: Mapping[str, float] | None = None
    error: str = ""
    short: bool = False
