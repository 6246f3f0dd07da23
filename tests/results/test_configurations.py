from apps.results.configurations import phrases, varying
from benchbench.ir.planning.matrix import Configuration

DENSE = Configuration(search_mode="dense").as_dict()
HYBRID = Configuration(search_mode="hybrid", rrf_k=20, top_k=50).as_dict()


def test_what_differs_is_named_in_a_fixed_order() -> None:
    assert varying([DENSE, HYBRID]) == ["search_mode", "top_k"]
    assert varying([HYBRID, {**HYBRID, "rrf_k": 40}]) == ["rrf_k"]
    assert varying([DENSE]) == []
    assert varying([DENSE, {**DENSE, "candidates": 500}]) == ["candidates"]


def test_a_key_that_does_not_touch_a_run_does_not_tell_it_apart() -> None:
    assert varying([DENSE, {**DENSE, "rrf_k": 40}]) == []
    assert phrases(DENSE, ["search_mode", "rrf_k", "reranker"]) == ["dense"]


def test_it_says_configurations_in_words() -> None:
    config = Configuration(
        index="minilm", search_mode="sparse", use_reranker=True, reranker="models/tiny", score_threshold=0.5
    ).as_dict()
    keys = ["index", "search_mode", "use_reranker", "reranker", "top_k", "score_threshold"]
    assert phrases(config, keys) == ["index minilm", "lexical", "reranked", "tiny", "top 100", "score ≥ 0.5"]
    stated = {**DENSE, "ann": "hnsw", "query_prefix": "a"}
    assert phrases(stated, ["ann", "query_prefix", "score_threshold"]) == ["hnsw", "query prefix a", "no threshold"]
    weighted = Configuration(search_mode="hybrid", fusion="weighted", weights=(0.7, 0.3), lexical="fts").as_dict()
    keys = ["lexical", "fusion", "weights", "rrf_k"]
    assert phrases(weighted, keys) == ["full text", "weighted fusion", "weights 0.7 + 0.3"]
