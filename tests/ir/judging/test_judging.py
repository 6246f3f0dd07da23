"""State of a round, and the weights of what is still to judge."""

import itertools
import random

import numpy as np
import pytest

from benchbench.ir.judging import fillings
from benchbench.ir.judging.fillings import Shape, compute_reach, compute_values, count_outside
from benchbench.ir.judging.judging import FEWEST_GRADES, Judging
from benchbench.ir.judging.pool import Item, JudgingError, Pool
from benchbench.ir.judging.weights import ExpectedGrades, compute_effects
from benchbench.ir.measures import DEFINITIONS, GradedRankings, Measure, evaluate
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import find_verdict
from tests.ir.judging.drawn import MEASURES, NDCG, benchmark, drawn, grades_in_pool


@pytest.mark.parametrize("seed", range(12))
def test_values_of_fillings_are_those_of_the_measures(seed):
    rankings, truths, top = drawn(seed, queries=4)
    pick = random.Random(seed)
    for measure in MEASURES:
        pool = Pool.from_rankings(rankings, depth=measure.cutoff)
        filled = [
            [
                {d: t.get(d, pick.randint(0, top)) for d in [*ids, *t]}
                for ids, t in zip(pool.documents, truths, strict=True)
            ]
            for _ in range(3)
        ]
        shape = Shape.from_pool(pool, measure, range(top + 1))
        grades = np.stack([pool.get_grades(one) for one in filled], axis=-1)
        values = compute_values(
            pool,
            shape,
            list(compute_reach(grades, shape.levels)),
            count_outside(pool.list_outside(truths), shape.levels),
        )
        for index, one in enumerate(filled):
            expected = [evaluate([measure], GradedRankings.from_rankings(run, one))[0] for run in rankings]
            np.testing.assert_allclose(values[:, :, index].T, expected, atol=1e-6, err_msg=str(measure))


def test_fully_judged_state_matches_the_comparison():
    rankings, truths = benchmark(1)
    pool = Pool.from_rankings(rankings, depth=5)
    state = Judging(pool, NDCG, [0, 1, 2], grades_in_pool(pool, truths), seed=3).state()
    values = [evaluate([NDCG], GradedRankings.from_rankings(run, grades_in_pool(pool, truths)))[0] for run in rankings]
    comparison = compare(np.stack(values), seed=3)
    assert [pair.difference for pair in state.pairs] == pytest.approx([pair.difference for pair in comparison.pairs])
    signs = [int(np.sign(pair.difference)) * pair.significant for pair in comparison.pairs]
    assert [pair.outcome for pair in state.pairs] == signs
    assert state.verdict == tuple(sorted(find_verdict(comparison).group))
    assert (state.unjudged, state.probability, state.is_settled, state.is_certain) == (0, 1.0, True, True)
    assert all(pair.is_settled and pair.certain_order == np.sign(pair.difference) for pair in state.pairs)
    assert state.grades_needed.median == state.grades_needed.p90 == 0


@pytest.mark.parametrize("measure", ["nDCG@5", "RR", "Success@1", "P@5", "AP"])
def test_significance_in_rounds_is_that_of_comparisons(measure):
    """Also where every fourth query differs, so that skew decides, and for yes or no."""
    requests, pairs = Measure.parse(measure), []
    for seed in range(6):
        rankings, truths = benchmark(seed, queries=30)
        rankings[1] = [low if query % 4 else high for query, (low, _, high) in enumerate(zip(*rankings, strict=True))]
        pool = Pool.from_rankings(rankings, depth=10)
        values = [
            evaluate([requests], GradedRankings.from_rankings(run, grades_in_pool(pool, truths)))[0] for run in rankings
        ]
        compared = compare(np.stack(values), seed=seed).pairs
        state = Judging(pool, requests, [0, 1, 2], grades_in_pool(pool, truths), seed=seed).state()
        assert [pair.outcome for pair in state.pairs] == [
            int(np.sign(pair.difference)) * pair.significant for pair in compared
        ]
        pairs += compared
    assert {pair.significant for pair in pairs} == {True, False}
    assert any(pair.held_back for pair in pairs) == (measure in ("nDCG@5", "P@5", "AP"))


