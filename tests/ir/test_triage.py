import math

import numpy as np
import pytest

from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import plan
from benchbench.ir.records import ScoredList
from benchbench.ir.triage import (
    Loss,
    LostDocument,
    Relevant,
    Standing,
    Tally,
    by_difference,
    by_loss,
    find_standings,
    tally,
    triage,
)


def ranked(*chunks, scores=None):
    """Return the documents of chunks: 10, 11, … belong to document 1."""
    return ScoredList(np.array(chunks, np.int64) // 10, np.array(scores or [1 - 0.1 * i for i in range(len(chunks))]))


def lost(configuration, lists, *relevant, k=1):
    (run,) = plan([("run", configuration)]).runs
    keys = [stage.key for stage in run.stages if not stage.key.startswith("encode")]
    return triage(run, dict(zip(keys, lists.values(), strict=True)), relevant, k=k)


def losses(configuration, lists, document, k=1):
    return [one.loss for one in lost(configuration, lists, Relevant(document, 1), k=k)]


def test_documents_in_the_first_k_are_not_lost():
    assert losses(Configuration(top_k=5), {"dense": ranked(20, 21, 10)}, 1, k=2) == []


@pytest.mark.parametrize(
    "reason", [Loss.NOT_IN_COLLECTION, Loss.UNRESOLVED, Loss.NOT_INDEXED, Loss.FILTERED, Loss.EXCLUDED_SELF]
)
def test_unreachable_documents_are_reported_as_such_first(reason):
    (one,) = lost(Configuration(top_k=5), {"dense": ranked(20)}, Relevant(-3, 2, unreachable=reason))
    assert one.loss == reason
    assert [(standing.rank, standing.score) for standing in one.standings] == [(None, None), (None, None)]


def test_below_k_loss_has_rank_and_score_per_stage():
    (one,) = lost(Configuration(top_k=5), {"dense": ranked(20, 21, 30, 11)}, Relevant(1, 2))
    assert one.loss == Loss.BELOW_K
    (dense, final) = one.standings
    assert (dense.rank, dense.is_read, final.stage, final.rank) == (3, True, "final", 3)
    assert dense.score == final.score == pytest.approx(0.7)


def test_deeper_stored_lists_show_the_rank_below_first_stage():
    (one,) = lost(Configuration(top_k=2), {"dense": ranked(20, 30, 40, 10)}, Relevant(1, 1))
    assert one.loss == Loss.BELOW_FIRST_STAGE
    assert (one.standings[0].rank, one.standings[0].is_read) == (4, False)
    assert one.standings[-1] == Standing("final")


def test_exhausted_lexical_search_reports_no_shared_word():
    lexical = Configuration(search_mode="sparse", top_k=2)
    assert losses(lexical, {"lexical": ranked(20)}, 1) == [Loss.NO_SHARED_WORD]
    assert losses(lexical, {"lexical": ranked(20, 30)}, 1) == [Loss.BELOW_FIRST_STAGE]
    hybrid = Configuration(search_mode="hybrid", top_k=2)
    lists = {"dense": ranked(20, 30), "lexical": ranked(20), "fused": ranked(20, 30)}
    assert losses(hybrid, lists, 1) == [Loss.BELOW_FIRST_STAGE], "deeper dense search may find it"


def test_short_dense_list_reports_missing_documents_as_not_reached():
    dense = Configuration(top_k=3)
    assert losses(dense, {"dense": ranked(20, 21)}, 1) == [Loss.NOT_REACHED]
    assert losses(dense, {"dense": ranked(20, 21, 30)}, 1) == [Loss.BELOW_FIRST_STAGE]
    assert losses(Configuration(top_k=3, ann="hnsw"), {"dense": ranked(20, 21)}, 1) == [Loss.BELOW_FIRST_STAGE]


def test_approximate_search_misses_what_exact_search_has():
    approximate = Configuration(top_k=2, ann="hnsw")
    (run,) = plan([("run", approximate)]).runs
    hits = {run.final: ranked(20, 30)}

    def find_loss(exact):
        return triage(run, hits | dict(zip(run.exact_keys, exact, strict=False)), [Relevant(1, 1)], k=1)[0].loss

    assert find_loss([ranked(20, 10)]) == Loss.MISSED
    assert find_loss([ranked(20, 30, 10)]) == Loss.BELOW_FIRST_STAGE, "exact search has it below the depth too"
    assert find_loss([]) == Loss.BELOW_FIRST_STAGE, "the exact list is not stored"
    assert plan([("run", Configuration(top_k=2))]).runs[0].exact_keys == []


def test_documents_that_were_found_have_standings_too():
    (run,) = plan([("run", Configuration(top_k=2))]).runs
    standings = find_standings(run, {run.final: ranked(20, 10, 11)}, [1, 2, 3])
    assert {number: [one.rank for one in path] for number, path in standings.items()} == {
        1: [2, 2],
        2: [1, 1],
        3: [None] * 2,
    }


def test_threshold_and_top_k_cut_chunks():
    dense = {"dense": ranked(20, 30, 10, scores=[0.9, 0.6, 0.4])}
    assert losses(Configuration(top_k=5, score_threshold=0.5), dense, 1, k=3) == [Loss.CUT_BY_THRESHOLD]
    assert losses(Configuration(top_k=2, candidates=5), dense, 1, k=3) == [Loss.BELOW_FIRST_STAGE]
    hybrid = Configuration(search_mode="hybrid", top_k=2, candidates=5)
    lists = dense | {"lexical": ranked(20, 30, 10), "fused": ranked(20, 30, 10)}
    assert losses(hybrid, lists, 1, k=3) == [Loss.CUT_BY_TOP_K]


def test_fusion_keeps_no_more_than_its_candidates():
    hybrid = Configuration(search_mode="hybrid", top_k=2)
    lists = {"dense": ranked(20, 10), "lexical": ranked(30, 20), "fused": ranked(20, 30)}
    assert losses(hybrid, lists, 1, k=2) == [Loss.BELOW_FUSED]
    assert losses(hybrid, lists, 4, k=2) == [Loss.BELOW_FIRST_STAGE]


class TestReranking:
    RERANKED = Configuration(use_reranker=True, reranker="cross", top_k=4, rerank_depth=3)

    def test_reranker_loss_is_demotion_from_the_first_k(self):
        lists = {"dense": ranked(10, 20, 30, 40), "reranked": ranked(30, 20, 10, scores=[2.0, 1.0, -4.0])}
        assert losses(self.RERANKED, lists, 1, k=2) == [Loss.DEMOTED_BY_RERANKER]
        assert losses(self.RERANKED, lists, 1, k=3) == []
        assert losses(self.RERANKED, lists, 4, k=2) == [Loss.BELOW_RERANK_DEPTH]

    def test_documents_already_below_k_are_not_demoted(self):
        lists = {"dense": ranked(20, 30, 10), "reranked": ranked(20, 30, 10)}
        assert losses(self.RERANKED, lists, 1, k=2) == [Loss.BELOW_K]

    def test_thresholds_use_the_reranker_threshold_scores(self):
        strict = Configuration(use_reranker=True, top_k=3, score_threshold=0.5)
        reranked = ScoredList(np.array([2, 1]), np.array([3.0, 2.0]), threshold_scores=np.array([0.9, 0.2]))
        assert losses(strict, {"dense": ranked(10, 20), "reranked": reranked}, 1, k=2) == [Loss.CUT_BY_THRESHOLD]


def test_lost_share_is_the_document_share_of_ideal_gain():
    one, two, three = lost(Configuration(top_k=5), {"dense": ranked(90)}, *(Relevant(d, 4 - d) for d in (1, 2, 3)), k=2)
    ideal = 3 + 2 / math.log2(3)
    assert [one.share, two.share, three.share] == pytest.approx([3 / ideal, 2 / math.log2(3) / ideal, 0])
    assert [one.grade, two.grade, three.grade] == [3, 2, 1]


def test_a_passage_beyond_the_window_explains_low_ranks_alone():
    hidden = Relevant(1, 1, unreachable=Loss.BEYOND_WINDOW)
    below = [one.loss for one in lost(Configuration(top_k=5), {"dense": ranked(20, 10)}, hidden, k=1)]
    assert below == [Loss.BEYOND_WINDOW]
    cut = lost(Configuration(top_k=5, score_threshold=0.99), {"dense": ranked(20, 10)}, hidden, k=1)
    assert [one.loss for one in cut] == [Loss.CUT_BY_THRESHOLD]
    assert lost(Configuration(top_k=5), {"dense": ranked(10)}, hidden) == []


def test_losses_are_counted_by_document_and_by_query():
    def owner(*reasons):
        return [LostDocument(1, 1, reason, (), 0) for reason in reasons]

    counted = tally([owner(Loss.BELOW_K, Loss.BELOW_K), owner(Loss.BELOW_K, Loss.UNRESOLVED), []])
    assert counted == {Loss.UNRESOLVED: Tally(1, 1), Loss.BELOW_K: Tally(3, 2)}


def test_queries_are_ordered_by_loss_or_run_difference():
    values, relevant = np.array([0.2, 1.0, 0.0, math.nan, 0.2, 0.0]), np.array([True, True, True, True, True, False])
    assert by_loss(values, relevant).tolist() == [2, 0, 4]
    assert by_difference(values, np.array([0.3, 0.0, 0.0, 0.5, 0.1, 0.0])).tolist()[:1] == [1]
    assert by_difference(values, values).tolist() == [0, 1, 2, 4, 5]
