"""Scores of TREC files against trec_eval itself, by pytrec_eval, which has its code."""

import numpy as np
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchbench.ir.measures import Measure
from benchbench.ir.profiles import FLOWBABY_1_1
from benchbench.scoring import measuring
from benchbench.scoring.measuring import read_results, read_truth, score

TREC = {
    "nDCG@3": "ndcg_cut_3",
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "P@3": "P_3",
    "R@3": "recall_3",
    "AP": "map",
    "AP@3": "map_cut_3",
    "RR": "recip_rank",
    "Success@1": "success_1",
}
MEASURES_REQUESTED = {"ndcg_cut.3,10", "ndcg", "P.3", "recall.3", "map", "map_cut.3", "recip_rank", "success.1"}

# Ids that sort differently as text, as bytes of UTF-8 and as UTF-16, and of which one begins another.
DOCUMENTS = ["d1", "d10", "d2", "D1", "é", "文書\u00a0x", "～", "😀", "-", "MED-1"]
# Scores that are equal, equal as float32 alone, beyond float32, below its least, and written in other ways.
SCORES = ["1", "1.0", "1.00000001", "0.99999999", "1.0000001", "16777216", "16777217"]
SCORES += ["1e39", "2e39", "-1e300", "1e-46", "0", "-0", "+.5", "5e-1", "inf", "-inf"]
QUERIES = ["q1", "q10", "q2", "é", "unjudged"]
RUNS = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from(SCORES), min_size=1),
    min_size=1,
)
# trec_eval may never return from a query whose grades are all negative, so one grade of each is not.
GRADES = st.dictionaries(st.sampled_from([*DOCUMENTS, "never-found"]), st.integers(-2, 4), max_size=8)
TRUTHS = st.dictionaries(
    st.sampled_from(QUERIES[:-1]),
    st.builds(lambda grades, top: grades | {"d2": top}, GRADES, st.integers(0, 3)),
    min_size=1,
)


def write_qrels(path, truth):
    path.write_text(
        "".join(
            f"{query} 0 {document} {grade}\n" for query, owner in truth.items() for document, grade in owner.items()
        )
    )
    return path


def write_run(path, run, shuffle):
    """The lines of all queries, mixed, with ranks that say nothing."""
    lines = [
        f"{query}\tQ0  {document} 1 {scored} tag\n"
        for query, owner in run.items()
        for document, scored in owner.items()
    ]
    np.random.default_rng(shuffle).shuffle(lines)
    path.write_text("".join(lines))
    return path


def by_trec_eval(truth, run):
    """(measures, queries): queries that are not in the run are 0, as with -c."""
    evaluator = pytrec_eval.RelevanceEvaluator(truth, MEASURES_REQUESTED)
    values = evaluator.evaluate(
        {query: {name: float(scored) for name, scored in owner.items()} for query, owner in run.items()}
    )
    return np.array([[values.get(query, {}).get(name, 0.0) for query in truth] for name in TREC.values()])


@settings(max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(truth=TRUTHS, run=RUNS, shuffle=st.integers(0, 99))
def test_the_figures_of_a_trec_run_are_trec_evals(truth, run, shuffle, tmp_path):
    truth_read = read_truth(write_qrels(tmp_path / "qrels", truth))
    results = read_results(write_run(tmp_path / "run", run, shuffle), truth_read)
    scores = score(truth_read, results.rankings, [Measure.parse(name) for name in TREC])
    theirs = by_trec_eval(truth, run)
    assert list(scores.queries) == list(truth)
    np.testing.assert_allclose(scores.values, theirs, atol=1e-12, rtol=0)
    np.testing.assert_allclose(scores.means, theirs.mean(axis=1), atol=1e-12, rtol=0)


def test_a_query_without_any_grade_from_0_scores_0():
    scores = score({"q1": {"a": -1, "b": -2}}, {"q1": ["a", "b"]}, [Measure.parse(name) for name in TREC])
    assert not scores.values.any()


def test_duplicate_documents_fail_only_measured_queries(tmp_path):
    run = tmp_path / "run"
    run.write_text("q1 Q0 a 1 2 t\nq9 Q0 a 1 2 t\nq9 Q0 a 2 1 t\n")
    assert read_results(run, {"q1"}).rankings == {"q1": [b"a"]}
    with pytest.raises(Exception, match=r"run, query 'q9', ranks the document 'a' more than once"):
        read_results(run, {"q9"})


def test_the_size_of_a_block_changes_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    truth = {f"q{n}": {str(document): int(rng.integers(-1, 4)) for document in range(n)} for n in range(1, 30)}
    rankings = {f"q{n}": [str(document) for document in rng.permutation(40)[: n % 7]] for n in range(0, 30, 2)}
    measures = [Measure.parse(name) for name in (*TREC, "Judged@3")]
    complete = score(truth, rankings, measures, profile=FLOWBABY_1_1)
    monkeypatch.setattr(measuring, "BLOCK_CELLS", 50)
    pieces = score(truth, rankings, measures, profile=FLOWBABY_1_1)
    assert np.array_equal(complete.values, pieces.values)
    assert np.array_equal(complete.means, pieces.means)


def test_nothing_judged_has_no_mean():
    scores = score({}, {"q1": ["a"]}, [Measure.parse("RR")])
    assert scores.values.shape == (1, 0)
    assert np.isnan(scores.means).all()


def test_judgment_format_is_detected_by_name_or_first_line(tmp_path):
    truth = {"q1": {b"a": 1}}
    (tmp_path / "trec").write_text("q1 0 a 1\n")
    (tmp_path / "beir.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "qrels.json").write_text('[{"query_id": "q1", "canonical_item_id": "a"}]')
    assert [read_truth(tmp_path / name) for name in ("trec", "beir.tsv", "qrels.json")] == [truth] * 3
