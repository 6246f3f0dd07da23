"""Indexes whose words cannot be read: another version of the analyzer built them, or they are damaged."""

from functools import partial
from itertools import count

import pytest

from apps.execution.launching import cancel, launch, retry
from apps.execution.running.builds import load_builds
from apps.operations.models import Operation
from apps.operations.waiting import describe_wait
from apps.operations.working import wait
from apps.retrieval.models import Index, LexicalIndex, LexicalPiece
from apps.retrieval.search import lexical_indexes
from apps.retrieval.search.lexical_indexes import OUTDATED, USUAL, LexicalIndexError, locate_lexical_index
from apps.retrieval.search.words import OpenWords
from apps.retrieval.unread import list_index_warnings
from benchbench import process
from benchbench.database.failures import read_again
from benchbench.errors import ConflictError
from benchbench.ir.planning.matrix import MatrixError
from tests.benchmarks.approximated import benchmark_of, work_one

SENTENCE = r'The words of the index "keywords" cannot be read: another version .* Make a new version of the index\.'


@pytest.fixture
def upgrade(monkeypatch):
    return partial(monkeypatch.setattr, lexical_indexes, "RULES", lexical_indexes.RULES + 1)


def test_they_are_refused_before_a_query_runs(library, upgrade):
    created, failed = (benchmark_of(library, search_modes=modes) for modes in (["dense", "sparse"], ["sparse"]))
    failed.runs.update(status="failed")
    upgrade()
    for act in (partial(launch, created), partial(retry, failed)):
        with pytest.raises(ConflictError, match=SENTENCE):
            act()
    with pytest.raises(MatrixError, match=SENTENCE):
        benchmark_of(library, search_modes=["hybrid"])
    (warning,) = list_index_warnings(Index.objects.get())
    assert warning.startswith('The words of the index "keywords" cannot be read')


def test_runs_without_their_words_are_measured(library, upgrade):
    before = benchmark_of(library, search_modes=["dense"])
    wait(launch(before))

    def read_rankings(benchmark):
        dense = benchmark.runs.get(config__search_mode="dense")
        return [row.document_ids for row in dense.query_results.order_by("query_id")]

    upgrade()
    matrix = {"search_modes": ["dense", "sparse"], "lexical": ["bm25(language=german)", "fts"]}
    benchmark = benchmark_of(library, **matrix)
    wait(launch(benchmark))
    assert list(benchmark.runs.values_list("status", "failed_queries")) == [("completed", 0)] * 3
    assert read_rankings(benchmark) == read_rankings(before)


def test_worker_of_the_earlier_version_measures_them(library, upgrade, monkeypatch):
    benchmark = benchmark_of(library, search_modes=["dense", "hybrid"])
    operation = launch(benchmark)
    upgrade()
    work_one(operation)
    operation.refresh_from_db()
    assert set(operation.batches.values_list("state", "attempts")) == {("pending", 0)}
    assert OUTDATED in describe_wait(operation)
    monkeypatch.setattr(lexical_indexes, "RULES", lexical_indexes.RULES - 1)
    wait(operation)
    assert list(benchmark.runs.values_list("status", "failed_queries")) == [("completed", 0)] * 2


def test_retry_measures_the_runs_without_them(library, upgrade):
    benchmark = benchmark_of(library, search_modes=["dense", "hybrid"])
    benchmark.runs.update(status="failed")
    upgrade()
    wait(retry(benchmark))
    statuses = dict(benchmark.runs.values_list("config__search_mode", "status"))
    assert statuses == {"dense": "completed", "hybrid": "failed"}


def test_run_without_its_index_has_no_figures(library):
    benchmark = benchmark_of(library, search_modes=["dense", "sparse"])
    operation = launch(benchmark)
    work_one(operation)
    process.reset_all()
    piece = LexicalPiece.objects.first()
    LexicalPiece.objects.update(data=b"damaged")
    locate_lexical_index(piece.lexical_index).unlink()
    wait(operation)
    dense, sparse = benchmark.runs.order_by("run_order")
    assert (dense.status, sparse.status) == ("completed", "failed")
    assert "piece 0 is damaged. Restore the database" in sparse.error_message
    LexicalPiece.objects.update(data=piece.data)
    wait(retry(benchmark))
    sparse.refresh_from_db()
    assert (sparse.status, sparse.failed_queries) == ("completed", 0)


def test_query_answered_in_another_repetition_did_not_fail(library, monkeypatch):
    benchmark = benchmark_of(library, search_modes=["sparse"], execution="isolated", runs_per_query=2)
    load, calls = OpenWords.load_bm25, count(1)

    def fail_once(words, setting=USUAL):
        if next(calls) == 5:  # after the warm-up
            raise LexicalIndexError("It is damaged.")
        return load(words, setting)

    operation = launch(benchmark)
    monkeypatch.setattr(OpenWords, "prepare", lambda words, setting: None)
    monkeypatch.setattr(OpenWords, "load_bm25", fail_once)
    wait(operation)
    assert benchmark.runs.get().query_results.filter(error="It is damaged.").count() == 1
    assert list(benchmark.runs.values_list("status", "failed_queries")) == [("completed", 0)]


def test_words_built_again_are_those_of_all_queries(library, upgrade):
    benchmark = benchmark_of(library, search_modes=["sparse"], lexical=["bm25(language=german)"])
    operation = launch(benchmark)
    for _ in range(2):  # it builds the words, and searches some queries
        work_one(operation)
    upgrade()
    process.reset_all()
    work_one(operation)
    assert OUTDATED in describe_wait(read_again(Operation.objects.all(), operation.pk))
    cancel(benchmark)
    wait(launch(benchmark))
    assert list(benchmark.runs.values_list("status", "failed_queries")) == [("completed", 0)]
    (words,) = LexicalIndex.objects.filter(parameters__analyzer__language="german").order_by("-completed_at")[:1]
    (builds,) = load_builds(benchmark).values()
    assert set(builds.values()) == {words.fingerprint}
    assert len(builds) == benchmark.dataset_version.query_count
