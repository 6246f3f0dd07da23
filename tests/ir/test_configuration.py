import pytest

from benchbench.ir.planning.axes import AXES, normalize, run_label
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.matrix import Matrix, MatrixError
from benchbench.ir.planning.plan import plan
from benchbench.ir.planning.query_text import QueryText, QueryTextError
from benchbench.ir.planning.stages import EncodeStage, LexicalStage, MergeStage, RewriteStage

CLASSIC = Configuration(search_mode="dense", use_reranker=False, top_k=10, rrf_k=60, score_threshold=None)


class TestHash:
    def test_the_known_answer(self):
        assert CLASSIC.hash == "b431515b113d4585"

    @pytest.mark.parametrize(
        "second",
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
    def test_every_key_off_its_default_changes_the_hash(self, second):
        assert Configuration(**{"top_k": 10, **second}).hash != CLASSIC.hash


class TestDict:
    def test_dict_has_classic_keys_and_non_default_others(self):
        classic = {"index": None, "search_mode": "dense", "use_reranker": False, "top_k": 10}
        assert CLASSIC.as_dict() == {**classic, "rrf_k": 60, "score_threshold": None}
        added = Configuration(candidates=500, reranker="x").as_dict().keys() - CLASSIC.as_dict().keys()
        assert added == {"candidates", "reranker"}

    @pytest.mark.parametrize(
        "configuration",
        [
            CLASSIC,
            Configuration(index="e5", search_mode="hybrid", weights=(0.7, 0.3), candidates=7, score_threshold=0.5),
        ],
    )
    def test_it_reads_back(self, configuration):
        assert Configuration.from_dict(configuration.as_dict()) == configuration

    def test_configuration_survives_a_json_round_trip(self):
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
def test_label_names_only_effective_settings(values, label):
    assert run_label(Configuration(**values)) == label


@pytest.mark.parametrize("field", AXES)
def test_runs_that_differ_in_one_axis_have_different_labels(field):
    values = {"use_reranker": (False, True), "ann": ("exact", "hnsw"), "weights": ((0.5, 0.5), (0.7, 0.3))}
    two = {"search_mode": ("dense", "sparse"), "lexical": ("bm25", "fts"), "fusion": ("rrf", "weighted")} | values
    texts = {"index": ("a", "b"), "reranker": ("a", "b"), "score_threshold": (None, 0.5), "llm": ("s:a", "s:b")}
    texts |= {"query": ("rewrite", "hyde"), "engine": ("shop", "shop(boost=2)")}
    searched = {
        "search_mode": "engine+dense" if field == "engine" else "hybrid",
        "use_reranker": field != "use_reranker",
        "query": "rewrite",
        "llm": "s:a",
    }
    fusion = {"fusion": "weighted"} if field == "weights" else {}
    first, second = (two | texts).get(field, (10, 20))
    assert len({run_label(Configuration(**{**searched, **fusion, field: value})) for value in (first, second)}) == 2


def test_depths_default_to_top_k_and_candidates_limit_reranking():
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
    def test_normal_form_drops_keys_without_effect(self, values, plainest):
        assert normalize(Configuration(**values)) == Configuration(**plainest)

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
    def test_normal_form_keeps_keys_with_effect(self, values):
        assert normalize(Configuration(**values)) == Configuration(**values)

    def test_a_whole_threshold_hashes_as_the_number_it_is(self):
        assert normalize(Configuration(score_threshold=1)).hash == Configuration(score_threshold=1.0).hash


LLM = {"llms": ["here:llama3"]}


@pytest.mark.parametrize(
    ("declared", "plain"),
    [("as_asked", "as_asked"), (" rewrite ", "rewrite"), ("multi", "multi(3)"), ("multi( 4 )", "multi(4)")],
)
def test_a_way_has_one_text(declared, plain):
    assert str(QueryText.parse(declared)) == plain


@pytest.mark.parametrize("declared", ["", "Rewrite", "rewrite(2)", "multi(1)", "multi(11)", "multi()", "steps"])
def test_invalid_query_texts_are_rejected(declared):
    with pytest.raises(QueryTextError):
        QueryText.parse(declared)


def test_an_answer_is_read_as_texts():
    read = QueryText.parse("multi(2)").parse_texts
    assert read('1. "apple  tree"\n\n2) pear\n3. plum') == ("apple tree", "pear")
    assert read("- apple\n* apple\n- 2 pears") == ("apple", "2 pears")
    answer = "Here are two queries:\n1. 1.5 million pears\n\n2. -5 degrees\nNote: both fit."
    assert read(answer) == ("1.5 million pears", "-5 degrees")
    assert read("Here they are:\n1.5 million pears\n1984 by Orwell") == ("1.5 million pears", "1984 by Orwell")
    assert QueryText.parse("rewrite").parse_texts("Here it is:\n1984: a novel\n\nI added a word.") == ("1984: a novel",)
    assert QueryText.parse("rewrite").parse_texts("<think>pears?\n</think>\n\npear trees") == ("pear trees",)
    assert QueryText.parse("hyde").parse_texts("1.5 million\npears") == ("1.5 million pears",)
    assert QueryText.parse("hyde").parse_texts("An apple\nis a fruit. ") == ("An apple is a fruit.",)
    with pytest.raises(QueryTextError, match=r"returned 1 of the 2 texts that multi\(2\) asks for"):
        read("apple\napple")
    for nothing in (" \n", "<think>cut short"):
        with pytest.raises(QueryTextError, match="returned 0 of the 1"):
            QueryText.parse("rewrite").parse_texts(nothing)


def test_a_prompt_holds_the_question_as_it_is():
    assert "Question: what is {x}?\n" in QueryText.parse("rewrite").build_prompt("what is {x}?")
    assert "Write 4 different queries" in QueryText.parse("multi(4)").build_prompt("?")


def test_a_way_without_a_model_is_refused():
    with pytest.raises(MatrixError, match="llms: rewrite needs a language model: name one"):
        Matrix.parse({"query": ["as_asked", "rewrite"]})
    with pytest.raises(MatrixError, match="query: 'anew' must be one of as_asked"):
        Matrix.parse({"query": ["anew"], **LLM})
    with pytest.raises(MatrixError, match='llms: "llama3" is not a language model with its server'):
        Matrix.parse({"query": ["rewrite"], "llms": ["llama3"]})
    with pytest.raises(MatrixError, match=r"multi\(3\) makes several"):
        Matrix.parse({"query": ["multi"], "ann": ["hnsw"], **LLM})


def test_values_without_effect_add_no_runs():
    matrix = Matrix.parse({"search_modes": ["sparse"], "query": ["as_asked", "hyde"], "llms": ["here:a", "here:b"]})
    assert [run_label(run) for run in matrix.list_configurations()] == ["lexical · top 100"]
    matrix = Matrix.parse({"query": ["as_asked", "rewrite"], "llms": ["here:a", "here:b"]})
    rewriting = "query rewrite by here:{} · dense · top 100"
    labels = ["dense · top 100", rewriting.format("a"), rewriting.format("b")]
    assert [run_label(run) for run in matrix.list_configurations()] == labels


def test_unchanged_query_text_keeps_the_configuration_hash():
    requested = Configuration()
    assert "query" not in requested.as_dict()
    assert normalize(Configuration(llm="here:llama3")).hash == requested.hash


def test_hyde_passage_is_encoded_but_not_searched_lexically():
    (run,) = plan([("1", Configuration(search_mode="hybrid", query="hyde", llm="here:llama3"))]).runs
    by_kind = {type(stage): stage for stage in run.stages}
    encode, lexical = by_kind[EncodeStage], by_kind[LexicalStage]
    assert isinstance(encode, EncodeStage)
    assert isinstance(lexical, LexicalStage)
    assert encode.wording.is_passage
    assert lexical.wording is None


def test_variants_are_searched_each_and_fused_by_engine():
    configuration = Configuration(search_mode="hybrid", query="multi(2)", llm="here:llama3")
    planned = plan([("1", configuration), ("2", Configuration(query="multi(2)", llm="here:llama3", top_k=50))])
    assert [type(stage).__name__ for stage in planned.stages] == [
        *("RewriteStage", "EncodeStage", "EncodeStage", "DenseStage", "DenseStage"),
        *("LexicalStage", "LexicalStage", "MergeStage", "MergeStage", "MergeStage", "FuseStage"),
    ]
    assert len({stage.key for stage in planned.stages}) == len(planned.stages)
    assert all(len(stage.lists) == 2 for stage in planned.stages if isinstance(stage, MergeStage))
    assert planned.count_work(10)["rewrite"] == 10
    assert planned.runs[1].unit_kind == "hybrid", "thresholds compare shares of reciprocal ranks"
    (stage,) = (stage for stage in planned.stages if isinstance(stage, RewriteStage))
    assert stage.key == "query(multi(2), prompt 1, here:llama3)"
