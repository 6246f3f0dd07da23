"""Trees of summaries: what is summarised together, and what searching them finds."""

import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchbench.ir.ranking import top
from benchbench.ir.records import Positions, ScoredList
from benchbench.ir.trees import (
    DIMENSIONS,
    TreeError,
    clusters,
    collapsed,
    layer_by_layer,
    leaves_below,
    mixture_members,
    parted,
    principal_components,
)

THREE = np.repeat([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], 12, axis=0)  # three topics of twelve texts


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def near_topics(seed: int = 5, noise: float = 0.05) -> NDArray[np.float32]:
    return unit(THREE + np.random.default_rng(seed).normal(size=THREE.shape) * noise)


def lists(parts: list[NDArray[np.int64]]) -> list[list[int]]:
    return [part.tolist() for part in parts]


def clustered(vectors: NDArray[np.float32], *, length: int = 100, most: int = 10_000, **options) -> list[list[int]]:
    lengths = np.full(len(vectors), length)
    return lists(clusters(vectors, lengths, most=most, **{"threshold": 0.1, "seed": 42} | options))


class TestPrincipalComponents:
    def test_the_axis_of_greatest_spread_comes_first(self) -> None:
        points = np.array([[0, 0], [4, 0], [0, 1], [4, 1]], np.float32)
        components = principal_components(points, 2)
        assert np.allclose(components, [[-2, -0.5], [2, -0.5], [-2, 0.5], [2, 0.5]])

    def test_few_rows_of_many_dimensions_keep_their_distances(self) -> None:
        points = np.random.default_rng(1).normal(size=(4, 50)).astype(np.float32)
        components = principal_components(points, DIMENSIONS)
        assert components.shape == (4, 4)
        assert np.linalg.norm(components[0] - components[3]) == pytest.approx(np.linalg.norm(points[0] - points[3]))


class TestMixtures:
    def test_points_far_apart_are_as_many_components_as_groups(self) -> None:
        members = mixture_members(principal_components(near_topics(), 3), threshold=0.1, seed=0)
        assert sorted(lists(members)) == [list(range(12)), list(range(12, 24)), list(range(24, 36))]

    def test_one_cloud_is_one_component(self) -> None:
        cloud = np.random.default_rng(3).normal(size=(200, 4))
        assert lists(mixture_members(cloud, threshold=0.1, seed=0)) == [list(range(200))]

    def test_a_point_between_two_groups_belongs_to_both(self) -> None:
        rng = np.random.default_rng(4)
        left, right = rng.normal(-1, 0.25, size=(60, 1)), rng.normal(1, 0.25, size=(60, 1))
        points = np.concatenate([left, right, [[(left.mean() + right.mean()) / 2]]])
        soft = mixture_members(points, threshold=0.1, seed=0)
        assert [part.tolist().count(120) for part in soft] == [1, 1]
        hard = mixture_members(points, threshold=1.0, seed=0)
        assert sum(part.tolist().count(120) for part in hard) == 1  # the most probable one, whatever the threshold

    @pytest.mark.parametrize("count", [0, 1, 2, 3])
    def test_few_or_equal_points_are_one_component(self, count: int) -> None:
        assert lists(mixture_members(np.ones((count, 2)), threshold=0.1, seed=0)) == (
            [list(range(count))] if count else []
        )


