"""Runs by the first dimensions of vectors, by PostgreSQL's full text, and hybrids that weigh their scores."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from apps.collections.records import DocumentRecord
from apps.datasets.records import QueryRecord
from apps.execution.defining.previewing import preview
from apps.execution.launching import launch
from apps.execution.running import stages
from apps.operations.working import wait
from apps.records.models import Evaluation, QueryResult, StageList
from apps.retrieval.analysis import analyzers
from apps.retrieval.availability import UnavailableError
from apps.retrieval.models import Index, LexicalIndex
from apps.retrieval.search.exact import TruncatedView
from apps.retrieval.search.open_indexes import open_index
from benchbench.ir.planning.matrix import MatrixError
from tests.benchmarks.approximated import benchmark_of, run_matrix
from tests.library import ENCODER, import_all


def test_a_run_ranks_by_the_dimensions_that_it_states(library):
    index = Index.objects.get().dimension or 0
    benchmark = run_matrix(library, search_modes=["dense", "hybrid"], dimensions=[None, index, index - 2])
    runs = {run.label: run for run in benchmark.runs.all()}
    assert {run.status for run in runs.values()} == {"completed"}
    fewer = f"dense · {index - 2} dimensions · top 20"
    for result in runs["dense · top 20"].query_results.all():
        same = runs[f"dense · {index} dimensions · top 20"].query_results.get(query_id=result.query_id)
        assert same.scores == pytest.approx(result.scores, abs=1e-6)
    opened = open_index(Index.objects.get())
    vectors = np.asarray(opened._vectors)[:, : index - 2].astype(float)
    for result in runs[fewer].query_results.select_related("query"):
        query = opened.encode([result.query.text])[0][: index - 2].astype(float)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
        if not lengths.all():
            assert "are all zero" in result.error
            continue
        cosines = vectors @ query / lengths
        assert result.scores[:1] == pytest.approx([cosines.max()], abs=1e-6)


def test_a_query_without_a_direction_fails_alone(transactional_db, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 60  # all in one batch
    shelf = [DocumentRecord("d", title="d", text="apple pear olive")]
    queries = [QueryRecord(key, key) for key in ("apple", "olive", "pear")]  # olive is the ninth dimension
    library = import_all(shelf, queries, name="keywords", encoder=ENCODER)
    wait(launch(benchmark_of(library, search_modes=["dense"], dimensions=[5])))
    [(key, error)] = QueryResult.objects.exclude(error="").values_list("query__key", "error")
    assert key == "olive"
    assert error == "The first 5 dimensions of the vector of the query are all zero: compare more dimensions."


def test_shortening_the_vectors_is_in_no_time(library, monkeypatch):
    clock = SimpleNamespace(seconds=0.0)
    created = TruncatedView.__init__

    def slow(self: TruncatedView, *args: Any) -> None:
        clock.seconds += 10
        created(self, *args)

    monkeypatch.setattr(TruncatedView, "__init__", slow)
    monkeypatch.setattr(stages, "time", SimpleNamespace(perf_counter=lambda: clock.seconds))
    wait(launch(benchmark_of(library, search_modes=["dense"], dimensions=[9])))
    assert clock.seconds == 10
    assert set(QueryResult.objects.values_list("search_ms", flat=True)) == {0.0}


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"dimensions": [4096]}, "4096 exceeds the"),
        ({"dimensions": [2], "ann": ["hnsw"]}, "hnsw does not use this axis"),
    ],
)
def test_unsearchable_dimensions_are_rejected(library, declared, sentence):
    with pytest.raises(MatrixError, match=sentence) as raised:
        benchmark_of(library, search_modes=["dense"], **declared)
    assert raised.value.field == "dimensions"


class TestFullTextAndWeights:
    def test_full_text_is_searched_alone_and_in_hybrid(self, library):
        benchmark = run_matrix(library, search_modes=["sparse", "hybrid"], lexical=["bm25", "fts"])
        assert {run.status for run in benchmark.runs.all()} == {"completed"}
        for run in benchmark.runs.all():
            assert Evaluation.objects.get(run=run).means["nDCG@10"] > 0.5
        keys = set(StageList.objects.filter(source__benchmark=benchmark).values_list("source__key", flat=True))
        assert {"lexical(fts)", "lexical(bm25)"} <= keys

    def test_a_run_indexes_the_words_of_its_analyzer(self, library):
        matrix = {"search_modes": ["sparse"], "lexical": ["bm25(words=code|english, k1=0.9)", "fts(language=german)"]}
        assert preview(library, matrix).builds == [
            f"{setting} of 30 chunks of keywords" for setting in ("bm25(words=code)", "fts(language=german)")
        ]
        benchmark = run_matrix(library, **matrix)
        assert {run.status for run in benchmark.runs.all()} == {"completed"}
        assert LexicalIndex.objects.count() == 3, "words of English are those of the index"
        assert preview(library, matrix).builds == []
        (tuned,) = run_matrix(library, search_modes=["sparse"], lexical=["bm25(k1=0.9)"]).runs.all()
        code = benchmark.runs.get(config__lexical="bm25(words=code, k1=0.9)").provenance["words"]
        assert (code["engine"], code["parameters"]["analyzer"]["words"]) == ("bm25", "code")
        assert "words" not in tuned.provenance
        usual = benchmark.runs.get(config__lexical="bm25(words=english, k1=0.9)")
        assert list(usual.query_results.order_by("query").values_list("document_ids", "scores")) == list(
            tuned.query_results.order_by("query").values_list("document_ids", "scores")
        )

    def test_a_missing_package_is_refused_before_the_start(self, library, monkeypatch):
        monkeypatch.setattr(analyzers, "find_spec", lambda module: None)
        with pytest.raises(UnavailableError, match=r"words=rjieba needs rjieba: pip install 'benchbench\[rjieba\]'"):
            launch(benchmark_of(library, search_modes=["sparse"], lexical=["bm25(words=rjieba)"]))

    def test_an_index_without_a_lexical_side_has_full_text(self, library):
        Index.objects.update(lexical_index=None)
        with pytest.raises(MatrixError, match="it has no lexical index"):
            benchmark_of(library, search_modes=["sparse"])
        wait(launch(benchmark_of(library, search_modes=["sparse"], lexical=["fts"])))

    def test_weights_decide_whose_ranking_it_is(self, library):
        benchmark = run_matrix(
            library, search_modes=["dense", "sparse", "hybrid"], fusion=["weighted"], weights=[[1, 0], [0, 1], None]
        )
        runs = {run.label: run for run in benchmark.runs.all()}
        weighted = {f"hybrid · weighted {shares} · top 20" for shares in ("1 + 0", "0 + 1", "0.5 + 0.5")}
        assert runs.keys() == {"dense · top 20", "lexical · top 20", *weighted}

        def rankings(label: str) -> list[list[int]]:
            return [result.document_ids for result in runs[label].query_results.order_by("query_id")]

        assert rankings("hybrid · weighted 0 + 1 · top 20") == rankings("lexical · top 20")
        assert rankings("hybrid · weighted 1 + 0 · top 20") == rankings("dense · top 20")
