"""Chunks of texts, and trees of summaries: what is summarised together, and what searching them finds."""

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

from benchbench.ir import trees
from benchbench.ir.chunking import ChunkingError, cut_spans, find_first_sentences, list_segments
from benchbench.ir.ranking import top

THREE = np.repeat([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], 12, axis=0)  # three topics of twelve texts


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def near_topics(seed=5, noise=0.05):
    return unit(THREE + np.random.default_rng(seed).normal(size=THREE.shape) * noise)


def lists(pieces):
    return [piece.tolist() for piece in pieces]


def clustered(vectors, *, length=100, maximum=10_000, **options):
    lengths = np.full(len(vectors), length)
    return lists(trees.find_clusters(vectors, lengths, limit=maximum, **{"threshold": 0.1, "seed": 42} | options))


class TestPrincipalComponents:
    def test_the_axis_of_greatest_spread_comes_first(self):
        components = trees.principal_components(np.array([[0, 0], [4, 0], [0, 1], [4, 1]], np.float32), 2)
        assert np.allclose(components, [[-2, -0.5], [2, -0.5], [-2, 0.5], [2, 0.5]])

    def test_few_rows_of_many_dimensions_keep_their_distances(self):
        points = np.random.default_rng(1).normal(size=(4, 50)).astype(np.float32)
        components = trees.principal_components(points, trees.DIMENSIONS)
        assert components.shape == (4, 4)
        assert np.linalg.norm(components[0] - components[3]) == pytest.approx(np.linalg.norm(points[0] - points[3]))


class TestMixtures:
    def test_points_far_apart_are_as_many_components_as_groups(self):
        members = trees.fit_mixture(trees.principal_components(near_topics(), 3), threshold=0.1, seed=0)
        assert sorted(lists(members)) == [list(range(12)), list(range(12, 24)), list(range(24, 36))]

    def test_one_cloud_is_one_component(self):
        cloud = np.random.default_rng(3).normal(size=(200, 4))
        assert lists(trees.fit_mixture(cloud, threshold=0.1, seed=0)) == [list(range(200))]

    def test_a_point_between_two_groups_belongs_to_both(self):
        rng = np.random.default_rng(4)
        left, right = rng.normal(-1, 0.25, size=(60, 1)), rng.normal(1, 0.25, size=(60, 1))
        points = np.concatenate([left, right, [[(left.mean() + right.mean()) / 2]]])
        soft = trees.fit_mixture(points, threshold=0.1, seed=0)
        assert [segment.tolist().count(120) for segment in soft] == [1, 1]
        hard = trees.fit_mixture(points, threshold=1.0, seed=0)
        assert (
            sum(piece.tolist().count(120) for piece in hard) == 1
        )  # the most probable one, no matter what the threshold

    @pytest.mark.parametrize("count", [0, 1, 2, 3])
    def test_few_or_equal_points_are_one_component(self, count):
        members = trees.fit_mixture(np.ones((count, 2)), threshold=0.1, seed=0)
        assert lists(members) == ([list(range(count))] if count else [])


