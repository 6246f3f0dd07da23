import numpy as np
import pytest

from benchbench.ir.planning.ann import Ann, AnnError
from benchbench.ir.planning.matrix import Matrix
from benchbench.ir.ranking import recall
from benchbench.ir.records import ScoredList
from benchbench.reading.calls import split_calls


def test_listed_values_state_every_combination():
    text = "compressed(dimensions=64|128, precision=int8 | binary)"
    listed = {"method": "compressed", "dimensions": [64, 128], "precision": ["int8", "binary"]}
    settings = [str(setting) for setting in Ann.expand(text)]
    assert Ann.expand(text) == Ann.expand(listed)
    assert settings == [
        "compressed(dimensions=64)",
        "compressed(dimensions=64, precision=binary)",
        "compressed(dimensions=128)",
        "compressed(dimensions=128, precision=binary)",
    ]
    assert Matrix.parse({"ann": ["exact", text]}).axes["ann"] == ("exact", *settings)
    with pytest.raises(AnnError, match="states 121 settings; state 1 to 100"):
        Ann.expand(f"hnsw(m={'|'.join(['8'] * 11)}, ef_search={'|'.join(['9'] * 11)})")
    with pytest.raises(AnnError, match="states 0 settings"):
        Ann.expand({"method": "hnsw", "m": []})


class TestText:
    @pytest.mark.parametrize(
        ("declared", "canonical"),
        [
            ("exact", "exact"),
            ("exact()", "exact"),
            (" hnsw ", "hnsw"),
            ("hnsw(m=16, ef_construction=64, ef_search=40, iterative=off, storage=vector)", "hnsw"),
            ("hnsw(m=16,ef_search=100,iterative=strict)", "hnsw(ef_search=100, iterative=strict)"),
            ("hnsw( storage = binary , m=8 )", "hnsw(m=8, storage=binary)"),
            ("ivfflat(lists=100, probes=10)", "ivfflat(probes=10)"),
            ({"method": "hnsw"}, "hnsw"),
            ({"storage": "halfvec", "ef_search": 100, "method": "hnsw"}, "hnsw(ef_search=100, storage=halfvec)"),
        ],
    )
    def test_equal_settings_have_one_text_that_reads_back(self, declared, canonical):
        setting = Ann.parse(declared)
        assert str(setting) == canonical
        assert Ann.parse(canonical) == setting
        assert hash(Ann.parse(canonical)) == hash(setting)

    def test_options_are_complete(self):
        setting = Ann.parse("hnsw(m=8)")
        assert (setting["m"], setting["ef_search"], setting["storage"]) == (8, 40, "vector")

    def test_settings_of_one_index_are_built_alike(self):
        assert Ann.parse("hnsw(ef_search=7, iterative=strict, m=8)").build == Ann.parse("hnsw(m=8)").build
        assert Ann.parse("ivfflat(probes=7)").build == {"lists": 100, "storage": "vector", "dimensions": 0}
        assert Ann.parse("hnsw(storage=binary)").build != Ann.parse("hnsw").build
        assert Ann.parse("compressed(rescore=0)").build == Ann.parse("compressed").build

    def test_list_is_split_between_settings_but_not_options(self):
        calls = "exact, hnsw(m=8, ef_search=100),ivfflat"
        assert split_calls(calls) == ["exact", "hnsw(m=8, ef_search=100)", "ivfflat"]
        assert split_calls(" , ") == []


class TestErrors:
    @pytest.mark.parametrize(
        ("declared", "sentence"),
        [
            ("diskann", 'The method "diskann" does not exist; choose one of exact, compressed, hnsw, ivfflat.'),
            ({"method": ["hnsw"]}, 'The method ["hnsw"] does not exist; choose one of'),
            ({"m": 8}, '{"m": 8} must have a method; choose one of exact, compressed, hnsw, ivfflat.'),
            ("", '"" is not a setting such as exact, hnsw or hnsw(ef_search=100, storage=halfvec).'),
            ("hnsw(m=8", '"hnsw(m=8" is not a setting such as'),
            ("hnsw m=8", '"hnsw m=8" is not a setting such as'),
            ("hnsw(8)", '"8" is not an option such as ef_search=100.'),
            ("ivfflat(lists=)", '"lists=" is not an option such as probes=10.'),
            ("hnsw(m=8, m=9)", "m occurs more than once."),
            ("hnsw(ef_serach=100)", 'hnsw has no option "ef_serach"; did you mean ef_search?'),
            ("ivfflat(walks=1)", 'ivfflat has no option "walks"; choose one of lists, probes, iterative, storage'),
            ("exact(m=8)", 'exact has no option "m"; it takes no options.'),
            ("hnsw(m=1)", "m: 1 is not a whole number from 2 to 100."),
            ("hnsw(ef_search=many)", 'ef_search: "many" is not a whole number from 1 to 1000.'),
            (f"hnsw(ef_search={'9' * 5000})", 'ef_search: "999'),
            ({"method": "hnsw", "ef_search": True}, "ef_search: true is not a whole number"),
            ({"method": "hnsw", "ef_search": 40.0}, "ef_search: 40.0 is not a whole number"),
            ("hnsw(storage=int8)", 'storage: "int8" is not one of vector, halfvec, binary.'),
            ("ivfflat(iterative=strict)", 'iterative: "strict" is not one of off, relaxed.'),
            ("hnsw(m=40)", "ef_construction: 64 is less than twice m, which is 40; raise it to 80."),
            ("compressed(precision=int4)", 'precision: "int4" is not one of float32, float16, int8, binary.'),
            ("ivfflat(lists=5, probes=6)", "probes: 6 is more than lists, which is 5."),
        ],
    )
    def test_each_error_lists_the_valid_choices(self, declared, sentence):
        with pytest.raises(AnnError) as raised:
            Ann.parse(declared)
        assert sentence in raised.value.message


