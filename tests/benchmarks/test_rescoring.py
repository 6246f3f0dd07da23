"""Finished runs on another version of their dataset: from a judgment that is edited to values that change."""

import pytest
from django.core.management import CommandError, call_command

from apps.datasets.editing.drafts import end_queries, freeze, open_draft
from apps.datasets.models import Query
from apps.execution.launching import retry
from apps.mappings.truth import TruthError
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.measuring.again import (
    RescoringError,
    find_version,
    list_scored_versions,
    load_newest_version,
    rescore,
)
from apps.records.models import Benchmark, Evaluation, QueryResult, Run, StageList
from tests.benchmarks.figures import by_query
from tests.commands import output_of
from tests.created import run_benchmark
from tests.drafts import freeze_and_resolve, set_judgment, turn
from tests.kept import made_once
from tests.library import make_library
from tests.rankings import change_rankings


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


@made_once
def make_finished() -> Benchmark:
    return run_benchmark(make_library(), name="Which?", matrix={"search_modes": ["dense", "sparse"]})


def test_edited_judgment_rescores_finished_runs_without_searching(finished):
    searched = set(QueryResult.objects.values_list("pk", flat=True))
    stages, operations = StageList.objects.count(), Operation.objects.filter(kind="benchmark").count()
    run = finished.runs.get(config__search_mode="dense")
    before = Evaluation.objects.get(run=run)

    turn(finished)
    version = freeze_and_resolve(finished.mapping)
    rescored = rescore(finished)

    assert (rescored.version, rescored.unsearched, rescored.dropped) == (version, 0, 0)
    after = Evaluation.objects.get(run=run, dataset_version=version)
    old, new = by_query(before), by_query(after)
    first = finished.dataset_version.queries.order_by("key").first()
    assert [query for query in old if old[query] != new[query]] == [first.pk], "only the query whose judgment changed"
    assert after.means["nDCG@10"] < before.means["nDCG@10"]
    assert after.truth_hash != before.truth_hash
    assert Evaluation.objects.filter(run__benchmark=finished).count() == 4, "the old values stay"
    assert set(QueryResult.objects.values_list("pk", flat=True)) == searched
    assert StageList.objects.count() == stages
    assert Operation.objects.filter(kind="benchmark").count() == operations
    assert [one.number for one in list_scored_versions(finished)] == [1, 2]


def test_rescoring_needs_a_mapping_resolved_for_the_version(finished):
    turn(finished)
    freeze(finished.mapping.dataset)
    with pytest.raises(TruthError, match="v2 is newer: resolve it again"):
        rescore(finished)
    assert Evaluation.objects.count() == 2


def test_unasked_queries_are_counted_but_excluded_from_means(finished):
    """One query is new, one is reworded, one is gone."""
    dataset, mapping = finished.mapping.dataset, finished.mapping
    draft = open_draft(dataset)
    deleted, reworded, *_ = Query.objects.filter(dataset=dataset).order_by("key")
    end_queries(draft, [deleted, reworded])
    for key, text in ((reworded.key, "other words"), ("new", "fig plum")):
        Query.objects.create(dataset=dataset, key=key, text=text, since=draft.number)
        set_judgment(dataset, key, {"document_id": "d001"}, 1)
    version = freeze_and_resolve(mapping)
    rescored = rescore(finished)
    assert (rescored.unsearched, rescored.dropped) == (2, 2)
    assert "New or reworded queries, left out of the means: 2." in rescored.sentence
    assert "Queries without a value, because the version no longer has them: 2." in rescored.sentence
    for run in finished.runs.all():
        old, new = (Evaluation.objects.get(run=run, dataset_version=one) for one in (finished.dataset_version, version))
        assert (new.query_count, new.failed_queries, new.unsearched_queries) == (10, 0, 2)
        assert (old.query_count, old.unsearched_queries) == (12, 0)
        values = by_query(new)
        stored = {query: value for query, value in by_query(old).items() if query not in (deleted.pk, reworded.pk)}
        assert new.means["nDCG@10"] == pytest.approx(sum(stored.values()) / 10)
        assert {query: values[query] for query in stored} == stored
        assert sorted(key for key, value in values.items() if value is None) == sorted(
            Query.objects.filter(since=2).values_list("pk", flat=True)
        )


def test_an_older_version_can_be_asked_for_too(finished):
    turn(finished)
    freeze_and_resolve(finished.mapping)
    second = run_benchmark(finished.mapping, name="later", matrix={"search_modes": ["dense", "sparse"]})
    rescore(second, version=find_version(second, 1))
    of_first = Evaluation.objects.filter(run__benchmark=finished).order_by("run__run_order")
    of_second = Evaluation.objects.filter(run__benchmark=second, dataset_version__number=1).order_by("run__run_order")
    assert [one.means for one in of_first] == [one.means for one in of_second]
    assert {one.truth_hash for one in of_first} == {one.truth_hash for one in of_second}


def test_retry_updates_values_on_every_version(finished):
    turn(finished)
    version = freeze_and_resolve(finished.mapping)
    run = finished.runs.get(config__search_mode="dense")
    change_rankings(run.query_results.all()[:1], error="It timed out.")
    Run.objects.filter(pk=run.pk).update(failed_queries=1)
    rescore(finished)
    assert Evaluation.objects.get(run=run, dataset_version=version).failed_queries == 1
    wait(retry(finished))
    assert Evaluation.objects.get(run=run, dataset_version=version).failed_queries == 0


def test_rescoring_rejects_invalid_requests(finished):
    with pytest.raises(RescoringError, match=r"has no version 7; choose one of 1\."):
        find_version(finished, 7)
    turn(finished)
    with pytest.raises(RescoringError, match="is not frozen: freeze it first"):
        rescore(finished, version=find_version(finished, 2))
    assert load_newest_version(finished).number == 1
    Benchmark.objects.update(status="running")
    with pytest.raises(RescoringError, match="is running"):
        rescore(finished)
    Benchmark.objects.update(status="failed")
    finished.runs.update(status="failed")
    with pytest.raises(RescoringError, match="No run of 'Which\\?' has completed"):
        rescore(finished)


def test_command_prints_the_means_on_the_version(finished):
    turn(finished)
    version = freeze_and_resolve(finished.mapping)
    output = output_of("rescore", "Which?", dataset_version=2)
    assert "Measured 2 runs on questions v2 from stored rankings." in output
    mean = Evaluation.objects.filter(dataset_version=version).first().means["nDCG@10"]
    assert f"{mean:.4f}" in output
    with pytest.raises(CommandError, match="The benchmark 'none' was not found"):
        call_command("rescore", "none")