class TestClusters:
    def test_topics_are_summarised_each_by_itself(self):
        assert clustered(near_topics()) == [list(range(12)), list(range(12, 24)), list(range(24, 36))]

    def test_few_texts_are_one_cluster(self):
        assert clustered(near_topics()[: trees.DIMENSIONS + 1]) == [list(range(trees.DIMENSIONS + 1))]

    def test_a_layer_that_does_not_shrink_has_none(self):
        assert clustered(near_topics()[:1]) == []
        assert clustered(near_topics()[:0]) == []
        assert clustered(near_topics()[:4], length=100, maximum=199) == []  # no two fit together: four again

    def test_long_clusters_are_split_along_their_greatest_spread(self):
        line = np.stack([np.arange(8), np.zeros(8)], axis=1).astype(np.float32)
        lengths = np.full(8, 100)
        assert lists(list(trees.split_rows(line, lengths, np.arange(8), 800))) == [list(range(8))]
        assert lists(list(trees.split_rows(line, lengths, np.arange(8), 799))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert lists(list(trees.split_rows(line[::-1], lengths, np.array([0, 1, 6, 7]), 200))) == [[6, 7], [0, 1]]
        lengths[7] = 700  # one long text weighs as much as the others together
        assert lists(list(trees.split_rows(line, lengths, np.arange(8), 799))) == [[0, 1, 2, 3, 4, 5, 6], [7]]

    def test_equal_texts_are_parted_too(self):
        assert [len(piece) for piece in clustered(np.ones((8, 2), np.float32), maximum=450)] == [4, 4]

    def test_texts_too_long_for_a_summary_are_rejected(self):
        with pytest.raises(trees.TreeError, match="A text has 101 characters, but a summary takes at most 100"):
            trees.find_clusters(near_topics()[:2], np.array([50, 101]), limit=100, threshold=0.1, seed=42)

    @limits(max_examples=8)
    @given(st.integers(2, 60), st.integers(0, 10**6), st.integers(300, 3000), st.floats(0.01, 1))
    def test_each_text_is_in_a_cluster_that_fits(self, count, seed, most_units, threshold):
        rng = np.random.default_rng(seed)
        vectors, lengths = unit(rng.normal(size=(count, 16))), rng.integers(1, 300, count)
        clusters = trees.find_clusters(vectors, lengths, limit=most_units, threshold=threshold, seed=seed)
        if clusters:
            assert set(chain(*lists(clusters))) == set(range(count))
            assert len(clusters) < count
            assert all(lengths[piece].sum() <= most_units for piece in clusters)
        assert lists(clusters) == lists(
            trees.find_clusters(vectors, lengths, limit=most_units, threshold=threshold, seed=seed)
        )

    @pytest.mark.thorough
    def test_the_number_of_threads_changes_nothing(self):
        command = "from tests.ir.test_trees import *; print(clustered(near_topics(noise=0.6)))"
        answers = {
            subprocess.run(
                [sys.executable, "-c", command],
                env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for threads in ("1", "3")
        }
        assert len(answers) == 1

    @pytest.mark.long
    @pytest.mark.thorough  # numba compiles it: half a minute, and 15 s where it has done so before
    def test_umap_keeps_topics_apart_and_is_seeded(self):
        pytest.importorskip("umap")
        created = clustered(near_topics(), reduction="umap")
        assert set(chain(*created)) == set(range(36))
        assert all(len({row // 12 for row in piece}) == 1 for piece in created)
        assert created == clustered(near_topics(), reduction="umap")


@dataclass
class Grown:
    """Leaves 0 to 4, summaries 5 (of 0, 1), 6 (of 1, 2, 3), 7 (of 4), and 8 above 5 and 6, 9 above 7."""

    levels: NDArray[np.int16]
    children: dict[int, list[int]]

    def find_children(self, positions):
        return np.array(sorted({child for node in positions.tolist() for child in self.children[node]}), np.int64)


TREE = Grown(np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2], np.int16), {5: [0, 1], 6: [1, 2, 3], 7: [4], 8: [5, 6], 9: [7]})
SIMILARITIES = np.array([0.1, 0.5, 0.8, 0.3, 0.6, 0.2, 0.7, 0.4, 0.05, 0.15])


def near(depth, mask):
    admitted = np.arange(10) if mask is None else np.flatnonzero(mask)
    return top(SIMILARITIES[admitted], depth, ids=admitted)


def search_tree(depth, mask=None):
    ranked = trees.search_collapsed(TREE, near(depth, mask), near, mask, depth)
    return list(zip(ranked.ids.tolist(), ranked.scores.tolist(), strict=True))


class TestSearching:
    def test_leaves_below_a_summary(self):
        assert [trees.list_leaves(TREE, node).tolist() for node in (2, 6, 8, 9)] == [[2], [1, 2, 3], [0, 1, 2, 3], [4]]

    def test_summary_returns_its_leaves_once_by_own_similarity(self):
        # By similarity: leaf 2, summary 6 (whose leaves are left: 1, then 3), leaf 4, leaf 1, 7, 3, 5 (left: 0).
        assert search_tree(5) == [(2, 0.8), (1, 0.7), (3, 0.7), (4, 0.6), (0, 0.2)]

    def test_shorter_list_is_a_prefix_of_longer_ones(self):
        for depth in range(6):
            assert search_tree(depth) == search_tree(5)[:depth]
        assert search_tree(50) == search_tree(5)

    def test_a_filter_admits_leaves_and_the_summaries_above_them(self):
        only = np.zeros(10, bool)
        only[[0, 3, 5, 6, 8]] = True
        assert search_tree(5, only) == [(3, 0.7), (0, 0.2)]

    def test_without_summaries_it_is_the_list_of_leaves(self):
        assert search_tree(3, TREE.levels == 0) == [(2, 0.8), (4, 0.6), (1, 0.5)]

    def test_layer_by_layer_descends_only_below_selected_nodes(self):
        narrow = trees.traverse_tree(TREE, near, None, 5, layer_top_k=1)  # 9, then 7, then 4
        assert (narrow.ids.tolist(), narrow.scores.tolist()) == ([4], [0.6])
        wide = trees.traverse_tree(TREE, near, None, 5, layer_top_k=2)  # 9 and 8, then 6 and 7
        assert wide.ids.tolist() == [2, 4, 1, 3]
        only = np.ones(10, bool)
        only[9] = only[2] = False
        assert trees.traverse_tree(TREE, near, only, 5, layer_top_k=1).ids.tolist() == [1, 3]


def lengths_and_starts(characters, **parameters):
    return cut_spans("x" * characters, **parameters)


def test_a_text_that_fits_is_one_chunk():
    assert lengths_and_starts(450, size=500, overlap=50) == [(0, 450)]
    assert lengths_and_starts(500, size=500, overlap=50) == [(0, 500)]


def test_windows_overlap_and_stop_at_the_end():
    assert lengths_and_starts(1000, size=500, overlap=50) == [(0, 500), (450, 950), (900, 1000)]
    assert lengths_and_starts(950, size=500, overlap=50) == [(0, 500), (450, 950)]
    assert lengths_and_starts(951, size=500, overlap=50) == [(0, 500), (450, 950), (900, 951)]


def test_trailing_white_space_makes_no_chunk_of_its_own():
    assert cut_spans("x" * 500 + "\n\n", size=500, overlap=50) == [(0, 500)]


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_a_blank_text_has_no_chunks(text):
    assert cut_spans(text, size=500, overlap=50) == []


def test_a_window_of_white_space_is_left_out():
    assert cut_spans("aaaa" + " " * 8 + "bbbb", size=4, overlap=0) == [(0, 4), (12, 16)]


@pytest.mark.parametrize(("size", "overlap"), [(500, 250), (500, -1), (0, 0), (10, 12)])
def test_overlap_of_half_the_size_is_rejected(size, overlap):
    with pytest.raises(ChunkingError, match=rf"overlap {overlap} must be .*, which is {size}"):
        cut_spans("text", size=size, overlap=overlap)


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 30), st.integers(0, 14))
def test_chunks_cover_all_and_each_brings_something_new(text, size, overlap):
    overlap = min(overlap, (size - 1) // 2)
    covered = set()
    for start, end in cut_spans(text, size=size, overlap=overlap):
        assert 0 < end - start <= size
        new = set(range(start, end)) - covered
        assert new
        covered |= new
    assert {index for index, character in enumerate(text) if not character.isspace()} <= covered


@pytest.mark.parametrize(
    ("spans", "pieces"),
    [
        ([], [(0, 10, None)]),
        ([(2, 5), (5, 10)], [(0, 2, None), (2, 5, 0), (5, 10, 1)]),
        ([(0, 10), (3, 6)], [(0, 3, 0), (3, 6, 1), (6, 10, 0)]),
        ([(0, 10), (4, 4)], [(0, 10, 0)]),
        ([(0, 6), (4, 10)], [(0, 6, 0), (6, 10, 1)]),
        ([(0, 10), (0, 10)], [(0, 10, 0)]),
        ([(0, 8), (2, 4), (1, 6)], [(0, 1, 0), (1, 2, 2), (2, 4, 1), (4, 6, 2), (6, 8, 0), (8, 10, None)]),
    ],
)
def test_each_part_belongs_to_its_shortest_covering_span(spans, pieces):
    assert list_segments(10, spans) == pieces


def test_an_empty_text_has_no_parts():
    assert list_segments(0, [(0, 0)]) == []


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        (" One\nline. ", "One line."),
        ("One. Two! Three?", "One. Two!"),
        ('He said "no." Then went.', 'He said "no."'),
        ("Heading\n\nText", "Heading Text"),
        ("A sentence longer than that", "A sentence"),
        ("Unbrokenandlongerthanthat", "Unbrokenandlon"),
    ],
)
def test_a_summary_is_the_first_sentences_that_fit(text, summary):
    assert find_first_sentences(text, limit=14) == summary
