"""Verdicts by a model that people's grades of whole queries correct."""

import re
import warnings
from html import unescape
from itertools import combinations, takewhile

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from apps.judging.grading import grade_item
from apps.judging.llm.board import Board, load_board
from apps.judging.llm.calibration import draw_sample
from apps.judging.llm.verdicts import CORRECTED, PolicyReport, compute_verdicts
from apps.judging.models import Grade, LLMJudge, Round
from apps.records.models import Benchmark, QueryResult
from benchbench.ir.judging.orders import query_order
from tests.judging.rounds import grade_of, judged_by_model, open_for
from tests.rankings import change_rankings
from tests.retrieval.llm_server import LLMServer
from tests.site import text_of

with warnings.catch_warnings():  # it silences every warning of the process as it is imported
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

GRADED = 150


@pytest.fixture
def opened(simulated: Benchmark, ada: User) -> Round:
    return open_by_queries(simulated, ada)


def open_by_queries(simulated: Benchmark, judge: User) -> Round:
    return open_for(simulated, [judge], owner=judge, order="queries", measure="AP@5", uniform_share=0.3, seed=3)


def judged(opened: Round, judge: User, errors: float = 0.3) -> LLMJudge:
    """A model that judged the whole round, of which a person judged the first items in its order."""
    draw_sample(opened, 40, judge)
    for item in opened.items.order_by("place").select_related("query", "document")[:GRADED]:
        grade_item(opened, item.pk, judge, grade=grade_of(item))
    return judged_by_model(opened, errors)


@pytest.fixture
def calibrated(opened: Round, ada: User, server: LLMServer) -> LLMJudge:
    return judged(opened, ada)


def told_of(judge: LLMJudge) -> PolicyReport:
    judge = LLMJudge.objects.get(pk=judge.pk)
    return next(message for message in compute_verdicts(judge.round, judge).verdicts if message.policy == CORRECTED)


def sampled_of(board: Board) -> list[int]:
    """The places of the queries at the beginning of the order whose items all have a person's grade."""
    items = board.round.items
    waiting = set(items.exclude(grades__source="human").values_list("query", flat=True))
    order = query_order(board.pool, seed=3).tolist()
    return list(takewhile(lambda position: board.query_ids[position] not in waiting, order))


def test_correction_over_whole_queries_matches_ppi_python(calibrated):
    board = load_board(calibrated.round, calibrated)
    sampled = sampled_of(board)
    remaining = [index for index in range(len(board.query_ids)) if index not in sampled]
    assert 10 <= len(sampled) < len(board.query_ids) - 10
    answer = told_of(calibrated)
    assert (answer.unavailable_reason, answer.sampled_queries) == (None, len(sampled))
    person, model = (
        board.compute_values(board.build_truths(board.prior_grades, board.people)),
        board.compute_values(board.build_truths(board.prior_grades, board.model)),
    )
    for pair, (first, second) in zip(answer.pairs, combinations(range(3), 2), strict=True):
        y, f = person[first] - person[second], model[first] - model[second]
        args = y[sampled], f[sampled], f[remaining]
        assert pair.difference == pytest.approx(ppi_mean_pointestimate(*args).item(), abs=1e-12)
        low, high = (end.item() for end in ppi_mean_ci(*args, alpha=0.05))
        width = pair.high - pair.low
        # Ours divides by n − 1 and takes Student's quantile.
        assert high - low < width < 1.15 * (high - low)
        assert pair.simultaneous_low is not None
        assert pair.simultaneous_high is not None
        assert pair.simultaneous_high - pair.simultaneous_low > width


def test_report_names_the_sample_and_the_estimand(admin_client, calibrated, opened):
    answer = told_of(calibrated)
    assert answer.estimand == (
        "mean difference in AP@5 by the person's grades, over the queries from which the sample was drawn"
    )
    sampled = [
        load_board(opened, calibrated).query_ids[position] for position in sampled_of(load_board(opened, calibrated))
    ]
    assert answer.judged == opened.items.filter(query__in=sampled).count() < GRADED
    assert answer.model_judged == opened.pool_size
    assert "People's grades of the first queries in a random order" in answer.meaning
    assert answer.sentence.endswith("judged queries.")
    words = unescape(text_of(admin_client.get(reverse("admin:round_verdicts", args=[opened.pk]))))
    assert f"people’s for {answer.sampled_queries} whole queries" in words
    assert re.search(r"worth about \+\d+ judged queries", words)
    assert str(answer.estimand) in words


def test_a_model_that_favours_a_run_is_corrected(simulated, ada, server):
    opened = open_for(simulated, [ada], owner=ada, order="queries", measure="P@5", uniform_share=0.3, seed=3)
    judge = judged(opened, ada, errors=0.0)
    board = load_board(opened, judge)
    true = board.compute_values(board.build_truths(board.prior_grades, board.model))
    third = board.rankings[2]
    for row in Grade.objects.filter(source="llm").select_related("item"):
        if row.item.document_id in third[row.item.query_id][0]:
            row.grade = 2  # everything that the worst run returns is relevant
            row.save(update_fields=["grade"])
    expected = float((true[0] - true[2]).mean())
    filled, corrected = (message.pairs[1] for message in compute_verdicts(opened, judge).verdicts[1:])
    assert abs(filled.difference - expected) > 0.15
    assert not filled.low <= expected <= filled.high
    assert corrected.low <= expected <= corrected.high


def test_grades_after_a_gap_are_not_counted_yet(calibrated, opened, ada):
    board = load_board(opened, calibrated)
    sampled = sampled_of(board)
    gap = opened.items.filter(query=board.query_ids[sampled[11]], calibration=None).order_by("-place")[0]
    Grade.objects.filter(item=gap, source="human").delete()
    assert told_of(calibrated).sampled_queries == 11
    grade_item(opened, gap.pk, ada, kind="cannot_judge")
    assert told_of(calibrated).sampled_queries == len(sampled), "who could not tell is done with it"

    early = opened.items.filter(query=board.query_ids[sampled[9]], calibration=None)[0]
    Grade.objects.filter(item=early, source="human").delete()
    assert told_of(calibrated).unavailable_reason == (
        "People have judged the first 9 queries of the round's random order completely, but a correction needs 10. "
        "Finish the next queries in that order."
    )


def test_in_another_order_whole_queries_are_no_sample(calibrated, opened):
    for order in ("depth", "random", "decisive"):
        Round.objects.update(order=order)
        assert "Open a round with the order “queries”" in told_of(calibrated).sentence


def test_a_query_that_a_run_failed_on_ends_nothing(simulated, ada, server):
    position = query_order(load_board(open_by_queries(simulated, ada), None).pool, seed=3)[2]
    query = sorted(simulated.dataset_version.queries.values_list("pk", flat=True))[position]
    run = simulated.runs.order_by("run_order")[0]
    change_rankings(QueryResult.objects.filter(run=run, query=query), error="It failed.")
    opened = open_by_queries(simulated, ada)
    calibrated = judged(opened, ada)
    complete = told_of(calibrated)
    Grade.objects.filter(item__round=opened, item__query=query, item__calibration=None, source="human").delete()
    answer = told_of(calibrated)
    assert (answer.queries, answer.sampled_queries) == (39, complete.sampled_queries)
    assert complete.sampled_queries >= 10
    assert np.isfinite([pair.difference for pair in answer.pairs]).all()
