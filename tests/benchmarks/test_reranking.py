"""Reranked runs: late interaction by default, and each pair scored once as long as a benchmark lives."""

import math
from pathlib import Path

import pytest

from apps.execution.defining.creating import clone
from apps.execution.launching import cancel, launch
from apps.execution.provisional import describe_reranking
from apps.execution.running import execution
from apps.mappings.models import Mapping
from apps.operations.models import Batch
from apps.operations.working import OperationFailedError, perform_batch, wait
from apps.records.models import Benchmark, PairList, QueryResult, StageList
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.rerankers.late_interaction import LateInteractionReranker
from benchbench.ir.planning.matrix import MatrixError
from benchbench.process import reset_all
from tests.benchmarks.figures import run_key
from tests.created import create_benchmark, finish, run_benchmark
from tests.library import make_library
from tests.tiny_models import save_cross_encoder

MATRIX = {
    "search_modes": ["dense", "hybrid", "sparse"],
    "use_reranker": [False, True],
    "top_k_values": [20, 25],
    "score_thresholds": [None, 0.3],
}


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    score = LateInteractionReranker.score

    def noted(reranker, query, texts):
        pairs.extend((query, text) for text in texts)
        return score(reranker, query, texts)

    monkeypatch.setattr(LateInteractionReranker, "score", noted)
    return pairs


def pairs_of(benchmark: Benchmark) -> list[tuple[int, int]]:
    return [(one.query_id, position) for one in benchmark.pair_lists.all() for position in one.positions]


def test_a_reranker_that_is_not_named_is_late_interaction(library):
    benchmark = run_benchmark(library, name="b", matrix=MATRIX)
    assert benchmark.matrix["rerankers"] == ["late-interaction"]
    runs = list(benchmark.runs.all())
    assert {run.status for run in runs} == {"completed"}
    assert sum("rerank late-interaction" in run.label for run in runs) == 12
    assert all(run.timing["rerank_ms"] > 0 for run in runs if run.config["use_reranker"])


def test_thresholds_compare_the_plain_mean_of_similarities(library):
    matrix = {"use_reranker": [True], "top_k_values": [30], "score_thresholds": [None, 1.0]}
    benchmark = run_benchmark(library, name="b", matrix=matrix)
    complete, cut = benchmark.runs.order_by("run_order")
    for result in cut.query_results.all():
        (stored,) = benchmark.pair_lists.filter(query=result.query)
        both = [position for position, mean in zip(stored.positions, stored.threshold_scores, strict=True) if mean == 1]
        assert len(result.document_ids) == len(both)
    assert StageList.objects.filter(source__benchmark=benchmark, source__key__startswith="rerank").count() == 12
    assert all(len(result.document_ids) == 30 for result in complete.query_results.all())


def test_pair_is_scored_once_across_runs_and_attempts(library, scored):
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    limit = library.dataset_version.query_count * (25 + 25 + 20 + 25)  # dense, lexical, and two fused lists
    assert describe_reranking(benchmark) == f"reranking 0 of at most {limit:,} pairs"
    perform_batch(launch(benchmark).batches.filter(state="pending").order_by("ordinal").first().pk, owner="test")
    assert describe_reranking(benchmark) == f"reranking {len(scored):,} of at most {limit:,} pairs"
    cancel(benchmark)
    wait(launch(benchmark))
    assert len(scored) == len(set(pairs_of(benchmark))) == len(pairs_of(benchmark)) <= limit
    assert describe_reranking(create_benchmark(library, name="c", matrix={"search_modes": ["dense"]})) == ""


