"""What no model, file or store can have given is an error of its query, and is kept nowhere."""

from typing import Any

import numpy as np
import pytest

from apps.benchmarks.launching import launch, retry
from apps.benchmarks.models import Benchmark, PairList
from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.models import CachedVector
from apps.retrieval.rerankers import PairScores
from apps.retrieval.rerankers.late_interaction import LateInteractionReranker
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.ir.records import ScoredList
from tests.benchmarks.conftest import run_key
from tests.created import create_benchmark


def errors(benchmark: Benchmark) -> dict[str, str]:
    """The errors of a benchmark's queries, by their texts."""
    (run,) = benchmark.runs.all()
    return {result.query.text: result.error for result in run.query_results.select_related("query") if result.error}


def run(mapping: Mapping, **options: Any) -> Benchmark:
    matrix = {"top_k_values": [20], **options.pop("matrix", {})}
    benchmark = create_benchmark(mapping, name="b", matrix=matrix, **options)
    wait(launch(benchmark))
    return benchmark


@pytest.mark.parametrize("factor", [np.nan, 0, 0.9], ids=["not a number", "zeros", "another length"])
def test_one_bad_query_vector_fails_its_query_alone_and_is_not_kept(
    library: Mapping, monkeypatch: pytest.MonkeyPatch, factor: float, settings: Any
) -> None:
    settings.BENCHBENCH_BATCH_SECONDS = 5  # all queries in one batch
    bad = Query.objects.earliest("pk").text
    embed = KeywordEncoder.embed_batch

    def broken(encoder: KeywordEncoder, texts: Any, **options: Any) -> Any:
        factors = [[factor if text == bad else 1] for text in texts]
        return embed(encoder, texts, **options) * np.array(factors, np.float32)

    with monkeypatch.context() as patched:
        patched.setattr(KeywordEncoder, "embed_batch", broken)
        told = errors(run(library))
    assert told.keys() == {bad}
    assert f"made a vector of the query '{bad}' that is" in told[bad]
    distinct = set(Query.objects.values_list("text", flat=True))
    assert CachedVector.objects.filter(space__kind="query").count() == len(distinct) - 1
    later = run(library)
    assert (errors(later), later.runs.get().failed_queries) == ({}, 0)


@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_a_reranker_that_gives_no_number_fails_its_query_and_a_retry_scores_it_again(
    library: Mapping, monkeypatch: pytest.MonkeyPatch, execution: str
) -> None:
    bad = Query.objects.earliest("pk").text
    score = LateInteractionReranker.score

    def broken(reranker: LateInteractionReranker, query: str, texts: Any) -> PairScores:
        made = score(reranker, query, texts)
        return PairScores(made.scores * (np.nan if query == bad else 1), made.threshold_scores)

    options = {"matrix": {"use_reranker": [True]}, "execution": execution}
    with monkeypatch.context() as patched:
        patched.setattr(LateInteractionReranker, "score", broken)
        benchmark = run(library, **options)
    assert errors(benchmark).keys() == {bad}
    assert "did not give a finite number for each of 20 chunks" in errors(benchmark)[bad]
    if execution == "shared":
        assert not PairList.objects.filter(benchmark=benchmark, query__text=bad).exists()
        assert PairList.objects.filter(benchmark=benchmark).count() == Query.objects.exclude(text=bad).count()
    sound = run(library, **options)
    wait(retry(benchmark))
    assert errors(benchmark) == {}
    assert run_key(benchmark) == run_key(sound)


@pytest.mark.parametrize(
    ("ids", "scores", "told"),
    [
        ([0, 30], [1, 0.5], "chunks that are none of its 30"),
        ([0, -1], [1, 0.5], "chunks that are none of its 30"),
        ([0, 1, 2], [1, 0.5], "chunks that are none of its 30"),
        ([0, 1], [np.inf, 0.5], "a score that is not a finite number"),
    ],
)
def test_a_list_that_an_index_cannot_have_is_an_error(
    library: Mapping, monkeypatch: pytest.MonkeyPatch, ids: list[int], scores: list[float], told: str
) -> None:
    lists = [ScoredList(np.array(ids), np.array(scores, float))]
    monkeypatch.setattr(OpenIndex, "nearest", lambda index, queries, *args, **options: lists * len(queries))
    benchmark = create_benchmark(library, name="b", matrix={})
    wait(launch(benchmark))
    assert benchmark.runs.get().status == "failed"
    found = errors(benchmark).values()
    assert len(found) == len(set(Query.objects.values_list("text", flat=True)))
    assert all(f"The stage dense(exact) gave {told}: the index" in error for error in found)
