"""Our measures against ir_measures, which wraps trec_eval, on random searches."""

import ir_measures
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.ranking import collapse, top

CUTOFFS = (1, 3, 10)
AT_K = ("P", "R", "nDCG", "AP", "RR", "Success", "Judged")
OURS = [*(f"{name}@{k}" for name in AT_K for k in CUTOFFS), "nDCG", "AP", "RR", "Judged", "Hits"]
THEIRS = {"Hits": "NumRet(rel=1)"}
DOCUMENTS = [f"{letter}-文書 {number}".replace(" ", "\u00a0") for letter in "aéß" for number in range(5)]

# Chunks of few documents with few distinct scores: every search has ties, and documents that occur more than once.
SEARCHES = st.lists(st.tuples(st.integers(0, len(DOCUMENTS) - 1), st.integers(0, 4)), max_size=40)
TRUTHS = st.dictionaries(st.sampled_from([*DOCUMENTS, "not in the collection"]), st.integers(-2, 4), max_size=16)


def ranked(search: list[tuple[int, int]]) -> list[str]:
    """The documents of scored chunks: score down, then chunk up, each document where it occurs first."""
    chunks = top(np.array([score for _, score in search], np.float64), 1000).ids
    documents = np.array([document for document, _ in search], np.int64)[chunks]
    return [DOCUMENTS[document] for document in documents[collapse(documents)]]


@settings(max_examples=120, derandomize=True)
@given(st.lists(st.tuples(SEARCHES, TRUTHS), min_size=1, max_size=6))
def test_it_equals_ir_measures(cases: list[tuple[list[tuple[int, int]], dict[str, int]]]) -> None:
    rankings, truths = [ranked(search) for search, _ in cases], [truth for _, truth in cases]
    ours = evaluate([Measure.parse(name) for name in OURS], GradedRankings.of(rankings, truths))
    qrels = [
        ir_measures.Qrel(str(query), document.replace(" ", "_"), grade)
        for query, truth in enumerate(truths)
        if truth and max(truth.values()) >= 0  # it may never return from a query whose grades are all negative
        for document, grade in truth.items()
    ]
    run = [
        ir_measures.ScoredDoc(str(query), document, -float(rank))
        for query, ranking in enumerate(rankings)
        for rank, document in enumerate(ranking)
    ]
    measures = {ir_measures.parse_measure(THEIRS.get(name, name)): row for row, name in enumerate(OURS)}
    theirs = np.zeros_like(ours)
    for metric in ir_measures.iter_calc(list(measures), qrels, run) if qrels else ():
        theirs[measures[metric.measure], int(metric.query_id)] = metric.value
    all_negative = [query for query, truth in enumerate(truths) if truth and max(truth.values()) < 0]
    relevance = [row for row, name in enumerate(OURS) if not name.startswith("Judged")]
    assert (ours[np.ix_(relevance, all_negative)] == 0).all()
    compared = [query for query in range(len(cases)) if query not in all_negative]
    np.testing.assert_allclose(ours[:, compared], theirs[:, compared], atol=1e-9, rtol=0)
