import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchbench.ir.ranking import (
    RankingError,
    collapse,
    cut,
    find_flaws,
    find_shape_flaw,
    nominate,
    rrf,
    scale_scores,
    score_pairs,
    top,
    weighted,
)
from benchbench.ir.records import RepeatedDocumentError, ScoredDocuments, ScoredList


def unit_vectors(count, dimension, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def scored(*scores):
    return ScoredList(np.arange(len(scores)), np.array(scores, float))


class TestTop:
    def test_it_orders_by_score_down_then_position_up(self):
        best = top(np.array([0.5, 0.9, 0.5, 0.9, 0.1]), 4)
        assert best == ScoredList(np.array([1, 3, 0, 2]), np.array([0.9, 0.9, 0.5, 0.5]))

    def test_ties_at_the_cut_go_to_the_lower_position(self):
        assert top(np.ones(4), 2, ids=np.array([2, 4, 7, 9])).ids.tolist() == [2, 4]

    @given(
        scores=arrays(np.float64, st.integers(0, 60), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        depth=st.integers(0, 70),
    )
    def test_it_equals_a_full_sort(self, scores, depth):
        expected = sorted(range(len(scores)), key=lambda position: (-scores[position], position))[:depth]
        assert top(scores, depth).ids.tolist() == expected

    @pytest.mark.parametrize("steps", [1, 3, 50, 10**9])  # all scores equal; many ties; none
    @pytest.mark.parametrize("depth", [1, 7, 100])
    @pytest.mark.parametrize("count", [3201, 10_000])
    def test_it_equals_a_full_sort_of_many(self, count, depth, steps):
        scores = np.floor(np.random.default_rng(steps).random(count) * steps) / steps
        expected = np.lexsort((np.arange(count), -scores))[:depth]
        assert top(scores, depth).ids.tolist() == expected.tolist()

    @pytest.mark.parametrize("position", [0, 5_000, 9_999])
    def test_top_rejects_a_single_nan_score(self, position):
        scores = np.random.default_rng(1).random(10_000)
        scores[position] = np.nan
        with pytest.raises(RankingError, match="not a number"):
            top(scores, 5)

    @pytest.mark.parametrize("depth", [1, 2, 10])
    def test_it_refuses_scores_that_are_not_numbers(self, depth):
        with pytest.raises(RankingError, match="not a number"):
            top(np.array([0.1, np.nan, 0.3]), depth)


def exact_top(similarities, depth, rescore):
    """The best by exact scores, of what float32 similarities nominate."""
    nominated = nominate(similarities, depth)
    return top(rescore(nominated), depth, ids=nominated)


class TestNominating:
    def test_float64_scores_break_float32_ties(self):
        exact = np.array([0.3, 0.5, 0.5 + 1e-9, 0.5 - 1e-9, 0.7])
        ranked = exact_top(exact.astype(np.float32), 3, lambda positions: exact[positions])
        assert ranked == ScoredList(np.array([4, 2, 1]), exact[[4, 2, 1]])

    def test_it_rescores_only_the_chunks_within_the_band(self):
        similarities = np.array([0.9, 0.5, 0.5 - 9e-6, 0.5 - 3e-5, 0.1], np.float32)
        requests = []
        exact_top(
            similarities, 2, lambda positions: requests.append(positions.tolist()) or similarities[positions] * 1.0
        )
        assert requests == [[0, 1, 2]]

    @pytest.mark.parametrize("depth", [0, 3, 10])
    def test_it_copes_with_any_depth_and_with_nothing(self, depth):
        similarities = np.array([0.1, 0.3, 0.2], np.float32)
        ranked = exact_top(similarities, depth, lambda positions: similarities[positions].astype(float))
        assert ranked.ids.tolist() == [1, 2, 0][:depth]
        assert exact_top(np.empty(0, np.float32), depth, lambda positions: np.empty(0)) == ScoredList.empty()

    def test_ranking_does_not_depend_on_matrix_product_layout(self):
        vectors, queries = unit_vectors(4_000, 384), unit_vectors(64, 384, seed=1)
        vectors[1000:2000] = vectors[:1000]  # true ties
        together = queries @ vectors.T
        blocks = [np.concatenate([vectors[a : a + 700] @ query for a in range(0, 4_000, 700)]) for query in queries]
        folded = (queries[:, ::-1] @ vectors[:, ::-1].T).astype(np.float32)
        assert not np.array_equal(together, np.array(blocks)) or not np.array_equal(together, folded)
        for number, query in enumerate(queries):
            rankings = [
                exact_top(similarities[number], 100, lambda positions, q=query: score_pairs(vectors[positions], q))
                for similarities in (together, blocks, folded)
            ]
            assert rankings[0] == rankings[1] == rankings[2]

    def test_nominating_band_exceeds_the_float32_error(self):
        for dimension in (384, 1024):
            vectors, query = unit_vectors(20_000, dimension), unit_vectors(1, dimension, seed=1)[0]
            assert np.abs(vectors @ query - score_pairs(vectors, query)).max() < 1e-6


class TestPairScores:
    @pytest.mark.parametrize("dimension", [1, 3, 8, 127, 128, 129, 384, 1024, 4097, 8192, 9000])
    def test_pair_scores_are_bit_identical_in_any_batch(self, dimension):
        vectors, query = unit_vectors(50, dimension), unit_vectors(1, dimension, seed=1)[0]
        together = score_pairs(vectors, query)
        alone = np.concatenate([score_pairs(vectors[row : row + 1], query) for row in range(50)])
        backwards = score_pairs(vectors[::-1], query)[::-1]
        in_columns = score_pairs(np.asfortranarray(vectors), query)
        in_threes = np.concatenate([score_pairs(vectors[row : row + 3], query) for row in range(0, 50, 3)])
        for another in (alone, backwards, in_columns, in_threes):
            assert together.tobytes() == another.tobytes()

    def test_it_is_the_inner_product_in_float64(self):
        vectors, query = unit_vectors(50, 384), unit_vectors(1, 384, seed=1)[0]
        np.testing.assert_allclose(score_pairs(vectors, query), vectors.astype(float) @ query.astype(float), rtol=1e-12)

    def test_no_vectors_have_no_scores(self):
        assert score_pairs(np.empty((0, 4), np.float32), np.ones(4, np.float32)).shape == (0,)


def test_collapse_keeps_first_chunk_per_document_in_order():
    assert collapse(np.array([7, 7, 7, 3, 9, 3])).tolist() == [0, 3, 4]
    assert collapse(np.empty(0, np.int64)).tolist() == []


class TestUnitScores:
    def test_dense_clips_at_zero_and_one(self):
        assert scale_scores("dense", np.array([1.0000001, 0.4, -0.2])).tolist() == [1.0, 0.4, 0.0]

    def test_sparse_is_relative_to_the_querys_own_best(self):
        assert scale_scores("sparse", np.array([8.0, 4.0, 1.0])).tolist() == [1.0, 0.5, 0.125]

    def test_hybrid_is_already_there(self):
        assert scale_scores("hybrid", np.array([0.9, 0.1])).tolist() == [0.9, 0.1]

    def test_cross_encoder_is_one_sigmoid_at_any_magnitude(self):
        values = scale_scores("cross_encoder", np.array([1000.0, 2.0, 0.0, -2.0, -1000.0]))
        assert values == pytest.approx([1.0, 0.880797078, 0.5, 0.119202922, 0.0])

    @pytest.mark.parametrize("kind", ["dense", "sparse", "hybrid", "cross_encoder", "late_interaction"])
    def test_nothing_stays_nothing(self, kind):
        assert scale_scores(kind, np.empty(0)).shape == (0,)

    def test_an_unknown_kind_is_a_mistake_of_the_caller(self):
        with pytest.raises(ValueError, match="vector"):
            scale_scores("vector", np.ones(1))


class TestCut:
    def test_threshold_is_inclusive_and_applies_before_top_k(self):
        ranked = scored(9.0, 8.0, 7.0, 6.0)
        assert cut(ranked, unit_scores=np.array([0.9, 0.5, 0.5, 0.4]), threshold=0.5, top_k=2) == ranked.head(2)
        assert cut(ranked, unit_scores=np.array([0.9, 0.5, 0.49, 0.4]), threshold=0.5, top_k=4) == ranked.head(2)

    def test_no_threshold_only_cuts(self):
        assert cut(scored(3.0, 2.0, 1.0), unit_scores=np.zeros(3), threshold=None, top_k=2) == scored(3.0, 2.0)


def ranking(*ids, scores=None):
    falling = scores if scores is not None else [float(len(ids) - index) for index in range(len(ids))]
    return ScoredList(np.array(ids, np.int64), np.array(falling, float))


EMPTY = ScoredList.empty()


class TestRRF:
    def test_first_in_every_list_is_exactly_one(self):
        for lists in range(1, 8):
            assert rrf([ranking(5)] * lists, k=60, depth=1).scores.tolist() == pytest.approx([1.0], abs=1e-15)

    def test_a_missing_list_still_counts_in_the_maximum(self):
        assert rrf([ranking(1), EMPTY], k=60, depth=5).scores.tolist() == [0.5]
        assert rrf([EMPTY, EMPTY], k=60, depth=5) == EMPTY
        assert rrf([], k=60, depth=5) == EMPTY

    @given(st.lists(st.permutations(range(8)), min_size=1, max_size=4), st.integers(1, 100), st.integers(1, 10))
    def test_rrf_scores_match_formula_within_unit_interval(self, orders, k, depth):
        fused = rrf([ranking(*order) for order in orders], k=k, depth=depth)
        hits = {chunk for order in orders for chunk in order[:depth]}
        expected = {
            chunk: sum(1 / (k + order.index(chunk) + 1) for order in orders if chunk in order[:depth])
            / (len(orders) / (k + 1))
            for chunk in hits
        }
        assert dict(zip(fused.ids.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-12)
        assert ((fused.scores > 0) & (fused.scores <= 1)).all()
        assert list(zip(-fused.scores, fused.ids, strict=True)) == sorted(zip(-fused.scores, fused.ids, strict=True))


class TestWeighted:
    def test_it_sums_scaled_scores_with_weights_scaled_to_one(self):
        dense = ranking(1, 2, 3, scores=[0.9, 0.7, 0.5])
        fused = weighted([dense, ranking(3, 4, scores=[12.0, 2.0])], weights=(3, 1), depth=10)
        assert dict(zip(fused.ids.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(
            {1: 0.75 * 1, 2: 0.75 * 2 / 3, 3: 0.75 * 1 / 3 + 0.25 * 1, 4: 0.25 * 1 / 2}
        )

    def test_each_list_is_scaled_over_its_own_head(self):
        fused = weighted([ranking(1, 2, 3, scores=[3.0, 2.0, -100.0])], weights=(1,), depth=2)
        assert fused == ranking(1, 2, scores=[1.0, 0.5])

    def test_the_last_of_a_list_beats_a_missing_chunk(self):
        fused = weighted([ranking(7, 5), ranking(7, 8, 6)], weights=(1, 1), depth=5)
        assert fused.ids.tolist() == [7, 8, 5, 6]
        assert fused.scores == pytest.approx([1.0, 1 / 3, 1 / 4, 1 / 6])

    def test_equal_scores_and_single_entries_become_one(self):
        fused = weighted([ranking(2, 4, scores=[0.3, 0.3]), ranking(9, scores=[7.0])], weights=(1, 1), depth=5)
        assert fused == ranking(2, 4, 9, scores=[0.5, 0.5, 0.5])

    def test_the_best_of_every_list_is_exactly_one(self):
        lists = [ranking(1, 2, scores=[0.31, 0.17]), ranking(1, 3, scores=[5.3, 1.1])]
        assert weighted(lists, weights=(0.1, 0.7), depth=5).scores[0] == 1.0

    def test_an_empty_list_gives_nothing(self):
        assert weighted([ranking(1), EMPTY], weights=(1, 3), depth=5) == ranking(1, scores=[0.25])
        assert weighted([EMPTY, EMPTY], weights=(1, 3), depth=5) == EMPTY

    def test_a_weight_is_needed_for_every_list(self):
        with pytest.raises(ValueError, match="zip"):
            weighted([EMPTY, EMPTY], weights=(1,), depth=5)


@st.composite
def scored_lists(draw):
    """Lists of up to twelve of twenty chunks, with ties, near ties, negative and equal scores, in their rank order."""
    ids = draw(st.lists(st.integers(0, 19), unique=True, max_size=12))
    near = st.sampled_from([0.0, 1e-300, 0.5, np.nextafter(0.5, 1), 0.9, -0.3, 7.0, np.nextafter(7.0, 8)])
    equal = [draw(near)] * len(ids) if draw(st.booleans()) else None
    scores = np.array(equal or draw(st.lists(near | st.floats(-1, 30), min_size=len(ids), max_size=len(ids))), float)
    return top(scores[np.argsort(ids)], len(ids), ids=np.array(sorted(ids), np.int64))


SHARES = st.sampled_from([1.0, 0.5, 1e-300, 3.0, 1e300])


@given(scored_lists(), scored_lists(), SHARES, st.integers(0, 14))
def test_fusion_with_one_weight_is_that_list(dense, lexical, weight, depth):
    for only, weights in ((dense, (weight, 0)), (lexical, (0, weight))):
        fused = weighted([dense, lexical], weights=weights, depth=depth)
        assert fused.ids.tolist() == only.head(depth).ids.tolist()
        assert ((fused.scores > 0) & (fused.scores <= 1)).all()
        assert (np.diff(fused.scores) <= 0).all()


@given(scored_lists(), st.integers(1, 10_000), SHARES, st.integers(0, 14))
def test_fusion_with_an_empty_list_keeps_order(ranked, k, weight, depth):
    for lists in ([ranked, EMPTY], [EMPTY, ranked]):
        assert rrf(lists, k=k, depth=depth).ids.tolist() == ranked.head(depth).ids.tolist()
        assert weighted(lists, weights=(weight, 1.0), depth=depth).ids.tolist() == ranked.head(depth).ids.tolist()
    assert rrf([ranked, ranked], k=k, depth=depth).ids.tolist() == ranked.head(depth).ids.tolist()


@given(scored_lists(), scored_lists(), st.integers(1, 100), st.sampled_from([(0.5, 0.5), (0.7, 0.3), (1e-300, 1.0)]))
def test_fusion_never_reverses_what_both_lists_agree_on(dense, lexical, k, weights):
    """A chunk that is above another in each list, where one that a list lacks is below all of it, stays above."""
    places = [{chunk: index for index, chunk in enumerate(one.ids.tolist())} for one in (dense, lexical)]
    for fused in (rrf([dense, lexical], k=k, depth=12), weighted([dense, lexical], weights=weights, depth=12)):
        scores = dict(zip(fused.ids.tolist(), fused.scores.tolist(), strict=True))
        assert scores.keys() == places[0].keys() | places[1].keys()
        for above, below in itertools.permutations(scores, 2):
            if all(position.get(above, 99) <= position.get(below, 99) for position in places):
                assert scores[above] >= scores[below]


SOUND = np.eye(4, 8, dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_flaws_describe_each_bad_row(dtype):
    vectors = np.tile(np.full(8, 8**-0.5), (6, 1)).astype(dtype)
    vectors[1, 3] = np.nan
    vectors[2, 0] = np.inf
    vectors[3] = vectors[5] = 0
    vectors[5, 0] = 0.5
    assert find_flaws(vectors) == {1: "not finite", 2: "not finite", 3: "zero", 5: "of length 0.5 instead of 1"}
    assert find_flaws(vectors, unit=False) == {1: "not finite", 2: "not finite", 3: "zero"}


def test_sound_vectors_have_no_flaw():
    assert find_flaws(SOUND) == find_flaws(SOUND[:0]) == find_flaws(np.empty((0, 0), np.float16)) == {}


def test_shape_flaw_shows_actual_and_expected_shape():
    assert find_shape_flaw(SOUND, 4, 8) == ""
    assert find_shape_flaw(SOUND, 5, 8) == "(4, 8), not (5, 8)"
    assert find_shape_flaw(SOUND[0], 1, 8) == "(8,), not (1, 8)"


def by_score(*scored):
    return ScoredDocuments("run, query 'q1',", [name for name, _ in scored], [score for _, score in scored]).rank()


def test_it_ranks_by_score_then_by_id_falling():
    assert by_score(("a", 0.5), ("c", 0.5), ("b", 0.5), ("d", 0.9), ("e", -1.0)) == ["d", "c", "b", "a", "e"]


def test_scores_that_are_equal_as_float32_are_ties():
    assert by_score(("a", 0.5 + 1e-9), ("b", 0.5)) == ["b", "a"]
    assert by_score(("a", 0.5 + 1e-7), ("b", 0.5)) == ["a", "b"]
    assert by_score(("a", 1e300), ("b", 1e39)) == ["b", "a"]
    assert by_score(("a", 0.0), ("b", -0.0)) == ["b", "a"]


def test_ids_are_ordered_as_their_bytes_are():
    assert by_score(("z", 1.0), ("é", 1.0), ("😀", 1.0), ("～", 1.0), ("Z", 1.0)) == ["😀", "～", "é", "z", "Z"]


def test_it_refuses_a_document_twice():
    with pytest.raises(RepeatedDocumentError, match=r"run, query 'q1', ranks the document 'a' more than once"):
        by_score(("a", 1.0), ("b", 1.0), ("a", 0.5))
