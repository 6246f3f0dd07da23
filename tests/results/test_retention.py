"""What is deleted after some days: exactly what a policy names, nothing that is needed; and the page of the disk."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from apps.engines.models import EngineAnswer
from apps.judging.models import Round
from apps.operations import timing
from apps.operations.models import Operation
from apps.records.models import BatchValues, Benchmark, QueryResult, Run, StageList
from apps.results.retention import sizes
from apps.results.retention.pruning import list_prunings, prune_for
from apps.retrieval.models import CachedVector, Index, LLMAnswer, VectorSpace
from apps.verdicts.gates.baselines import approve
from tests.commands import json_of, output_of
from tests.created import build
from tests.factories import (
    make_benchmark,
    make_collection,
    make_dataset,
    make_mapping,
    make_round,
    make_schedule,
)
from tests.results.pruned import (
    ENGINE_ANSWERS,
    INDEXES,
    LLM_ANSWERS,
    LONG_AGO,
    OPERATIONS,
    RANKINGS,
    VECTORS,
    due,
)


def test_without_days_nothing_is_deleted(ended: Benchmark) -> None:
    before = StageList.objects.count(), Operation.objects.count()
    assert due() == {} == prune_for()
    assert list_prunings() == []
    assert (StageList.objects.count(), Operation.objects.count()) == before


def test_what_nothing_brings_back_stays(ended: Benchmark) -> None:
    ended.runs.filter(run_order=1).update(is_external=True)
    Index.objects.update(vector_source="f" * 64)
    before = StageList.objects.count(), Index.objects.count()
    assert {RANKINGS, INDEXES}.isdisjoint(due())
    prune_for()
    assert (StageList.objects.count(), Index.objects.count()) == before


def test_dry_run_names_what_is_then_deleted(ended: Benchmark, retention: None) -> None:
    planned = due()
    assert planned == {RANKINGS: 1, OPERATIONS: Operation.objects.count()}
    printed = output_of("prune", "--dry-run")
    assert f"{RANKINGS}: would delete 1, older than 30 days" in printed
    assert due() == planned
    assert f"{RANKINGS}: deleted 1, older than 30 days" in output_of("prune")
    assert not StageList.objects.exists()
    assert not Operation.objects.exists()
    assert due() == {}


def test_prune_reports_each_number(ended: Benchmark, retention: None) -> None:
    for arguments in (["--dry-run"], []):
        facts = json_of("prune", *arguments)
        assert {type(policy["deleted"]) for policy in facts.values()} == {int}
        assert facts[RANKINGS]["deleted"] == (0 if arguments else 1)
        assert facts[LLM_ANSWERS]["deleted"] == 0


def test_prune_names_one_day(ended: Benchmark, settings: Any) -> None:
    settings.BENCHBENCH_KEEP_RANKINGS_DAYS = 1
    assert "older than 1 day," in output_of("prune", "--dry-run")


class TestProtectedRankings:
    @pytest.fixture(autouse=True)
    def rows(self, retention: None, ended: Benchmark) -> None:
        self.ended = ended
        self.run = ended.runs.get(run_order=1)

    def check(self, *, is_kept: bool) -> None:
        assert (RANKINGS not in due()) is is_kept
        prune_for()
        assert QueryResult.objects.exists() is is_kept

    def test_of_a_current_baseline(self, admin_user: Any) -> None:
        approve(self.run, name="main", reason="good", by=admin_user)
        self.check(is_kept=True)

    def test_of_a_retired_baseline(self, admin_user: Any) -> None:
        baseline = approve(self.run, name="main", reason="good", by=admin_user)
        baseline.retired_at = timezone.now()
        baseline.save()
        self.check(is_kept=False)

    @pytest.mark.parametrize("state", Round.State.values)
    def test_of_a_judging_round(self, state: str) -> None:
        version = self.ended.dataset_version
        closed = {"closed_at": timezone.now(), "closed_version": version} if state == Round.State.CLOSED else {}
        make_round(self.run, state=state, **closed)
        self.check(is_kept=True)

    def test_of_a_scheduled_benchmark(self) -> None:
        make_schedule(self.ended)
        self.check(is_kept=True)

    def test_of_a_repeat_without_a_result(self) -> None:
        second = make_benchmark(make_mapping(make_dataset({"q": []}, name="b"), make_collection("b")), [])
        repeat = make_schedule(second).repeats.get()
        repeat.benchmark, repeat.ended_at = self.ended, None
        repeat.save()
        self.check(is_kept=True)
        repeat.ended_at = self.ended.completed_at
        repeat.save()
        self.check(is_kept=False)

    @pytest.mark.parametrize("status", [Run.Status.PENDING, Run.Status.CANCELLED])
    def test_of_unfinished_runs(self, status: str) -> None:
        Run.objects.filter(pk=self.run.pk).update(status=status)
        self.check(is_kept=True)

    def test_while_it_is_measured_again(self) -> None:
        Operation.objects.create(kind=Operation.Kind.MEASURE, subject_id=self.ended.pk)
        self.check(is_kept=True)

    def test_of_one_that_ended_yesterday(self) -> None:
        Benchmark.objects.update(completed_at=timezone.now() - timedelta(days=1))
        self.check(is_kept=True)


def test_errors_stay_and_interrupted_deletions_continue(ended: Benchmark, retention: None) -> None:
    failed = StageList.objects.filter(lengths__isnull=False).first()
    assert failed
    StageList.objects.filter(pk=failed.pk).update(error="The engine is gone.")
    repeated = StageList.objects.filter(lengths__isnull=False, error="")[0]
    repeated.pk, repeated.repetition, repeated.error = None, 2, "Its query has a value all the same."
    repeated.save()
    Benchmark.objects.update(rankings_deleted_at=timezone.now())
    assert due()[RANKINGS] == 1
    prune_for()
    assert list(StageList.objects.values_list("pk", flat=True)) == [failed.pk]
    assert RANKINGS not in due()


def test_only_indexes_that_nothing_searches_go(ended: Benchmark, retention: None) -> None:
    searched = Index.objects.get()
    unused = build(Index.objects.create(collection=searched.collection, name="unused", encoder=searched.encoder))
    new = build(Index.objects.create(collection=searched.collection, name="new", encoder=searched.encoder))
    newest = build(
        Index.objects.create(collection=searched.collection, name=searched.name, version=2, encoder=searched.encoder)
    )
    Index.objects.exclude(pk=new.pk).update(updated_at=timezone.now() - LONG_AGO)
    schedule = make_schedule(ended)
    assert prune_for()[INDEXES] == 0, "its runs search the newest of any name"
    ended.runs.update(config={"index": searched.name})
    assert prune_for()[INDEXES] == 1
    assert {*Index.objects.all()} == {searched, new, newest}
    assert f"vectors_{unused.pk.hex}" not in sizes.load_sizes().tables
    schedule.delete()
    assert prune_for()[INDEXES] == 1
    assert {*Index.objects.all()} == {searched, new}


def test_caches_lose_only_what_was_unused(transactional_db: None, retention: None) -> None:
    for kind in VectorSpace.Kind.values:
        space = VectorSpace.objects.create(encoder="m", kind=kind, dimension=1)
        for name, pinned in (("old", False), ("new", False), ("imported", True)):
            CachedVector.objects.create(space=space, text_hash=name, vector=b"1234", pinned=pinned)
    for name in ("old", "new"):
        LLMAnswer.objects.create(key=name, parameters={}, ms=1)
        EngineAnswer.objects.create(
            key=name, parameters={}, hits=[], depth=1, service_ms=1, retries=0, asked_at=timezone.now()
        )
    CachedVector.objects.exclude(text_hash="new").update(used_at=timezone.now() - LONG_AGO)
    LLMAnswer.objects.filter(key="old").update(used_at=timezone.now() - LONG_AGO)
    EngineAnswer.objects.filter(key="old").update(asked_at=F("asked_at") - LONG_AGO)
    benchmark = make_benchmark(make_mapping(make_dataset({"q": []}), make_collection("b", [{"title": "On figs"}])), [1])
    opened = make_round(benchmark.runs.get())
    assert prune_for() == {VECTORS: 1, LLM_ANSWERS: 1}
    left = CachedVector.objects.values_list("space__kind", "text_hash")
    assert {*left} == {
        ("document", "new"),
        ("document", "imported"),
        *(("query", n) for n in ("old", "new", "imported")),
    }
    opened.delete()
    assert prune_for() == {ENGINE_ANSWERS: 1}
    assert [row.key for row in (LLMAnswer.objects.get(), EngineAnswer.objects.get())] == ["new", "new"]


def test_operations_stay_that_may_be_continued(ended: Benchmark, retention: None) -> None:
    of_benchmark = Operation.objects.get(kind=Operation.Kind.BENCHMARK)
    remaining = Operation.objects.exclude(pk=of_benchmark.pk).count()
    run = ended.runs.get(run_order=1)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.CANCELLED)
    active = Operation.objects.create(kind=Operation.Kind.RESOLVE, subject_id=ended.pk, finished_at=None)
    assert prune_for() == ({OPERATIONS: remaining} if remaining else {})
    assert {*Operation.objects.all()} == {of_benchmark, active}
    Run.objects.filter(pk=run.pk).update(status=Run.Status.COMPLETED)
    BatchValues.objects.create(
        run=run,
        batch=of_benchmark.batches.all()[0],
        measures=[],
        query_ids=[],
        failed_query_ids=[],
        values=b"",
        was_searched=True,
    )
    assert OPERATIONS not in prune_for()
    BatchValues.objects.all().delete()
    assert prune_for()[OPERATIONS] == 1
    ended.refresh_from_db()
    assert ended.operation is None


def test_time_limit_leaves_the_rest(ended: Benchmark, retention: None) -> None:
    assert prune_for(seconds=0) == {}
    assert QueryResult.objects.exists()


def test_workers_prune_at_the_next_full_hour(db: None, settings: Any) -> None:
    settings.BENCHBENCH_KEEP_CACHES_DAYS = 1
    before = timezone.now()
    (job,) = timing.list_timed_jobs()
    assert job.name == "apps.results.tasks.prune"
    assert before < job.at <= timezone.now() + timedelta(hours=1)
    assert (job.at.minute, job.at.second) == (0, 0)
