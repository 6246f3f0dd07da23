"""Evidence of relevance in addition ranks: texts, a language model's grades, and what complete collections taught."""

import numpy as np
import pytest

from benchbench.ir.judging.evidence import ANY_RELEVANT, COLUMNS, JUDGE, Features, compute_axes
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Item, Pool
from benchbench.ir.judging.relevance import PRIOR, learn, learn_tails
from benchbench.ir.measures import Measure
from tests.ir.judging.drawn import benchmark, grades_in_pool

RELEVANT, IRRELEVANT = COLUMNS.index("relevant"), COLUMNS.index("other")
NDCG = Measure("nDCG", 5)


def of_topics(pool: Pool, topics: list[dict], *, seed: int = 1) -> np.ndarray:
    """The axes of documents whose vectors differ by topic (document id → number), and by some noise."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 30))
    items = [pool.get_item(number) for number in range(pool.size)]
    vectors = np.stack([centres[int(topics[item.query][item.document])] + 0.3 * rng.normal(size=30) for item in items])
    return compute_axes(pool, vectors.astype(np.float32), np.arange(pool.size))


def test_similarity_features_reflect_other_graded_documents_only():
    pool = Pool.from_rankings([[["a", "b", "c", "d"]], [["d", "c", "b", "a"]]])
    features = Features(pool, of_topics(pool, [{"a": 0, "b": 1, "c": 0, "d": 1}]))
    features.renew_all(pool.get_grades([{"a": 1.0, "b": 0.0}]))
    a, b, c, d = (features.values[pool.numbers[Item(0, one)]] for one in "abcd")
    assert c[RELEVANT] > 0.3 > 0 > d[RELEVANT]
    assert d[IRRELEVANT] > 0.3 > 0 > c[IRRELEVANT]
    assert (a[RELEVANT], b[IRRELEVANT]) == pytest.approx((0, 0), abs=1e-3)
    assert [row[ANY_RELEVANT] for row in (a, b, c, d)] == [0, 1, 1, 1]
    chances = learn(pool, features.values, np.full(pool.size, np.nan), PRIOR).predict(features.values, pool.cells[:, 0])
    assert chances[pool.numbers[Item(0, "c")]] > chances[pool.numbers[Item(0, "d")]]


def test_enough_axes_reproduce_document_cosines():
    pool = Pool.from_rankings([[[*range(12)]], [[*range(12)]]])
    vectors = np.random.default_rng(3).normal(size=(12, 40)).astype(np.float32)
    axes = compute_axes(pool, vectors, np.arange(12)).astype(float)
    centred = vectors - vectors.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(axes @ axes.T, unit @ unit.T, atol=5e-3)
    rows = np.arange(12)
    rows[4] = -1
    assert not compute_axes(pool, vectors, rows)[4].any()


def test_incremental_grade_update_matches_full_update():
    rankings, truths = benchmark(3)
    pool = Pool.from_rankings(rankings, depth=5)
    axes = of_topics(pool, truths)
    step, complete = Features(pool, axes), Features(pool, axes)
    grades = pool.get_grades([{} for _ in truths])
    step.renew_all(grades)
    before = step.values.copy()
    query, position = pool.find_cell(pool.get_item(pool.rows_of_queries[7].start))
    grades[query, position] = 2.0
    step.renew_queries(grades, slice(query, query + 1))
    complete.renew_all(grades)
    np.testing.assert_array_equal(step.values, complete.values)
    assert np.unique(pool.cells[(step.values != before).any(axis=1), 0]).tolist() == [7]


@pytest.mark.parametrize(("kappa", "low", "high"), [(0.9, 2.0, 9.0), (0.0, -0.5, 0.5)])
def test_model_evidence_depends_on_agreement_with_people(kappa, low, high):
    rankings, truths = benchmark(4, queries=60)
    pool = Pool.from_rankings(rankings, depth=5)
    grades = pool.get_grades(grades_in_pool(pool, truths))[tuple(pool.cells.T)]
    rng = np.random.default_rng(5)
    model = np.where(rng.random(pool.size) < kappa, grades, rng.permutation(grades))
    model[:10] = np.nan
    features = Features(pool)
    features.inform(model)
    features.renew_all(pool.get_grades(grades_in_pool(pool, truths)))
    answer = features.values[:, JUDGE]
    assert not answer[:10].any(), "what it did not grade says nothing"
    assert low < np.nanmean(answer[model > 0]) - np.nanmean(answer[model == 0]) < high


def test_relevance_level_depends_on_model_grade():
    pool = Pool.from_rankings([[[*range(60)]], [[*range(60)]]])
    truth = dict(enumerate([0.0, 1.0, 2.0] * 20))
    supplied = {document: grade for document, grade in truth.items() if document < 54}
    features = Features(pool)
    features.inform(np.array(list(truth.values())))
    grades = pool.get_grades([supplied])
    tails = features.inform_tails(np.array([[1.0], [0.5]]).repeat(60, axis=1), grades, [1.0, 2.0])
    assert tails[0] == pytest.approx(1), "what is relevant reaches the lowest level"
    assert tails[1, 58] < 0.3
    assert tails[1, 59] > 0.7


def test_relevant_pairs_that_runs_rank_high_have_higher_grades():
    """A quarter of the relevant documents graded at rank 1 has grade 1, three quarters of those at rank 8."""
    pool = Pool.from_rankings([[[*range(10)] for _ in range(40)]] * 2)
    grades = np.full(pool.has_document.shape, np.nan)
    grades[:20, 0], grades[:20, 7] = np.where(np.arange(20) < 5, 1.0, 2.0), np.where(np.arange(20) < 15, 1.0, 2.0)
    tails = learn_tails(pool, Features(pool).values, grades[tuple(pool.cells.T)], [1.0, 2.0])
    assert tails[0] == pytest.approx(1), "what is relevant reaches the lowest level"
    places = pool.cells[:, 1]
    assert tails[1, places == 0].mean() > 0.6 > 0.4 > tails[1, places == 7].mean()


def test_evidence_is_no_grade_and_leads_to_more_certainty():
    rankings, truths = benchmark(6, queries=60)
    pool = Pool.from_rankings(rankings, depth=5)
    some = [{d: t[d] for d in ids[:2]} for ids, t in zip(pool.documents, truths, strict=True)]
    plain = Judging(pool, NDCG, [0, 1, 2], some, seed=2)
    grades = pool.get_grades(grades_in_pool(pool, truths))[tuple(pool.cells.T)]
    informed = Judging(pool, NDCG, [0, 1, 2], some, seed=2, axes=of_topics(pool, truths))
    informed.inform(grades)
    before, after = plain.state(), informed.state()
    assert (after.judged, after.unjudged) == (before.judged, before.unjudged) == (120, pool.size - 120)
    for one, another in zip(before.pairs, after.pairs, strict=True):
        assert (one.lower_bound, one.upper_bound) == (another.lower_bound, another.upper_bound)
        assert another.standard_deviation < 0.8 * one.standard_deviation
    informed.inform(None)
    plain.inform(grades)
    assert plain.state().pairs[0].standard_deviation < before.pairs[0].standard_deviation
    assert informed.state().pairs[0].standard_deviation > after.pairs[0].standard_deviation


def test_ungraded_pairs_ranked_higher_by_more_runs_are_likelier():
    pool = Pool.from_rankings([[["a", "b", "c"]], [["a", "c", "d"]]])
    features = Features(pool)
    features.renew_all(pool.get_grades([{}]))
    chances = learn(pool, features.values, np.full(pool.size, np.nan), PRIOR).predict(features.values, pool.cells[:, 0])
    a, b, d = (chances[pool.numbers[Item(0, one)]] for one in "abd")
    assert 0.9 > a > b > d > 0.01
