"""Any cut of a shared list is what the run finds alone, and rankings come back as they were stored."""

import math
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apps.execution.running.outcomes import Outcome
from apps.execution.running.rankings import build_final_lists
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.lists.final import FinalList, ListKey, SearchFacts, store_final_lists
from apps.records.models import Benchmark, ListSource, QueryResult, StageList
from apps.records.planning import SharedList
from apps.retrieval.indexing import build_index, create_index
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.matrix import Matrix
from benchbench.ir.planning.plan import RunPlan, plan
from benchbench.ir.ranking import collapse, cut, scale_scores
from benchbench.ir.records import ScoredList
from tests.benchmarks.figures import run_key, values_of
from tests.created import create_benchmark, run_benchmark
from tests.library import ENCODER

MODES = ("dense", "sparse", "cross-encoder", "late-interaction")
CHUNKS = 40


def configuration(mode: str, top_k: int, threshold: float | None) -> Configuration:
    cut_at = {"top_k": top_k, "score_threshold": threshold}
    if mode in ("dense", "sparse"):
        return Configuration(search_mode=mode, **cut_at)
    reranker = None if mode == "late-interaction" else mode
    return Configuration(use_reranker=True, reranker=reranker, rerank_depth=CHUNKS, candidates=CHUNKS, **cut_at)


@st.composite
def searches(draw: Any) -> tuple[list[RunPlan], ScoredList, Any]:
    """Runs of one last stage, the list of that, and the documents of its chunks."""
    mode = draw(st.sampled_from(MODES))
    cuts = draw(st.lists(st.tuples(st.integers(1, CHUNKS), st.sampled_from([None, 0.0, 0.3, 0.5, 1.0])), min_size=1))
    runs = [(str(uuid4()), configuration(mode, *one)) for one in dict.fromkeys(cuts)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(0, CHUNKS))
    scores = np.sort(rng.integers(-8, 9, size) / 8)[::-1]  # with ties
    scores = np.abs(scores) if mode == "sparse" else scores
    scores = np.sort(scores)[::-1]
    compared = rng.integers(0, 9, size) / 8 if mode == "late-interaction" else None
    result = ScoredList(rng.permutation(CHUNKS)[:size], scores, compared)
    documents = rng.integers(0, draw(st.integers(1, CHUNKS)), CHUNKS)
    return list(plan(runs).runs), result, SimpleNamespace(chunk_ids=np.arange(CHUNKS) + 1000, document_ids=documents)


def alone(run: RunPlan, result: ScoredList, index: Any) -> tuple[list[int], list[int], list[float]]:
    """Return what the run makes of the list by itself: threshold, cut at top_k chunks, collapse to documents."""
    head = result.head(run.candidates)
    units = scale_scores(run.unit_kind, head.compared_scores)
    stored = cut(head, unit_scores=units, threshold=run.threshold, top_k=run.top_k)
    documents = index.document_ids[stored.ids]
    first = collapse(documents)
    return documents[first].tolist(), index.chunk_ids[stored.ids[first]].tolist(), stored.scores[first].tolist()


@settings(max_examples=200)
@given(searches())
def test_cut_of_a_shared_list_equals_the_run_alone(search):
    runs, result, index = search
    outcomes = {stage.key: [Outcome(result, 1.0)] for run in runs for stage in run.stages}
    by_list: dict[str, list[RunPlan]] = {}
    for run in runs:
        by_list.setdefault(run.list_key, []).append(run)
    shared = [SharedList(1, tuple(some)) for some in by_list.values()]
    for one, created in zip(shared, build_final_lists(shared, outcomes, [7], {None: index}, max_k=5), strict=True):
        for run, length in zip(one.plans, created.lengths, strict=True):
            places = np.arange(length) if created.chunk_ranks is None else created.chunk_ranks[:length] - 1
            returned = (
                created.document_ids[:length].tolist(),
                created.chunk_ids[places].tolist(),
                created.scores[places].tolist(),
            )
            assert returned == alone(run, result, index)


@pytest.mark.parametrize(("mode", "lists"), [("dense", 1), ("late-interaction", 2)])
def test_threshold_on_non_ranking_scores_needs_its_own_list(mode, lists):
    runs = plan(
        [(str(uuid4()), configuration(mode, top_k, threshold)) for top_k in (10, 20) for threshold in (None, 0.5)]
    )
    assert len({run.list_key for run in runs.runs}) == lists


@pytest.fixture
def pieces(library: Mapping) -> Mapping:
    """A library with an index in addition that cuts each document into two or three chunks."""
    options = {"encoder": ENCODER, "chunk_parameters": {"size": 20, "overlap": 0}}
    wait(build_index(create_index(library.collection, name="pieces", **options)))
    return library


