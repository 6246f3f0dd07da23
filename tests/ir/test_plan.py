import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.ir.planning.matrix import Configuration, Matrix
from benchbench.ir.planning.plan import Plan, plan
from benchbench.ir.planning.stages import (
    AskStage,
    DenseStage,
    EncodeStage,
    FuseStage,
    LexicalStage,
    RerankStage,
    name_stage,
)


def plan_of(*configurations):
    return plan([(str(number), configuration) for number, configuration in enumerate(configurations)])


def plan_of_matrix(**data):
    return plan_of(*Matrix.parse(data).list_configurations())


def keys(planned):
    return [stage.key for stage in planned.stages]


SIXTEEN = {
    "search_modes": ["dense", "hybrid"],
    "use_reranker": [False, True],
    "rerankers": ["tiny"],
    "top_k_values": [50, 100],
    "score_thresholds": [None, 0.5],
}


class TestStages:
    def test_sixteen_runs_share_encoding_and_searches(self):
        assert keys(plan_of_matrix(**SIXTEEN)) == [
            "encode()",
            "dense(exact)",
            "lexical(bm25)",
            "fuse(dense(exact), lexical(bm25), rrf 60, 50)",
            "fuse(dense(exact), lexical(bm25), rrf 60, 100)",
            "rerank(dense(exact), tiny, 50)",
            "rerank(dense(exact), tiny, 100)",
            "rerank(fuse(dense(exact), lexical(bm25), rrf 60, 50), tiny, 50)",
            "rerank(fuse(dense(exact), lexical(bm25), rrf 60, 100), tiny, 100)",
        ]

    def test_exact_lists_are_deep_enough_for_every_run(self):
        hybrid = Configuration(search_mode="hybrid", top_k=20, candidates=300)
        planned = plan_of(Configuration(top_k=20), hybrid, Configuration(search_mode="sparse", top_k=500))
        searches = [stage for stage in planned.stages if isinstance(stage, DenseStage | LexicalStage)]
        assert searches == [DenseStage(None, "exact", 300), LexicalStage(None, "bm25", 500)]

    def test_approximate_lists_are_made_per_depth(self):
        planned = plan_of(Configuration(ann="hnsw", top_k=20), Configuration(ann="hnsw", top_k=50))
        assert keys(planned) == ["encode()", "dense(hnsw, 20)", "dense(hnsw, 50)", "dense(exact)"]

    def test_indexes_share_nothing(self):
        stages = [
            key.format(index) for key in ("encode({})", "dense({}, exact)", "lexical({}, bm25)") for index in "ab"
        ]
        assert keys(plan_of_matrix(indexes=["a", "b"], search_modes=["dense", "sparse"])) == stages

    def test_a_lexical_run_needs_no_encoder(self):
        assert keys(plan_of(Configuration(search_mode="sparse"))) == ["lexical(bm25)"]

    def test_weighted_fusion_is_keyed_by_its_weights(self):
        planned = plan_of(Configuration(search_mode="hybrid", fusion="weighted", weights=(0.7, 0.3)))
        assert keys(planned)[-1] == "fuse(dense(exact), lexical(bm25), weighted (0.7, 0.3), 100)"

    def test_a_reranker_reads_no_more_than_the_candidates(self):
        planned = plan_of(Configuration(use_reranker=True, reranker="tiny", top_k=100, candidates=30))
        assert planned.stages[-1] == RerankStage(None, "dense(exact)", "tiny", 30)

    def test_no_runs_need_nothing(self):
        assert plan([]) == Plan((), ())


class TestRuns:
    def test_run_plan_states_its_list_and_cut(self):
        (run,) = plan_of(
            Configuration(index="a", search_mode="hybrid", top_k=20, candidates=70, score_threshold=0.3, rrf_k=40)
        ).runs
        assert run.final == "fuse(dense(a, exact), lexical(a, bm25), rrf 40, 70)"
        assert (run.run_key, run.index, run.candidates, run.top_k, run.threshold) == ("0", "a", 70, 20, 0.3)
        assert [type(stage) for stage in run.stages] == [EncodeStage, DenseStage, LexicalStage, FuseStage]

    @pytest.mark.parametrize(
        ("configuration", "kind"),
        [
            (Configuration(), "dense"),
            (Configuration(search_mode="sparse"), "sparse"),
            (Configuration(search_mode="hybrid"), "hybrid"),
            (Configuration(search_mode="sparse", use_reranker=True, reranker="tiny"), "cross_encoder"),
        ],
    )
    def test_its_threshold_compares_with_the_last_stages_scores(self, configuration, kind):
        assert plan_of(configuration).runs[0].unit_kind == kind

    def test_runs_differing_only_in_cut_share_a_list(self):
        planned = plan_of_matrix(score_thresholds=[None, 0.2, 0.4])
        assert [run.final for run in planned.runs] == ["dense(exact)"] * 3


