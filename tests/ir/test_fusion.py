import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.ir.ranking import rrf, weighted
from benchbench.ir.records import ScoredList


def ranking(*ids: int, scores: list[float] | None = None) -> ScoredList:
    falling = scores if scores is not None else [float(len(ids) - place) for place in range(len(ids))]
    return ScoredList(np.array(ids, np.int64), np.array(falling, float))


EMPTY = ScoredList.empty()


class TestRRF:
    def test_it_sums_reciprocal_ranks_over_the_possible_maximum(self):
        fused = rrf([ranking(1, 2), ranking(2, 3)], k=60, depth=10)
        assert fused.ids.tolist() == [2, 1, 3]
        maximum = 2 / 61
        assert fused.scores == pytest.approx(
            [(1 / 62 + 1 / 61) / maximum, (1 / 61) / maximum, (1 / 62) / maximum], rel=1e-15
        )

    def test_first_in_every_list_is_exactly_one(self):
        for lists in range(1, 8):
            assert rrf([ranking(5)] * lists, k=60, depth=1).scores.tolist() == pytest.approx([1.0], abs=1e-15)

    def test_only_the_first_entries_take_part_and_their_union_is_kept(self):
        fused = rrf([ranking(1, 2, 9), ranking(3, 4, 9)], k=60, depth=2)
        assert fused.ids.tolist() == [1, 3, 2, 4]

    def test_a_missing_list_still_counts_in_the_maximum(self):
        assert rrf([ranking(1), EMPTY], k=60, depth=5).scores.tolist() == [0.5]
        assert rrf([EMPTY, EMPTY], k=60, depth=5) == EMPTY
        assert rrf([], k=60, depth=5) == EMPTY

    @given(st.lists(st.permutations(range(8)), min_size=1, max_size=4), st.integers(1, 100), st.integers(1, 10))
    def test_it_equals_the_formula_and_stays_in_the_unit_interval(self, orders, k, depth):
        fused = rrf([ranking(*order) for order in orders], k=k, depth=depth)
        found = {chunk for order in orders for chunk in order[:depth]}
        expected = {
            chunk: sum(1 / (k + order.index(chunk) + 1) for order in orders if chunk in order[:depth])
            / (len(orders) / (k + 1))
            for chunk in found
        }
        assert dict(zip(fused.ids.tolist(), fused.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-12)
        assert ((fused.scores > 0) & (fused.scores <= 1)).all()
        assert list(zip(-fused.scores, fused.ids, strict=True)) == sorted(zip(-fused.scores, fused.ids, strict=True))


class TestWeighted:
    def test_it_sums_normalised_scores_with_weights_scaled_to_one(self):
        dense = ranking(1, 2, 3, scores=[0.9, 0.7, 0.5])
        lexical = ranking(3, 4, scores=[12.0, 2.0])
        fused = weighted([dense, lexical], weights=(3, 1), depth=10)
        assert fused.ids.tolist() == [1, 2, 3, 4]
        assert fused.scores == pytest.approx([0.75, 0.375, 0.25, 0.0])

    def test_each_list_is_normalised_over_its_own_head(self):
        fused = weighted([ranking(1, 2, 3, scores=[3.0, 2.0, -100.0])], weights=(1,), depth=2)
        assert fused == ranking(1, 2, scores=[1.0, 0.0])

    def test_equal_scores_and_single_entries_become_one(self):
        fused = weighted([ranking(4, 2, scores=[0.3, 0.3]), ranking(9, scores=[7.0])], weights=(1, 1), depth=5)
        assert fused == ranking(2, 4, 9, scores=[0.5, 0.5, 0.5])

    def test_the_best_of_every_list_is_exactly_one(self):
        lists = [ranking(1, 2, scores=[0.31, 0.17]), ranking(1, 3, scores=[5.3, 1.1])]
        assert weighted(lists, weights=(0.1, 0.7), depth=5).scores[0] == 1.0

    def test_an_empty_list_gives_nothing(self):
        assert weighted([ranking(1), EMPTY], weights=(1, 3), depth=5) == ranking(1, scores=[0.25])

    def test_a_weight_is_needed_for_every_list(self):
        with pytest.raises(ValueError, match="zip"):
            weighted([EMPTY, EMPTY], weights=(1,), depth=5)
