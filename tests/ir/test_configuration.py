import pytest

from benchbench.ir.planning.configuration import AXES, Configuration
from benchbench.ir.planning.labels import run_label

CLASSIC = Configuration(search_mode="dense", use_reranker=False, top_k=10, rrf_k=60, score_threshold=None)


class TestHash:
    def test_the_known_answer(self):
        assert CLASSIC.hash == "b431515b113d4585"

    @pytest.mark.parametrize(
        "other",
        [
            {"top_k": 11},
            {"index": "e5"},
            {"candidates": 50},
            {"rerank_depth": 5},
            {"reranker": "x"},
            {"lexical": "fts"},
            {"weights": (0.7, 0.3)},
            {"ann": "hnsw"},
        ],
    )
    def test_every_key_that_is_not_at_its_default_enters_it(self, other):
        assert Configuration(**{"top_k": 10, **other}).hash != CLASSIC.hash


class TestDict:
    def test_it_holds_index_and_the_classic_keys_and_others_where_they_differ(self):
        assert CLASSIC.as_dict() == {
            "index": None,
            "search_mode": "dense",
            "use_reranker": False,
            "top_k": 10,
            "rrf_k": 60,
            "score_threshold": None,
        }
        assert Configuration(candidates=500, reranker="x").as_dict().keys() - CLASSIC.as_dict().keys() == {
            "candidates",
            "reranker",
        }

    @pytest.mark.parametrize(
        "configuration",
        [
            CLASSIC,
            Configuration(index="e5", search_mode="hybrid", weights=(0.7, 0.3), candidates=7, score_threshold=0.5),
        ],
    )
    def test_it_reads_back(self, configuration):
        assert Configuration.from_dict(configuration.as_dict()) == configuration

    def test_it_reads_back_what_json_made_of_it(self):
        assert Configuration.from_dict({"weights": [0.7, 0.3]}).weights == (0.7, 0.3)


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({}, "dense · top 100"),
        ({"search_mode": "sparse", "index": "e5", "top_k": 10}, "e5 · lexical · top 10"),
        ({"index": "dense"}, "dense · dense · top 100"),
        (
            {"search_mode": "hybrid", "use_reranker": True, "reranker": "models/tiny", "score_threshold": 0.5},
            "hybrid · rrf 60 · rerank tiny · top 100 · ≥ 0.5",
        ),
        (
            {"use_reranker": True, "reranker": "/models/tiny/", "candidates": 500, "rerank_depth": 50},
            "dense · 500 candidates · rerank tiny · rerank depth 50 · top 100",
        ),
    ],
)
def test_its_label_says_what_it_does_and_no_more(values, label):
    assert run_label(Configuration(**values)) == label


@pytest.mark.parametrize("field", AXES)
def test_runs_that_differ_in_one_axis_have_different_labels(field):
    values = {"use_reranker": (False, True), "ann": ("exact", "hnsw"), "weights": ((0.5, 0.5), (0.7, 0.3))}
    two = {"search_mode": ("dense", "sparse"), "lexical": ("bm25", "fts"), "fusion": ("rrf", "weighted")} | values
    texts = {"index": ("a", "b"), "reranker": ("a", "b"), "score_threshold": (None, 0.5), "llm": ("s:a", "s:b")}
    texts |= {"query": ("rewrite", "hyde")}
    searched = {"search_mode": "hybrid", "use_reranker": field != "use_reranker", "query": "rewrite", "llm": "s:a"}
    fusion = {"fusion": "weighted"} if field == "weights" else {}
    first, second = (two | texts).get(field, (10, 20))
    labels = {run_label(Configuration(**{**searched, **fusion, field: value})) for value in (first, second)}
    assert len(labels) == 2


def test_depths_default_to_top_k_and_a_reranker_gets_no_more_than_the_candidates():
    assert (Configuration(top_k=50).effective_candidates, Configuration(top_k=50).effective_rerank_depth) == (50, 50)
    assert Configuration(top_k=50, candidates=20).effective_rerank_depth == 20
    assert Configuration(top_k=50, candidates=90, rerank_depth=70).effective_rerank_depth == 70


class TestNormal:
    """Configurations that search alike have one normal form."""

    @pytest.mark.parametrize(
        ("values", "plainest"),
        [
            ({"rrf_k": 40}, {}),
            ({"reranker": "tiny", "rerank_depth": 20}, {}),
            ({"candidates": 500}, {}),
            ({"candidates": 100}, {}),
            ({"lexical": "fts"}, {}),
            ({"search_mode": "sparse", "ann": "hnsw"}, {"search_mode": "sparse"}),
            ({"search_mode": "hybrid", "candidates": 100}, {"search_mode": "hybrid"}),
            ({"search_mode": "hybrid", "weights": (1.0, 2.0)}, {"search_mode": "hybrid"}),
            (
                {"search_mode": "hybrid", "fusion": "weighted", "weights": (1.0, 2.0), "rrf_k": 40},
                {"search_mode": "hybrid", "fusion": "weighted", "weights": (1.0, 2.0)},
            ),
            (
                {"search_mode": "hybrid", "fusion": "weighted"},
                {"search_mode": "hybrid", "fusion": "weighted", "weights": (0.5, 0.5)},
            ),
            ({"search_mode": "sparse", "ann": "hnsw", "candidates": 500}, {"search_mode": "sparse"}),
            (
                {"use_reranker": True, "reranker": "tiny", "rerank_depth": 100, "candidates": 400},
                {"use_reranker": True, "reranker": "tiny"},
            ),
            (
                {"use_reranker": True, "reranker": "tiny", "rerank_depth": 200, "candidates": 400},
                {"use_reranker": True, "reranker": "tiny", "rerank_depth": 200, "candidates": 200},
            ),
        ],
    )
    def test_what_does_not_touch_the_search_falls_away(self, values, plainest):
        assert Configuration(**values).normal() == Configuration(**plainest)

    @pytest.mark.parametrize(
        "values",
        [
            {"candidates": 50},
            {"search_mode": "hybrid", "candidates": 500, "rrf_k": 40},
            {"use_reranker": True, "reranker": "tiny", "rerank_depth": 20},
            {"search_mode": "sparse", "lexical": "fts"},
            {"score_threshold": 0.0},
            {"ann": "hnsw", "candidates": 500},
        ],
    )
    def test_what_touches_it_stays(self, values):
        assert Configuration(**values).normal() == Configuration(**values)

    def test_a_whole_threshold_hashes_as_the_number_it_is(self):
        assert Configuration(score_threshold=1).normal().hash == Configuration(score_threshold=1.0).hash
