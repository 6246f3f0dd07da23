"""Texts of queries: ways to make them, what an answer holds, and the stages that a plan has for them."""

import pytest

from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import run_label
from benchbench.ir.planning.matrix import Matrix, MatrixError
from benchbench.ir.planning.plan import plan
from benchbench.ir.planning.query_text import QueryText, QueryTextError
from benchbench.ir.planning.stages import EncodeStage, LexicalStage, MergeStage, RewriteStage

LLM = {"llms": ["here:llama3"]}


@pytest.mark.parametrize(
    ("stated", "plain"),
    [("as_asked", "as_asked"), (" rewrite ", "rewrite"), ("multi", "multi(3)"), ("multi( 4 )", "multi(4)")],
)
def test_a_way_has_one_text(stated: str, plain: str) -> None:
    assert str(QueryText.parse(stated)) == plain


@pytest.mark.parametrize("stated", ["", "Rewrite", "rewrite(2)", "multi(1)", "multi(11)", "multi()", "steps"])
def test_what_is_none_is_refused(stated: str) -> None:
    with pytest.raises(QueryTextError):
        QueryText.parse(stated)


def test_an_answer_is_read_as_texts() -> None:
    read = QueryText.parse("multi(2)").texts
    assert read('1. "apple  tree"\n\n2) pear\n3. plum') == ("apple tree", "pear")
    assert read("- apple\n* apple\n- 2 pears") == ("apple", "2 pears")
    assert read("Here are two queries:\n1. 1.5 million pears\n\n2. -5 degrees\nNote: both fit.") == (
        "1.5 million pears",
        "-5 degrees",
    )
    assert read("Here they are:\n1.5 million pears\n1984 by Orwell") == ("1.5 million pears", "1984 by Orwell")
    assert QueryText.parse("rewrite").texts("Here it is:\n1984: a novel\n\nI added a word.") == ("1984: a novel",)
    assert QueryText.parse("rewrite").texts("<think>pears?\n</think>\n\npear trees") == ("pear trees",)
    assert QueryText.parse("hyde").texts("1.5 million\npears") == ("1.5 million pears",)
    assert QueryText.parse("hyde").texts("An apple\nis a fruit. ") == ("An apple is a fruit.",)
    with pytest.raises(QueryTextError, match=r"gave 1 of the 2 texts that multi\(2\) asks for"):
        read("apple\napple")
    for nothing in (" \n", "<think>cut short"):
        with pytest.raises(QueryTextError, match="gave 0 of the 1"):
            QueryText.parse("rewrite").texts(nothing)


def test_a_prompt_holds_the_question_as_it_is() -> None:
    assert "Question: what is {x}?\n" in QueryText.parse("rewrite").prompt("what is {x}?")
    assert "Write 4 different queries" in QueryText.parse("multi(4)").prompt("?")


def test_a_way_without_a_model_is_refused() -> None:
    with pytest.raises(MatrixError, match="llms: rewrite asks a language model, and none is named"):
        Matrix.parse({"query": ["as_asked", "rewrite"]})
    with pytest.raises(MatrixError, match="query: 'anew' is none of as_asked"):
        Matrix.parse({"query": ["anew"], **LLM})
    with pytest.raises(MatrixError, match='llms: "llama3" is not a language model with its server'):
        Matrix.parse({"query": ["rewrite"], "llms": ["llama3"]})
    with pytest.raises(MatrixError, match=r"multi\(3\) makes several"):
        Matrix.parse({"query": ["multi"], "ann": ["hnsw"], **LLM})


def test_what_touches_no_search_makes_no_run() -> None:
    matrix = Matrix.parse({"search_modes": ["sparse"], "query": ["as_asked", "hyde"], "llms": ["here:a", "here:b"]})
    assert [run_label(run) for run in matrix.configurations()] == ["lexical · top 100"]
    matrix = Matrix.parse({"query": ["as_asked", "rewrite"], "llms": ["here:a", "here:b"]})
    rewriting = "query rewrite by here:{} · dense · top 100"
    assert [run_label(run) for run in matrix.configurations()] == [
        "dense · top 100",
        rewriting.format("a"),
        rewriting.format("b"),
    ]


def test_a_configuration_as_asked_is_the_one_that_it_was() -> None:
    asked = Configuration()
    assert "query" not in asked.as_dict()
    assert Configuration(llm="here:llama3").normal().hash == asked.hash


def test_a_passage_is_encoded_and_its_words_are_not_searched() -> None:
    (run,) = plan([("1", Configuration(search_mode="hybrid", query="hyde", llm="here:llama3"))]).runs
    by_kind = {type(stage): stage for stage in run.stages}
    encode, lexical = by_kind[EncodeStage], by_kind[LexicalStage]
    assert isinstance(encode, EncodeStage)
    assert isinstance(lexical, LexicalStage)
    assert encode.wording is not None
    assert encode.wording.is_passage
    assert lexical.wording is None


def test_variants_are_searched_each_and_fused_by_engine() -> None:
    configuration = Configuration(search_mode="hybrid", query="multi(2)", llm="here:llama3")
    planned = plan([("1", configuration), ("2", Configuration(query="multi(2)", llm="here:llama3", top_k=50))])
    kinds = [type(stage).__name__ for stage in planned.stages]
    assert kinds == [
        *("RewriteStage", "EncodeStage", "EncodeStage", "DenseStage", "DenseStage"),
        *("LexicalStage", "LexicalStage", "MergeStage", "MergeStage", "MergeStage", "FuseStage"),
    ]
    assert len({stage.key for stage in planned.stages}) == len(planned.stages)
    assert all(len(stage.lists) == 2 for stage in planned.stages if isinstance(stage, MergeStage))
    assert planned.distinct(10)["rewrite"] == 10
    assert planned.runs[1].unit_kind == "hybrid", "thresholds compare shares of reciprocal ranks"
    assert [stage.key for stage in planned.stages if isinstance(stage, RewriteStage)] == [
        "query(multi(2), prompt 1, here:llama3)"
    ]