class TestTruth:
    """Approximate runs have an exact counterpart, that no run pays for."""

    APPROXIMATE = Configuration(
        search_mode="hybrid", ann="hnsw", top_k=20, candidates=70, use_reranker=True, reranker="tiny"
    )

    def test_its_stages_are_done_too(self):
        planned = plan_of(self.APPROXIMATE)
        (run,), (truth,) = planned.runs, planned.truths
        assert (truth.run_key, truth.candidates, truth.top_k) == (run.run_key, run.candidates, run.top_k)
        assert run.dense == DenseStage(None, "hnsw", 70)
        assert truth.dense == DenseStage(None, "exact", 70)
        assert truth.final == "rerank(fuse(dense(exact), lexical(bm25), rrf 60, 70), tiny, 20)"
        assert truth.dense not in run.stages
        assert {stage.key for stage in planned.stages} == {stage.key for stage in (*run.stages, *truth.stages)}

    def test_truth_list_is_shared_with_exact_runs_and_counterparts(self):
        planned = plan_of(
            Configuration(ann="hnsw", top_k=20),
            Configuration(ann="ivfflat", top_k=30, candidates=90),
            Configuration(top_k=50),
        )
        assert keys(planned) == ["encode()", "dense(hnsw, 20)", "dense(ivfflat, 90)", "dense(exact)"]
        assert planned.stages[-1] == DenseStage(None, "exact", 90)
        assert [run.run_key for run in planned.truths] == ["0", "1"]
        assert planned.count_work(10)["dense"] == 30
        assert "to check 2 approximate runs" in planned.explain(10)

    def test_exact_runs_need_none(self):
        assert plan_of(Configuration(), Configuration(search_mode="sparse", ann="hnsw")).truths == ()

    def test_it_may_be_left_out(self):
        assert keys(plan_of(Configuration(ann="hnsw")).select(["0"], truth=False)) == ["encode()", "dense(hnsw, 100)"]


WIDE = [
    Configuration(
        **dict(zip(("search_mode", "use_reranker", "reranker", "top_k", "candidates", "rrf_k"), values, strict=True))
    )
    for values in product(
        ["dense", "sparse", "hybrid"], [False, True], ["tiny", "large"], [20, 50], [None, 30, 200], [40, 60]
    )
]


class TestAnyRuns:
    @given(st.lists(st.sampled_from(WIDE), max_size=12))
    def test_stages_are_distinct_and_follow_their_dependencies(self, configurations):
        planned = plan_of(*configurations)
        recognised = set()
        for stage in planned.stages:
            assert stage.key not in recognised
            assert recognised.issuperset(stage.needs)
            recognised.add(stage.key)
        assert recognised == {stage.key for run in planned.runs for stage in run.stages}

    @given(st.lists(st.sampled_from(WIDE), min_size=1, max_size=12))
    def test_other_runs_change_only_the_depth_of_exact_lists(self, configurations):
        for run, configuration in zip(plan_of(*configurations).runs, configurations, strict=True):
            (alone,) = plan_of(configuration).runs
            assert [stage.key for stage in run.stages] == [stage.key for stage in alone.stages]
            for stage, same in zip(run.stages, alone.stages, strict=True):
                if isinstance(stage, DenseStage | LexicalStage):
                    assert stage.depth >= same.depth
                else:
                    assert stage == same
            assert (run.candidates, run.top_k) == (alone.candidates, alone.top_k)

    @given(st.lists(st.sampled_from(WIDE), max_size=12), st.integers(0, 1000))
    def test_the_pairs_never_pass_their_bound(self, configurations, seed):
        pick = random.Random(seed)
        planned = plan_of(*configurations)
        orders = {stage.key: pick.sample(range(400), 400) for stage in planned.stages}  # of the first stages
        seen = set()
        for stage in planned.stages:
            if isinstance(stage, FuseStage):
                union = {chunk for key in stage.needs for chunk in orders[key][: stage.candidates]}
                orders[stage.key] = pick.sample(sorted(union), len(union))[: stage.candidates]
            if isinstance(stage, RerankStage):
                seen.update((stage.reranker, chunk) for chunk in orders[stage.source][: stage.depth])
        assert len(seen) <= planned.count_work(1)["rerank_pairs_at_most"]