@pytest.fixture
def full_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room for the first results."""
    store, failures = execution.store_final_lists, iter([OSError("No space left on device")])

    def store_later(results: object) -> None:
        for error in failures:
            raise error
        store(results)

    monkeypatch.setattr(execution, "store_final_lists", store_later)


def test_a_batch_that_fails_has_not_scored_in_vain(library, scored, full_once):
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    assert max(wait(launch(benchmark)).batches.values_list("attempts", flat=True)) == 2
    assert len(scored) == len(set(pairs_of(benchmark)))


def test_stored_nan_score_is_computed_again(library, scored, full_once):
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    operation = launch(benchmark)
    perform_batch(operation.batches.filter(state="pending").earliest("ordinal").pk, owner="test")
    damaged = benchmark.pair_lists.all()
    for stored in damaged:
        damaged.filter(pk=stored.pk).update(scores=[math.nan] * len(stored.scores))
    lost = len(pairs_of(benchmark))
    assert lost
    wait(operation)
    assert len(scored) == len(set(pairs_of(benchmark))) + lost
    scores = [score for result in QueryResult.objects.all() for score in result.scores]
    assert scores
    assert all(map(math.isfinite, scores))


def test_isolated_execution_scores_again_with_the_same_results(transactional_db, scored):
    library = make_library(queries=4)
    ways = ("shared", "isolated")
    shared, isolated = (create_benchmark(library, name=way, matrix=MATRIX, execution=way) for way in ways)
    wait(launch(shared))
    once = len(scored)
    wait(launch(isolated))
    assert run_key(shared) == run_key(isolated)
    assert len(scored) > 2 * once
    assert not PairList.objects.filter(benchmark=isolated).exists()


def test_an_index_without_an_encoder_cannot_be_reranked_so(library):
    wait(build_index(create_index(library.collection, name="words", encoder="")))
    matrix = {"indexes": ["words"], "search_modes": ["sparse"], "use_reranker": [True]}
    with pytest.raises(MatrixError, match="needs the encoder of the index, but 'words'") as caught:
        create_benchmark(library, name="b", matrix=matrix)
    assert caught.value.field == "rerankers"


class TestRevisions:
    """A cross-encoder's folder that another revision is put into, as a deployment between two workers does."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return save_cross_encoder(tmp_path / "cross")

    def replace(self, folder: Path, *, seed: int) -> None:
        """Put a model into the folder, and let a new worker load it."""
        save_cross_encoder(folder, seed=seed)
        reset_all()

    def start(self, library: Mapping, folder: Path, execution: str) -> tuple[Benchmark, list[Batch]]:
        matrix = {"use_reranker": [True], "rerankers": [str(folder)], "top_k_values": [20]}
        benchmark = create_benchmark(library, name="b", matrix=matrix, execution=execution)
        return benchmark, list(launch(benchmark).batches.order_by("ordinal"))

    @pytest.mark.parametrize("execution", ["shared", "isolated"])
    def test_a_run_is_of_one_whichever_worker_comes(self, library, folder, execution):
        benchmark, batches = self.start(library, folder, execution)
        perform_batch(batches[0].pk, owner="first")
        self.replace(folder, seed=1)
        perform_batch(batches[1].pk, owner="second")
        assert benchmark.runs.get().query_results.filter(query__in=batches[1].payload["query_ids"]).count() == 0
        self.replace(folder, seed=0)
        operation = wait(benchmark.operation or launch(benchmark))
        run = benchmark.runs.get()
        assert (operation.status, run.status, run.failed_queries) == ("completed", "completed", 0)
        revisions = {created["rerankers"][str(folder)] for created in run.provenance["made_by"]}
        assert revisions == {*benchmark.reranker_revisions.values_list("revision", flat=True)}
        assert len(revisions) == 1
        assert list(operation.unfit_workers) == ["second"]

    def test_a_retry_is_held_to_it_too(self, library, folder):
        benchmark, batches = self.start(library, folder, "shared")
        perform_batch(batches[0].pk, owner="first")
        cancel(benchmark)
        pinned = benchmark.reranker_revisions.get(model=str(folder)).revision
        self.replace(folder, seed=1)
        with pytest.raises(OperationFailedError) as answer:
            wait(launch(benchmark))
        assert str(answer.value).startswith(
            f'No worker can run this operation. "b" is reranked by {folder} in revision {pinned}, but revision '
        )
        assert str(answer.value).endswith(
            "Install that revision on a worker, or clone the benchmark to measure with another."
        )
        assert not benchmark.runs.get().query_results.exclude(error="").exists()

    def test_a_clone_may_have_another(self, library, folder):
        benchmark, _ = self.start(library, folder, "shared")
        wait(benchmark.operation or launch(benchmark))
        self.replace(folder, seed=1)
        assert finish(clone(benchmark, name="again")).runs.get().status == "completed"