class TestShortfall:
    def test_a_narrow_search_cannot_fill_a_deep_list(self):
        assert Ann.parse("hnsw").describe_shortfall(100) == (
            "hnsw finds at most 40 chunks per query because of ef_search, but 100 are needed: raise ef_search to "
            "100, or let it scan on (iterative=strict)."
        )
        assert "needed: let it scan on" in Ann.parse("hnsw").describe_shortfall(2000)

    @pytest.mark.parametrize("text", ["exact", "hnsw(ef_search=100)", "hnsw(iterative=relaxed)", "ivfflat"])
    def test_others_may_fill_it(self, text):
        assert Ann.parse(text).describe_shortfall(100) == ""

    @pytest.mark.parametrize("text", ["compressed(rescore=20)", "hnsw(ef_search=100, rescore=20)"])
    def test_rescoring_above_depth_alone_has_an_effect(self, text):
        assert Ann.parse(text).describe_shortfall(20) == ""
        assert "rescore has no effect: raise it above 100, or leave it out." in Ann.parse(text).describe_shortfall(100)

    @pytest.mark.parametrize("text", ["compressed", "compressed(rescore=0)", "faiss:hnsw(storage=int8)"])
    def test_default_rescoring_needs_no_remedy(self, text):
        assert Ann.parse(text).describe_shortfall(1000) == ""

    @pytest.mark.parametrize(
        ("text", "limits"),
        [
            ("exact", []),
            ("pgvector:exact", []),
            ("hnsw", ["ef_search"]),
            ("hnsw(ef_search=1000)", []),
            ("hnsw(storage=binary)", ["ef_search", "rescore"]),
            ("ivfflat(dimensions=32)", ["probes", "rescore"]),
            ("ivfflat(lists=5, probes=5)", []),
            ("chromadb:hnsw", ["ef_search"]),
            ("faiss:ivfpq", ["probes", "m"]),
            ("lancedb:ivfpq", ["m"]),
            ("compressed", ["rescore"]),
            ("compressed(precision=float32)", []),
        ],
    )
    def test_limits_are_what_can_find_more(self, text, limits):
        assert Ann.parse(text).list_limits() == limits


class TestRecall:
    TRUTH = ScoredList(np.array([4, 2, 7, 9]), np.array([0.9, 0.8, 0.8, 0.1]))

    @pytest.mark.parametrize(
        ("ids", "scores", "k", "share"),
        [
            ([4, 2, 7, 9], [0.9, 0.8, 0.8, 0.1], 4, 1),
            ([2, 9], [0.8, 0.1], 4, 1 / 2),
            ([2, 9], [0.8, 0.1], 1, 0),
            ([4, 7], [0.9, 0.8], 2, 1),  # 7 is as near as 2
            ([4, 2, 7], [0.9, 0.8, 0.8], 2, 1),
            ([4], [0.9], 10, 1 / 4),
            ([], [], 2, 0),
        ],
    )
    def test_the_share_of_the_exact_top_that_was_found(self, ids, scores, k, share):
        assert recall(ScoredList(np.array(ids, np.int64), np.array(scores, float)), self.TRUTH, k) == share

    def test_recall_counts_only_exact_chunks_when_sets_differ(self):
        nearer = ScoredList(np.array([5, 2]), np.array([0.95, 0.8]))
        assert recall(nearer, self.TRUTH, 2) == 1
        assert recall(nearer, self.TRUTH, 2, of_same_set=False) == 1 / 2

    def test_recall_by_other_scores_counts_exact_chunks(self):
        compressed = ScoredList(np.array([5, 7, 4]), np.array([0.99, 0.98, 0.97]))
        assert recall(compressed, self.TRUTH, 2, same_scores=False) == 1 / 2
        assert recall(compressed, self.TRUTH, 3, same_scores=False) == 2 / 3

    def test_where_nothing_is_to_be_found_there_is_none(self):
        assert recall(ScoredList.empty(), ScoredList.empty(), 10) is None
