from apps.results.configurations import phrases, shared, varying
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


def test_what_is_common_does_not_depend_on_which_run_is_first() -> None:
    short = Configuration(search_mode="dense", dimensions=64).as_dict()
    lexical = Configuration(search_mode="sparse").as_dict()
    fused = Configuration(search_mode="hybrid", rrf_k=20).as_dict()
    assert "RRF k 20 where it applies" in shared([DENSE, fused])
    assert sorted(shared([fused, DENSE])) == sorted(shared([DENSE, fused]))
    assert "64 dimensions where it applies" in shared([short, lexical])
    assert sorted(shared([lexical, short])) == sorted(shared([short, lexical]))
    assert "top 100" in shared([short, lexical])
    assert not any("RRF" in one for one in shared([short, lexical]))
    assert "RRF k 20" in shared([fused, {**fused, "top_k": 50}])
    assert not any("RRF" in one for one in shared([fused, HYBRID, {**HYBRID, "rrf_k": 7}, DENSE]))


def test_nothing_is_common_with_runs_of_which_nothing_is_known() -> None:
    assert shared([DENSE, {}]) == shared([]) == []
