"""Correction of a model's grades by people's, on a random sample of whole queries."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from apps.judging.llm.board import Board
from apps.judging.llm.calibrating import Calibrated
from apps.judging.llm.sampling import Sample
from apps.judging.models import Round
from benchbench.decimals import counted
from benchbench.ir.judging.corrected import FEWEST_QUERIES, Corrected, corrected_by_queries
from benchbench.ir.judging.orders import query_order, whole_queries
from benchbench.ir.judging.pool import Item, JudgingError


def holes_of(board: Board) -> list[Item]:
    """Return the pairs that nobody had judged before the round."""
    return [item for item in map(board.pool.item, range(board.pool.size)) if not _is_known(board, item)]


def corrected(board: Board, calibrated: Calibrated, holes: Sequence[Item]) -> tuple[Corrected, int]:
    """Return the corrected comparison of a round's runs, and how many of `holes` are in people's sample.

    The sample is the first queries of the round's random order that people have judged whole. Raises JudgingError for
    a round in another order, fewer than FEWEST_QUERIES such queries, or grades of the model that do not cover the pool.
    """
    _require_sampled_pool(board, calibrated.sample, holes)
    # What the model could not tell counts as not relevant: a prediction may be anything, its errors are corrected.
    predicted = board.truths(board.known, board.model, board.unsure)
    asked = sum(item.document in predicted[item.query] for item in holes)
    if asked < len(holes):
        raise JudgingError(
            f"The model judged {asked:,} of {counted(len(holes), 'pair')} that nobody had judged in the pool, and "
            "a correction needs all: let it go on, in a round whose items are the whole pool."
        )
    if board.measure.cutoff is None or board.measure.cutoff > board.round.depth:
        raise JudgingError(
            f"{board.measure} looks deeper than the pool of the round, {board.round.depth:,} documents: a correction "
            "needs a measure with a cutoff within it."
        )
    if board.round.order != Round.Order.QUERIES:
        raise JudgingError(
            "A correction needs a random sample of whole queries. Open a round whose order is by queries to get one."
        )
    sampled = _sampled_queries(board, holes)
    if len(sampled) < FEWEST_QUERIES:
        raise JudgingError(
            f"People have judged the first {counted(len(sampled), 'query')} of the round's random order whole, and a "
            f"correction needs {FEWEST_QUERIES}. Finish the next queries in that order."
        )
    return _by_queries(board, predicted, sampled), sum(item.query in sampled for item in holes)


def _require_sampled_pool(board: Board, sample: Sample, holes: Sequence[Item]) -> None:
    """Raise JudgingError where the pool is not the one that the samples were drawn from, or has nothing to correct."""
    began = board.round.pool_size
    if len(holes) != began or not board.pool.numbers.keys() >= _corrections(board, sample).keys():
        raise JudgingError(
            f"The round began with {counted(began, 'pair')} that nobody had judged, and its runs return other pairs "
            f"now, {len(holes):,}: runs were deleted or searched again. Its calibration sample is no sample of these. "
            "Open a round over the runs that there are, and calibrate the model there."
        )
    if not holes:
        raise JudgingError("Every pair of these runs was judged before the round: there is nothing to correct.")


def _sampled_queries(board: Board, holes: Sequence[Item]) -> set[int]:
    """Return the queries at the beginning of the round's order of them that people are done with, by their places.

    Queries that some run failed on are not compared, and end nothing.
    """
    order = query_order(board.pool, seed=board.round.seed)
    done = board.truths(board.people, board.unsure_people)
    waiting = {item.query for item in holes if item.document not in done[item.query]}
    return set(whole_queries(order[board.pool.answered[order]], waiting).tolist())


def _by_queries(board: Board, predicted: Sequence[dict[int, int]], sampled: set[int]) -> Corrected:
    by_people = board.values(board.truths(board.people, board.known))
    by_people[:, [place not in sampled for place in range(len(board.query_ids))]] = np.nan
    told = corrected_by_queries(board.values(predicted), by_people, seed=board.draw)
    over = "over the queries that those of the sample are drawn from"
    return replace(told, estimand=f"mean difference in {board.measure} by the person's grades, {over}")


def _is_known(board: Board, item: Item) -> bool:
    return item.document in board.known.get(board.query_ids[item.query], {})


def _corrections(board: Board, sample: Sample) -> dict[Item, float]:
    """Return people's grades of the sample; what they could not tell stays unjudged, and so counts as not relevant."""
    place_of = {query: place for place, query in enumerate(board.query_ids)}
    return {Item(place_of[pair.query_id], pair.document_id): float(pair.grade or 0) for pair in sample.done}
