"""Measures that the library ir_measures computes, and ours against its, which wrap trec_eval."""

import shutil
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbench.ir.measures import DEFINITIONS, GradedRankings, Measure, MeasureError, evaluate
from benchbench.ir.measures.definitions import Definition
from benchbench.ir.ranking import collapse, top
from tests.ir.simulated import random_case

THEIRS = ["RBP(p=0.5,rel=1)", "infAP", "Bpref", "Rprec", "Compat(p=0.95)", "SetF(beta=1.0)"]
THEIRS += [
    "IPrec@0.1",
    "SDCG(max_rel=4)@10",
    "P(rel=2)@5",
    "Bpref(rel=2)",
    "infAP(rel=2)",
    "RBP(p=0.8,rel=3)",
    "RR(rel=2)",
]
THEIRS += ["NumRet(rel=2)", "nDCG(gains={0:1,2:7})@10", "nDCG(judged_only=True)@5", "Rprec(judged_only=True)"]
needs_perl = pytest.mark.skipif(not shutil.which("perl"), reason="the library computes ERR by a Perl script")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        *((name, name) for name in [*THEIRS, "RR(rel=2)", "nDCG(gains={0:1,3:7})@10"]),
        ("RBP(p=.8)", "RBP(p=0.8,rel=1)"),
        ("RBP", "RBP(p=0.8,rel=1)"),
        ("BPM(max_rel=4,T=2)@5", "BPM(T=2.0,max_rel=4)@5"),
        ("nDCG(gains={1:1,3:7})@10", "nDCG(gains={3:7})@10"),
        ("nDCG(gains={1:1})@10", "nDCG@10"),
        ("P(judged_only=True)@5", "P(judged_only=True)@5"),
        ("P(rel=1)@5", "P@5"),
        ("MAP", "AP"),
        ("MRR@10", "RR@10"),
        ("NDCG@10", "nDCG@10"),
        pytest.param("ERR@20", "ERR@20", marks=needs_perl),
        pytest.param('nDCG(dcg="exp-log2")@10', "nDCG(dcg='exp-log2')@10", marks=needs_perl),
    ],
)
def test_its_name_parses_back(text, canonical):
    measure = Measure.read(text)
    assert str(measure) == canonical
    assert Measure.parse(canonical) == Measure.read(canonical) == measure
    assert measure.is_ours == (canonical.partition("@")[0] in ("P", "AP", "RR", "nDCG"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("alpha_nDCG@10", "cannot compute alpha_nDCG@10 as it is written"),
        ("ERR", "such as a cutoff"),
        ("SDCG@10", "invalid param max_rel"),
        ("infAP(p=1)", "infAP has no parameter 'p'; it has: rel"),
        ("RBP(.8)", "write parameters by name"),
        ("RBP(p=__import__('os'))", ""),
        ("infAP; 1", ""),
    ],
)
def test_unsupported_measures_are_rejected_with_a_message(text, sentence):
    with pytest.raises(MeasureError, match=f"is not a measure: .*{sentence}"):
        Measure.read(text)


def test_a_measure_has_one_name():
    with pytest.raises(MeasureError, match="The measure MAP must be written as AP"):
        Measure("MAP")


def by_the_library(names, rankings, truths):
    qrels = [
        ir_measures.Qrel(str(query), document.replace(" ", "_"), grade)
        for query, truth in enumerate(truths)
        if truth and max(truth.values()) >= 0  # it may never return from a query whose grades are all negative
        for document, grade in truth.items()
    ]
    run = [
        ir_measures.ScoredDoc(str(q), d, 1000.0 - rank) for q, ids in enumerate(rankings) for rank, d in enumerate(ids)
    ]
    rows = {ir_measures.parse_measure(name): row for row, name in enumerate(names)}
    values = np.zeros((len(names), len(rankings)))
    for metric in ir_measures.iter_calc(list(rows), qrels, run) if qrels else ():
        values[rows[metric.measure], int(metric.query_id)] = metric.value
    return values


@pytest.mark.parametrize("seed", range(6))
def test_it_equals_the_library_fed_with_the_real_documents(seed):
    """The library computes each measure alone: together, some get the judged documents or the gains of others."""
    rankings, truths = random_case(seed)
    names = THEIRS + (["ERR@10"] if shutil.which("perl") else [])
    ours = evaluate([Measure.parse(name) for name in ["RR", *names]], GradedRankings.from_rankings(rankings, truths))[
        1:
    ]
    expected = [by_the_library([name], rankings, truths)[0] for name in names]
    np.testing.assert_allclose(ours, expected, atol=1e-9, rtol=0)


def test_a_value_does_not_depend_on_the_other_measures():
    graded = GradedRankings.from_rankings(*random_case(0))
    names = [*THEIRS, "NumRet", "NumQ", "SetF(beta=0.5)", "IPrec@0.11", "P(judged_only=True)@5", "nDCG(gains={1:3})"]
    measures = [Measure.parse(name) for name in names]
    alone = [evaluate([measure], graded)[0] for measure in measures]
    for order in (1, -1):
        np.testing.assert_array_equal(evaluate(measures[::order], graded)[::order], alone)


@pytest.mark.parametrize("name", ["Bpref(rel=1000)", "infAP(rel=1000)", "P(rel=1000)@1000000", "nDCG(gains={0:1000})"])
def test_thresholds_and_gains_above_all_grades_are_computed(name):
    graded = GradedRankings.from_rankings([["a", "b"], ["a"]], [{"a": 1, "b": 0}, {"a": 0}])
    assert np.isfinite(evaluate([Measure.read(name)], graded)).all()