def test_expected_means_have_intervals_that_close():
    """By half of the pairs the means of all grades lie inside; with all grades nothing is open."""
    rankings, truths = benchmark(1, gap=0.3)
    pool = Pool.from_rankings(rankings, depth=5)
    means = [
        evaluate([NDCG], GradedRankings.from_rankings(run, grades_in_pool(pool, truths)))[0].mean() for run in rankings
    ]
    some = [{d: t[d] for d in ids[::2]} for ids, t in zip(pool.documents, truths, strict=True)]
    partly = Judging(pool, NDCG, [0, 1, 2], some).state()
    for mean, run in zip(means, partly.runs, strict=True):
        assert run.low < mean < run.high
        assert run.low < run.mean < run.high < run.low + 0.5
    for pair in partly.pairs:
        assert pair.low < means[pair.first] - means[pair.second] < pair.high
        expected = partly.runs[pair.first].mean - partly.runs[pair.second].mean
        assert pair.difference == pytest.approx(expected)
    complete = Judging(pool, NDCG, [0, 1, 2], grades_in_pool(pool, truths)).state()
    for mean, run in zip(means, complete.runs, strict=True):
        assert (run.low, run.mean, run.high) == pytest.approx((mean, mean, mean))
    assert all(pair.low == pytest.approx(pair.difference) == pytest.approx(pair.high) for pair in complete.pairs)


def test_unjudged_pairs_without_effect_keep_a_borderline_verdict():
    """P@1 of 40 queries, 13 of which one run alone wins and 4 the other: p is .049, and who is second moves nothing."""
    pool = Pool.from_rankings([[["a", "c"]] * 40, [["b", "c"]] * 40], depth=2)
    truths = [{"a": float(query < 13), "b": float(13 <= query < 17)} for query in range(40)]
    values = np.array([[truth[first] for truth in truths] for first in "ab"])
    for seed in range(20):
        state = Judging(pool, Measure("P", 1), [0, 1], truths, seed=seed).state()
        assert (state.unjudged, state.is_settled) == (40, True)
        assert state.verdict == tuple(sorted(find_verdict(compare(values, seed=seed)).group))


def test_decisive_order_settles_early_with_the_correct_verdict():
    rankings, truths = benchmark(2, queries=60)
    pool = Pool.from_rankings(rankings, depth=5)
    judging = Judging(pool, NDCG, [0, 1, 2], [{} for _ in truths], seed=1)
    while not (state := judging.state()).is_settled:
        for number in np.argsort(-judging.compute_weights())[:20].tolist():
            item = pool.get_item(number)
            judging.grade(item, truths[item.query][item.document])
    assert state.judged < pool.size / 2
    assert state.winner == 2
    assert not state.is_certain
    judged = ~np.isnan(judging.grades[tuple(pool.cells.T)])
    assert judging.compute_weights()[judged].max() == 0
    assert judging.compute_weights()[~judged].max() > 0


def test_too_few_grades_leave_round_open_with_a_reason():
    rankings, truths = benchmark(3)
    state = Judging(Pool.from_rankings(rankings, depth=5), NDCG, [0, 1, 2], [{} for _ in truths]).state()
    assert not state.is_settled
    assert not any(pair.is_settled for pair in state.pairs)
    assert f"at least {FEWEST_GRADES} pairs must be judged" in state.reason
    assert state.grades_needed.median is None


def test_later_grades_equal_initial_grades_and_can_be_withdrawn():
    rankings, truths = benchmark(4, queries=10)
    pool = Pool.from_rankings(rankings, depth=5)
    some = [{ids[0]: truth[ids[0]]} for ids, truth in zip(pool.documents, truths, strict=True)]
    item = Item(3, pool.documents[3][1])
    later = Judging(pool, NDCG, [0, 1, 2], some, seed=5)
    before = later.state()
    later.grade(item, 2)
    changed = later.state()
    some[3][item.document] = 2
    assert changed == Judging(pool, NDCG, [0, 1, 2], some, seed=5).state()
    assert changed != before
    later.grade(item, None)
    assert later.state() == before