def some(*values: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


OF_PIECES = {"indexes": ["pieces"], "k_values_for_metrics": [1, 3], "primary_k": 3}
MATRICES = st.fixed_dictionaries(
    {
        "search_modes": st.sampled_from([["hybrid"], ["dense", "hybrid"], ["hybrid", "sparse"]]),
        "top_k_values": some(3, 10, 20),
        "score_thresholds": some(None, 0.3, 0.6),
        "rrf_k_values": st.permutations([5, 60]),
        "candidates": some(None, 25),
        "use_reranker": some(False, True),
        "ann": some("exact", "hnsw"),
    }
)
ANY_MATRIX = settings(
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # to shrink a matrix takes minutes
    suppress_health_check=list(HealthCheck),
)


@settings(ANY_MATRIX, max_examples=3)
@given(matrix=MATRICES, draw=st.randoms(use_true_random=False))
def test_a_run_finds_the_same_in_a_matrix(pieces, matrix, draw):
    assert_independent(pieces, matrix, draw)


@pytest.mark.thorough
@settings(ANY_MATRIX, max_examples=12)
@given(matrix=MATRICES, draw=st.randoms(use_true_random=False))
def test_a_run_finds_the_same_in_any_matrix(pieces, matrix, draw):
    assert_independent(pieces, matrix, draw)


def assert_independent(pieces: Mapping, matrix: dict[str, list[Any]], draw: Any) -> None:
    """Check that some runs of a matrix find and are worth the same as each alone."""
    together = completed(pieces, matrix)
    rankings, values = run_key(together), values_of(together)
    configurations = Matrix.parse({**OF_PIECES, **matrix}).list_configurations()
    assert len(values) == len(configurations)
    for one in draw.sample(configurations, min(4, len(configurations))):
        alone = completed(pieces, {key: [getattr(one, BY_KEY[key].field)] for key in matrix})
        assert set(values_of(alone)) == {one.hash}
        assert run_key(alone) == {key: hit for key, hit in rankings.items() if key[0] == one.hash}
        assert values_of(alone)[one.hash] == values[one.hash]
    Benchmark.objects.all().delete()


def completed(mapping: Mapping, matrix: dict[str, list[Any]]) -> Benchmark:
    benchmark = run_benchmark(mapping, name="b", matrix={**OF_PIECES, **matrix})
    assert not benchmark.runs.exclude(status="completed", failed_queries=0).exists()
    return benchmark


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_copied_lists_are_read_back_bit_identical(library, length):
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    query = library.dataset.queries.first()
    rng = np.random.default_rng(1)
    ids = rng.integers(1, 2**62, length)
    scores = rng.normal(size=length) * 1e-7
    run.source = ListSource.objects.create(benchmark=run.benchmark, key="made up")
    run.save()
    facts = SearchFacts(timings={"encode_ms": math.pi, "total_ms": 0.1})
    key = ListKey(run.source.pk, query.pk, 2)
    one = FinalList(key, facts, ids + 1, scores, document_ids=ids, lengths=(length,))
    store_final_lists([one])
    stored = QueryResult.objects.get(run=run)
    assert (stored.repetition, stored.query_id, stored.error) == (2, query.pk, "")
    assert (stored.document_ids, stored.chunk_ids) == (ids.tolist(), (ids + 1).tolist())
    assert stored.scores == scores.tolist()
    assert (stored.encode_ms, stored.search_ms, stored.total_ms) == (math.pi, None, 0.1)


def test_storing_a_query_again_replaces_it(library):
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    query = library.dataset.queries.first()
    run.source = ListSource.objects.create(benchmark=run.benchmark, key="made up")
    run.save()
    key = ListKey(run.source.pk, query.pk)
    for error in ("Zu spät – «timeout» \0", "still late"):
        store_final_lists([FinalList.failed(key, SearchFacts(error=error))])
    assert [result.error for result in QueryResult.objects.all()] == ["still late"]


def test_run_returns_first_documents_with_their_source_chunks(library):
    runs = list(create_benchmark(library, name="b", matrix={"top_k_values": [20, 30, 40]}).runs.order_by("run_order"))
    query = library.dataset.queries.first()
    source = ListSource.objects.create(benchmark=runs[0].benchmark, key="made up")
    for index, run in enumerate(runs, start=1):
        run.source, run.place = source, index
        run.save()
    chunks, scores = np.arange(101, 106), np.array([0.5, 0.4, 0.3, 0.2, 0.1])
    one = FinalList(
        ListKey(source.pk, query.pk),
        SearchFacts(),
        chunks,
        scores,
        document_ids=np.array([7, 9, 8]),
        chunk_ranks=np.array([1, 3, 5]),
        lengths=(3, 0, 2),
    )
    store_final_lists([one])
    rows = [run.query_results.get() for run in runs]
    assert [row.document_ids for row in rows] == [[7, 9, 8], [], [7, 9]]
    assert [row.chunk_ids for row in rows] == [[101, 103, 105], [], [101, 103]]
    assert [row.scores for row in rows] == [[0.5, 0.3, 0.1], [], [0.5, 0.3]]
    assert [QueryResult.objects.get(QueryResult.filter_number(row.pk)) for row in rows] == rows


@pytest.mark.django_db
def test_rankings_are_kept_as_they_are_not_compressed():
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [StageList._meta.db_table])
        assert cursor.fetchone()[0] == ["toast_tuple_target=8160"]
