"""Runs by PostgreSQL's full text, and hybrids that weigh their scores."""

import pytest

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Evaluation, StageList
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.models import Index
from benchbench.ir.planning.matrix import MatrixError
from tests.benchmarks.test_approximation import benchmark_of


class TestFullTextAndWeights:
    def test_full_text_is_searched_alone_and_in_hybrid(self, library: Mapping) -> None:
        benchmark = benchmark_of(library, search_modes=["sparse", "hybrid"], lexical=["bm25", "fts"])
        wait(launch(benchmark))
        assert {run.status for run in benchmark.runs.all()} == {"completed"}
        for run in benchmark.runs.all():
            assert Evaluation.objects.get(run=run).means["nDCG@10"] > 0.5
        keys = set(StageList.objects.filter(source__benchmark=benchmark).values_list("source__key", flat=True))
        assert {"lexical(fts)", "lexical(bm25)"} <= keys

    def test_an_index_without_a_lexical_side_has_full_text(self, library: Mapping) -> None:
        Index.objects.update(lexical_index=None)
        with pytest.raises(MatrixError, match="no lexical side"):
            benchmark_of(library, search_modes=["sparse"])
        wait(launch(benchmark_of(library, search_modes=["sparse"], lexical=["fts"])))

    def test_weights_decide_whose_ranking_it_is(self, library: Mapping) -> None:
        benchmark = benchmark_of(
            library,
            search_modes=["dense", "sparse", "hybrid"],
            fusion=["weighted"],
            weights=[[1, 0], [0, 1], None],
        )
        wait(launch(benchmark))
        runs = {run.label: run for run in benchmark.runs.all()}
        assert runs.keys() == {
            "dense · top 20",
            "lexical · top 20",
            "hybrid · weighted 1 + 0 · top 20",
            "hybrid · weighted 0 + 1 · top 20",
            "hybrid · weighted 0.5 + 0.5 · top 20",
        }

        def head(label: str) -> list[list[int]]:
            return [result.document_ids[:3] for result in runs[label].query_results.order_by("query_id")]

        assert head("hybrid · weighted 0 + 1 · top 20") == head("lexical · top 20")
        assert head("hybrid · weighted 1 + 0 · top 20") == head("dense · top 20")