class TestClusters:
    def test_topics_are_summarised_each_by_itself(self) -> None:
        assert clustered(near_topics()) == [list(range(12)), list(range(12, 24)), list(range(24, 36))]

    def test_few_texts_are_one_cluster(self) -> None:
        assert clustered(near_topics()[: DIMENSIONS + 1]) == [list(range(DIMENSIONS + 1))]

    def test_a_layer_that_does_not_shrink_has_none(self) -> None:
        assert clustered(near_topics()[:1]) == []
        assert clustered(near_topics()[:0]) == []
        assert clustered(near_topics()[:4], length=100, most=199) == []  # no two fit together: four again

    def test_what_is_too_long_is_parted_along_its_greatest_spread(self) -> None:
        line = np.stack([np.arange(8), np.zeros(8)], axis=1).astype(np.float32)
        lengths = np.full(8, 100)
        assert lists(list(parted(line, lengths, np.arange(8), 800))) == [list(range(8))]
        assert lists(list(parted(line, lengths, np.arange(8), 799))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert lists(list(parted(line[::-1], lengths, np.array([0, 1, 6, 7]), 200))) == [[6, 7], [0, 1]]
        lengths[7] = 700  # one long text weighs as much as the others together
        assert lists(list(parted(line, lengths, np.arange(8), 799))) == [[0, 1, 2, 3, 4, 5, 6], [7]]

    def test_equal_texts_are_parted_too(self) -> None:
        assert [len(part) for part in clustered(np.ones((8, 2), np.float32), most=450)] == [4, 4]

    def test_a_text_that_no_summary_has_room_for_is_refused(self) -> None:
        with pytest.raises(TreeError, match="A text has 101 characters, and a summary is made of at most 100"):
            clusters(near_topics()[:2], np.array([50, 101]), most=100, threshold=0.1, seed=42)

    @limits(max_examples=8)
    @given(st.integers(2, 60), st.integers(0, 10**6), st.integers(300, 3000), st.floats(0.01, 1))
    def test_each_text_is_in_a_cluster_and_none_is_too_long(
        self, count: int, seed: int, most: int, threshold: float
    ) -> None:
        rng = np.random.default_rng(seed)
        vectors, lengths = unit(rng.normal(size=(count, 16))), rng.integers(1, 300, count)
        made = clusters(vectors, lengths, most=most, threshold=threshold, seed=seed)
        if made:
            assert set(chain(*lists(made))) == set(range(count))
            assert len(made) < count
            assert all(lengths[part].sum() <= most for part in made)
        assert lists(made) == lists(clusters(vectors, lengths, most=most, threshold=threshold, seed=seed))

    @pytest.mark.thorough
    def test_the_number_of_threads_changes_nothing(self) -> None:
        command = "from tests.ir.test_trees import *; print(clustered(near_topics(noise=0.6)))"
        told = {
            subprocess.run(
                [sys.executable, "-c", command],
                env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for threads in ("1", "3")
        }
        assert len(told) == 1

    @pytest.mark.thorough  # numba compiles it: half a minute, and 15 s where it has done so before
    def test_umap_keeps_topics_apart_and_is_seeded(self) -> None:
        pytest.importorskip("umap")
        made = clustered(near_topics(), reduction="umap")
        assert set(chain(*made)) == set(range(36))
        assert all(len({row // 12 for row in part}) == 1 for part in made)
        assert made == clustered(near_topics(), reduction="umap")


@dataclass
class Grown:
    """Leaves 0 to 4, summaries 5 (of 0, 1), 6 (of 1, 2, 3), 7 (of 4), and 8 above 5 and 6, 9 above 7."""

    levels: NDArray[np.int16]
    children: dict[int, list[int]]

    def children_of(self, positions: Positions) -> Positions:
        return np.array(sorted({child for node in positions.tolist() for child in self.children[node]}), np.int64)


TREE = Grown(np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2], np.int16), {5: [0, 1], 6: [1, 2, 3], 7: [4], 8: [5, 6], 9: [7]})
SIMILARITIES = np.array([0.1, 0.5, 0.8, 0.3, 0.6, 0.2, 0.7, 0.4, 0.05, 0.15])


def near(depth: int, mask: NDArray[np.bool_] | None) -> ScoredList:
    admitted = np.arange(10) if mask is None else np.flatnonzero(mask)
    return top(SIMILARITIES[admitted], depth, ids=admitted)


def found(depth: int, mask: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
    ranked = collapsed(TREE, near(depth, mask), near, mask, depth)
    return list(zip(ranked.ids.tolist(), ranked.scores.tolist(), strict=True))


class TestSearching:
    def test_leaves_below_a_summary(self) -> None:
        assert [leaves_below(TREE, node).tolist() for node in (2, 6, 8, 9)] == [[2], [1, 2, 3], [0, 1, 2, 3], [4]]

    def test_a_summary_brings_its_leaves_by_their_own_similarity_once(self) -> None:
        # By similarity: leaf 2, summary 6 (whose leaves are left: 1, then 3), leaf 4, leaf 1, 7, 3, 5 (left: 0).
        assert found(5) == [(2, 0.8), (1, 0.7), (3, 0.7), (4, 0.6), (0, 0.2)]

    def test_a_shorter_list_is_the_beginning_of_a_longer_one(self) -> None:
        for depth in range(6):
            assert found(depth) == found(5)[:depth]
        assert found(50) == found(5)

    def test_a_filter_admits_leaves_and_the_summaries_above_them(self) -> None:
        only = np.zeros(10, bool)
        only[[0, 3, 5, 6, 8]] = True
        assert found(5, only) == [(3, 0.7), (0, 0.2)]

    def test_without_summaries_it_is_the_list_of_leaves(self) -> None:
        leaves = TREE.levels == 0
        assert found(3, leaves) == [(2, 0.8), (4, 0.6), (1, 0.5)]

    def test_layer_by_layer_stays_below_what_it_went_on_with(self) -> None:
        narrow = layer_by_layer(TREE, near, None, 5, layer_top_k=1)  # 9, then 7, then 4
        assert (narrow.ids.tolist(), narrow.scores.tolist()) == ([4], [0.6])
        wide = layer_by_layer(TREE, near, None, 5, layer_top_k=2)  # 9 and 8, then 6 and 7
        assert wide.ids.tolist() == [2, 4, 1, 3]
        only = np.ones(10, bool)
        only[9] = only[2] = False
        assert layer_by_layer(TREE, near, only, 5, layer_top_k=1).ids.tolist() == [1, 3]
