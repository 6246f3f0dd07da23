"""In every language lexical search finds what BM25 finds with proper tokens given by hand."""

import io
import math

import bm25s
import numpy as np
import pytest

from apps.retrieval.analysis.analyzers import build_analyzer
from apps.retrieval.search.lexical import Bm25
from apps.retrieval.search.term_counts import write_bm25
from tests.retrieval.analysis.small import COLLECTIONS

pytestmark = pytest.mark.thorough


def compute_ndcg(rankings):
    """Return nDCG@10 where document n alone is relevant to query n."""
    return sum(1 / math.log2(2 + ranking.index(n)) if n in ranking else 0 for n, ranking in enumerate(rankings)) / len(
        rankings
    )


def rank_by_hand(documents, queries):
    engine = bm25s.BM25(method="lucene")
    engine.index([tokens for _, tokens in documents], show_progress=False)
    for _, tokens in queries:
        scores = engine.get_scores([token for token in tokens if token in engine.vocab_dict])
        yield [number for number in np.argsort(-scores, kind="stable").tolist() if scores[number] > 0]


def rank(language, documents, queries):
    analyzer, out = build_analyzer(language), io.BytesIO()
    write_bm25((text for text, _ in documents), out, analyzer)
    index = Bm25.from_archive(np.frombuffer(out.getvalue(), np.uint8), analyzer)
    return [ranking.ids.tolist() for ranking in index.search([text for text, _ in queries], 10)]


@pytest.mark.parametrize("language", COLLECTIONS)
def test_it_finds_as_much_as_hand_tokens(language):
    documents, queries = COLLECTIONS[language].read("documents"), COLLECTIONS[language].read("queries")
    by_hand = compute_ndcg(list(rank_by_hand(documents, queries)))
    assert compute_ndcg(rank(language, documents, queries)) >= by_hand > 0.9