@pytest.mark.timeout(60, method="thread")
@pytest.mark.parametrize(
    "name", ["Bpref", "infAP(rel=5)", "RBP", "SetF", "SDCG(max_rel=4)@5", "nDCG(judged_only=True)@5"]
)
def test_great_grades_take_neither_memory_nor_time(name):
    graded = GradedRankings.from_rankings([["a", "b"]], [{"a": 2_000_000_000, "c": 1}])
    if name.startswith("nDCG"):
        with pytest.raises(MeasureError, match="needs grades of at most 1,000"):
            evaluate([Measure.read(name)], graded)
    else:
        assert np.isfinite(evaluate([Measure.read(name)], graded)).all()


@pytest.mark.timeout(180, method="thread")
def test_queries_with_only_negative_grades_score_zero():
    graded = GradedRankings.from_rankings([["a", "b"], ["a"], []], [{"a": -1, "c": -2}, {"a": 1, "b": -1}, {"a": -1}])
    values = evaluate([Measure.parse(name) for name in ("infAP", "Bpref", "Rprec", "NumRet")], graded)
    np.testing.assert_allclose(values, [[0, 1, 0], [0, 1, 0], [0, 1, 0], [2, 1, 0]])


@needs_perl
def test_grade_above_the_script_limit_raises_an_error():
    with pytest.raises(MeasureError, match="grades of at most 4"):
        evaluate([Measure.parse("ERR@10")], GradedRankings.from_rankings([["a"]], [{"a": 5}]))


def test_a_broken_grade_is_refused():
    with pytest.raises(MeasureError, match=r"need whole-number grades, not 0\.5"):
        evaluate([Measure("infAP")], GradedRankings.from_rankings([["a"]], [{"a": 0.5}]))


def test_it_is_described_in_the_words_of_the_library():
    definition = Measure.parse("RBP(p=.5)").definition
    assert (definition.written, definition.title) == ("RBP(p=0.5,rel=1)", "Rank-Biased Precision")
    assert definition.meaning.startswith("A measure of the rate")


DOCS = Path(__file__).resolve().parents[2] / "docs" / "measures.md"


def test_docs_match_the_measure_pages():
    docs = " ".join(DOCS.read_text().split())
    usual = lines_of(Definition("", "", "", "its source"))[:-1]
    assert docs.count(f"Unless a measure says otherwise: {' '.join(usual)} ###") == 1
    for one in DEFINITIONS.values():
        unusual = [line for line in lines_of(one) if line not in usual]
        assert docs.count(f"### {one.written}: {one.title} {one.meaning} {' '.join(unusual)} #") == 1


def lines_of(one):
    return [
        f"- Gain: {one.gain}",
        f"- Ties: {one.ties}",
        f"- Empty cases: {one.empty}",
        f"- Range: {one.range}; {one.better} is better.",
        f"- Source: {one.source}.",
    ]


@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_definition_states_everything_that_determines_the_value(name):
    definition = Measure(name, 7).definition
    assert definition.written == f"{name}@7"
    assert all((definition.gain, definition.ties, definition.empty, definition.range, definition.source))


def test_only_of_the_first_rank_less_is_better():
    assert [name for name in DEFINITIONS if Measure(name, 7).definition.better == "lower"] == ["FirstRelevant"]


CUTOFFS = (1, 3, 10)
AT_K = ("P", "R", "nDCG", "AP", "RR", "Success", "Judged")
OURS = [*(f"{name}@{k}" for name in AT_K for k in CUTOFFS), "nDCG", "AP", "RR", "Judged", "Hits"]
DOCUMENTS = [f"{letter}-文書 {number}".replace(" ", "\u00a0") for letter in "aéß" for number in range(5)]

# Chunks of few documents with few distinct scores: every search has ties, and documents that occur more than once.
SEARCHES = st.lists(st.tuples(st.integers(0, len(DOCUMENTS) - 1), st.integers(0, 4)), max_size=40)
TRUTHS = st.dictionaries(st.sampled_from([*DOCUMENTS, "not in the collection"]), st.integers(-2, 4), max_size=16)


def ranked(search):
    """The documents of scored chunks: score down, then chunk up, each document where it occurs first."""
    chunks = top(np.array([score for _, score in search], np.float64), 1000).ids
    documents = np.array([document for document, _ in search], np.int64)[chunks]
    return [DOCUMENTS[document] for document in documents[collapse(documents)]]


@settings(max_examples=120, derandomize=True)
@given(st.lists(st.tuples(SEARCHES, TRUTHS), min_size=1, max_size=6))
def test_it_equals_ir_measures(cases):
    rankings, truths = [ranked(search) for search, _ in cases], [truth for _, truth in cases]
    ours = evaluate([Measure.parse(name) for name in OURS], GradedRankings.from_rankings(rankings, truths))
    theirs = by_the_library(["NumRet(rel=1)" if name == "Hits" else name for name in OURS], rankings, truths)
    all_negative = [query for query, truth in enumerate(truths) if truth and max(truth.values()) < 0]
    relevance = [row for row, name in enumerate(OURS) if not name.startswith("Judged")]
    assert (ours[np.ix_(relevance, all_negative)] == 0).all()
    compared = [query for query in range(len(cases)) if query not in all_negative]
    np.testing.assert_allclose(ours[:, compared], theirs[:, compared], atol=1e-9, rtol=0)