def test_judgments_that_are_no_fair_picture_do_not_teach():
    rankings, truths = benchmark(5)
    pool = Pool.from_rankings(rankings, depth=5)
    positives = [{d: g for d, g in truth.items() if g} for truth in grades_in_pool(pool, truths)]
    misled = Judging(pool, NDCG, [0, 1, 2], positives)
    warned = Judging(pool, NDCG, [0, 1, 2], positives, truths_teach=False)
    assert misled.state().unjudged == warned.state().unjudged
    spread = [max(pair.standard_deviation for pair in judging.state().pairs) for judging in (misled, warned)]
    assert spread[0] != spread[1]
    assert warned.state().reason is not None


def test_a_query_that_a_run_failed_on_counts_nowhere():
    rankings, truths = benchmark(6, queries=20)
    rankings[1][0] = None
    pool = Pool.from_rankings(rankings, depth=5)
    judging = Judging(pool, NDCG, [0, 1, 2], [{} for _ in truths])
    assert judging.state().queries == 19
    assert judging.compute_weights()[: len(pool.documents[0])].max() == 0


@pytest.mark.parametrize("name", DEFINITIONS)
def test_each_builtin_measure_is_supported_or_rejected_with_reason(monkeypatch, name):
    monkeypatch.setattr(fillings, "_REASONS", {})  # as of one that was just added
    measure = Measure.parse(f"{name}@5")
    if name in fillings.LINEAR | fillings.PLACED:
        fillings.require_measure(measure)
    else:
        with pytest.raises(JudgingError, match="is not known"):
            fillings.require_measure(measure)


def test_unusable_input_is_rejected_with_a_remedy():
    rankings, truths = benchmark(7, queries=5)
    pool = Pool.from_rankings(rankings, depth=5)
    for measure, reason in (("Judged@5", "counts judgments"), ("FirstRelevant", "no value"), ("ERR@10", "ir_measures")):
        with pytest.raises(JudgingError, match=reason):
            Judging(pool, Measure.parse(measure), [0, 1], truths)
    with pytest.raises(JudgingError, match="needs a grade above 0"):
        Judging(pool, NDCG, [0], [{} for _ in truths])
    with pytest.raises(JudgingError, match="grade 7 is not on the scale"):
        Judging(pool, NDCG, [0, 1, 2], truths).grade(pool.get_item(0), 7)


@pytest.mark.parametrize(
    "measure", [Measure("P", 3), Measure("Hits", 3), Measure("RR"), Measure("Success", 2)], ids=str
)
def test_effect_is_expected_gain_from_a_relevant_document(measure):
    """Over all fillings, each with its probability; for R, nDCG and AP a quotient of expectations is used."""
    rankings = [[list("abcd")], [list("cea")]]
    pool = Pool.from_rankings(rankings)
    chance = {"a": 0.3, "b": 1.0, "c": 0.2, "d": 0.6, "e": 0.0}
    shape = Shape.from_pool(pool, measure, [0, 1])
    p = np.array([[chance[document] for document in pool.documents[0]]])
    effects = compute_effects(pool, shape, ExpectedGrades(p, p, 1.0, np.sqrt(p * (1 - p)), np.zeros(1)))
    for index, document in enumerate(pool.documents[0]):
        for run, ranking in enumerate(rankings):
            means = []
            for relevant in (1, 0):
                remaining = [another for another in chance if another != document]
                mean = 0.0
                for outcome in itertools.product((0, 1), repeat=len(remaining)):
                    likely = np.prod(
                        [chance[d] if g else 1 - chance[d] for d, g in zip(remaining, outcome, strict=True)]
                    )
                    truth = dict(zip(remaining, outcome, strict=True)) | {document: relevant}
                    mean += likely * evaluate([measure], GradedRankings.from_rankings(ranking, [truth])).item()
                means.append(mean)
            assert effects[run, 0, index] == pytest.approx(means[0] - means[1], abs=1e-12)


def test_documents_weigh_by_how_much_runs_disagree():
    rankings = [[list("abcx")] * 4, [list("abcy")] * 4]
    judging = Judging(Pool.from_rankings(rankings), Measure("P", 4), [0, 1], [{} for _ in range(4)])
    weights = dict(zip(judging.pool.documents[0], judging.compute_weights()[:5].tolist(), strict=True))
    assert weights["a"] == weights["b"] == 0
    assert min(weights["x"], weights["y"]) > 0
