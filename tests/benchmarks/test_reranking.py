"""Reranked runs: late interaction by default, and each pair scored once as long as a benchmark lives."""

import pytest

from apps.benchmarks.cancelling import cancel
from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark, PairList, StageList
from apps.mappings.models import Mapping
from apps.operations.working import perform_batch, wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.rerankers.late_interaction import LateInteractionReranker
from benchbench.ir.matrix import MatrixError
from tests.benchmarks.conftest import run_key

MATRIX = {
    "search_modes": ["dense", "hybrid", "sparse"],
    "use_reranker": [False, True],
    "top_k_values": [20, 25],
    "score_thresholds": [None, 0.3],
}


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every pair of texts that late interaction scores."""
    pairs: list[tuple[str, str]] = []
    score = LateInteractionReranker.score

    def noted(reranker, query, texts):
        pairs.extend((query, text) for text in texts)
        return score(reranker, query, texts)

    monkeypatch.setattr(LateInteractionReranker, "score", noted)
    return pairs


def pairs_of(benchmark: Benchmark) -> list[tuple[int, int]]:
    return [(one.query_id, position) for one in benchmark.pair_lists.all() for position in one.positions]


def test_a_reranker_that_is_not_named_is_late_interaction(library: Mapping) -> None:
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    wait(launch(benchmark))
    assert benchmark.matrix["rerankers"] == ["late-interaction"]
    runs = list(benchmark.runs.all())
    assert {run.status for run in runs} == {"completed"}
    assert sum("rerank late-interaction" in run.label for run in runs) == 12
    assert all(run.timing["rerank_ms"] > 0 for run in runs if run.config["use_reranker"])


def test_thresholds_compare_the_plain_mean_of_similarities(library: Mapping) -> None:
    matrix = {"use_reranker": [True], "top_k_values": [30], "score_thresholds": [None, 1.0]}
    benchmark = create_benchmark(library, name="b", matrix=matrix)
    wait(launch(benchmark))
    whole, cut = benchmark.runs.order_by("run_order")
    for result in cut.query_results.all():
        (kept,) = benchmark.pair_lists.filter(query=result.query)
        both = [position for position, mean in zip(kept.positions, kept.threshold_scores, strict=True) if mean == 1]
        assert len(result.document_ids) == len(both)
    assert StageList.objects.filter(benchmark=benchmark, stage_key__startswith="rerank").count() == 12
    assert all(len(result.document_ids) == 30 for result in whole.query_results.all())


def test_a_pair_is_scored_once_whatever_runs_and_attempts_read_it(library: Mapping, scored: list) -> None:
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    operation = launch(benchmark)
    batch = operation.batches.filter(state="pending").order_by("ordinal").first()
    assert batch is not None
    perform_batch(batch.pk, owner="test")
    cancel(benchmark)
    wait(launch(benchmark))
    assert len(scored) == len(set(pairs_of(benchmark))) == len(pairs_of(benchmark))


def test_a_batch_that_fails_has_not_scored_in_vain(
    library: Mapping, scored: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.benchmarks import execution

    store, failures = execution.store_results, iter([OSError("No space left on device")])

    def full_once(results: object) -> None:
        for error in failures:
            raise error
        store(results)

    monkeypatch.setattr(execution, "store_results", full_once)
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    operation = wait(launch(benchmark))
    assert max(operation.batches.values_list("attempts", flat=True)) == 2
    assert len(scored) == len(set(pairs_of(benchmark)))


def test_isolated_execution_scores_anew_and_finds_the_same(library: Mapping, scored: list) -> None:
    shared, isolated = (
        create_benchmark(library, name=execution, matrix=MATRIX, execution=execution)
        for execution in ("shared", "isolated")
    )
    wait(launch(shared))
    once = len(scored)
    wait(launch(isolated))
    assert run_key(shared) == run_key(isolated)
    assert len(scored) > 2 * once
    assert not PairList.objects.filter(benchmark=isolated).exists()


def test_an_index_without_an_encoder_cannot_be_reranked_so(library: Mapping) -> None:
    wait(build_index(create_index(library.collection, name="words", encoder="")))
    matrix = {"indexes": ["words"], "search_modes": ["sparse"], "use_reranker": [True]}
    with pytest.raises(MatrixError, match="compares token vectors by the encoder of the index, and 'words'") as caught:
        create_benchmark(library, name="b", matrix=matrix)
    assert caught.value.field == "rerankers"