class TestCounts:
    def test_distinct_work_over_all_queries(self):
        distinct = {"encode": 1000, "dense": 1000, "lexical": 1000, "fuse": 2000, "rerank_pairs_at_most": 200_000}
        assert plan_of_matrix(**SIXTEEN).count_work(1000) == distinct

    def test_rerank_pairs_are_bounded_by_their_source_lists(self):
        reranked = {"use_reranker": True, "reranker": "tiny", "top_k": 50}
        hybrids = [Configuration(search_mode="hybrid", rrf_k=k, **reranked) for k in (40, 60, 80)]
        assert plan_of(hybrids[0]).count_work(1)["rerank_pairs_at_most"] == 50
        assert plan_of(*hybrids).count_work(1)["rerank_pairs_at_most"] == 100
        assert plan_of(*hybrids, Configuration(**reranked)).count_work(1)["rerank_pairs_at_most"] == 100

    def test_rerankers_and_indexes_share_no_pairs(self):
        runs = [
            Configuration(index=index, use_reranker=True, reranker=reranker, top_k=50)
            for index in ("a", "b")
            for reranker in ("tiny", "large")
        ]
        assert plan_of(*runs).count_work(1)["rerank_pairs_at_most"] == 200

    def test_it_explains_itself(self):
        assert plan_of_matrix(**SIXTEEN).explain(1000).splitlines() == [
            "16 runs over 1,000 queries, equal work done once:",
            "       1,000  query encodings instead of 16,000",
            "       1,000  dense searches instead of 16,000",
            "       1,000  lexical searches instead of 8,000",
            "       2,000  fusions instead of 8,000",
            "     200,000  reranked pairs at most, instead of 600,000",
        ]


def test_language_model_indexes_are_searched_per_depth():
    runs = [
        ("a", Configuration(index="x", top_k=20)),
        ("b", Configuration(index="x", top_k=30)),
        ("c", Configuration()),
    ]
    planned = plan([*runs, ("d", Configuration(index="x", search_mode="hybrid", top_k=20))], asking={"x"})
    requests = [stage for stage in planned.stages if isinstance(stage, AskStage)]
    assert [(stage.key, stage.depth) for stage in requests] == [("asked(x, 20)", 20), ("asked(x, 30)", 30)]
    assert planned.runs[3].stages[1:] == (requests[0], *planned.runs[3].stages[2:])
    assert (planned.count_work(10)["ask"], planned.count_work(10)["dense"]) == (20, 10)
    assert "searches that ask a language model" in planned.explain(10)
    assert "ask" not in plan(runs).count_work(10)


def test_language_model_indexes_have_their_own_exact_counterpart():
    exact, by_store = Configuration(index="x", top_k=20), Configuration(index="x", top_k=20, ann="faiss:hnsw")
    planned = plan([("a", exact), ("b", by_store)], asking={"x"})
    requests = [stage.key for stage in planned.stages if isinstance(stage, AskStage)]
    assert requests == ["asked(x, 20)", "asked(x, faiss:hnsw, 20)"]
    assert [run.dense.key for run in planned.truths] == ["asked(x, 20)"]
    assert planned.runs[1].dense.name == "by language model, faiss:hnsw"


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=1200), min_size=1, max_size=4, unique=True))
def test_keys_of_stages_fit_an_index_of_postgresql(names):
    """Keys nest, as those of fused lists do, and stay unique however long their names are."""
    inner = [name_stage("dense", name, name) for name in names]
    keys = [*inner, *(name_stage("fuse", key, key, key) for key in inner)]
    assert all(len(key) <= 1000 and len(key.encode()) <= 2500 for key in keys)
    assert len(set(keys)) == len(keys)
    assert all(key.startswith(("dense(", "fuse(")) for key in keys)
