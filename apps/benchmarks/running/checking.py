"""Outcomes of a stage that are none: lists that its index cannot have, queries at which a model hung before."""

from collections.abc import Mapping, Sequence

import numpy as np

from apps.benchmarks.running.encoding_afresh import StageError
from apps.benchmarks.running.outcomes import Outcome
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.ir.planning.stages import OfIndex
from benchbench.ir.records import ScoredList


def check_lists(stage: OfIndex, index: OpenIndex, lists: Sequence[ScoredList]) -> None:
    """Raise StageError for a list that its index cannot have."""
    count = len(index.chunk_ids)
    for scored in lists:
        if len(scored.scores) != len(scored) or not ((scored.ids >= 0) & (scored.ids < count)).all():
            what = f"chunks that are none of its {count:,}"
        elif not np.isfinite(scored.scores).all() or not np.isfinite(scored.compared_scores).all():
            what = "a score that is not a finite number"
        else:
            continue
        raise StageError(
            f'The stage {stage.key} gave {what}: the index "{index.index}" is damaged, or a model gives what it '
            "cannot. Look at the model's files, and make a new version of the index."
        )


def left_out(hung: Mapping[str, str], query_id: int) -> Outcome | None:
    """Return the error of a query at which a model hung in an earlier attempt: of any, where it hung at two of them.

    `hung` has the sentences by query; that without one ("") is of several queries together, and nobody's.
    """
    alone = {query: sentence for query, sentence in hung.items() if query}
    sentence = alone.get(str(query_id), "")
    if not sentence and len(alone) > 1:
        sentence = f"Not tried, after {len(alone)} other queries at which it hung. {next(iter(alone.values()))}"
    return Outcome(error=sentence) if sentence else None
