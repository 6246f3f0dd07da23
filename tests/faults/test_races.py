"""Random concurrent acts of users while workers are killed and frozen."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Sum
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from apps.collections.models import Document
from apps.operations.models import Operation
from apps.records.models import BatchValues, Benchmark, Evaluation, ListSource, QueryResult, Run
from apps.retrieval.models import Chunk, Index
from tests.created import run_benchmark
from tests.faults.acts import ACTS, MATRIX
from tests.faults.kit import Crew, Worker, until
from tests.library import make_library

STATED_SECONDS = 12
WORKERS = 2
HISTORIES, STEPS = 15, 30
FREQUENT = ("make", "start", "start", "start", "cancel", "resolve")
CHOICES = st.tuples(st.sampled_from([*ACTS, *FREQUENT]), st.integers(0, 7))


class Life(RuleBasedStateMachine):
    """The life of operations: up to three people act at the same moment, each in a process of its own."""

    crew: Crew
    seen: Counter[str]
    undisturbed: Any

    def __init__(self) -> None:
        super().__init__()
        self.frozen: list[Worker] = []
        self.told = self.rested = 0

    @initialize()
    def begin(self) -> None:
        call_command("flush", interactive=False, verbosity=0, reset_sequences=False)
        make_library.__wrapped__(queries=6, documents=30)  # again: rows that were kept have numbers that come again
        self.act([("make", 0)])
        self.act([("start", 0), ("make", 1)])

    @rule(acts=st.lists(CHOICES, min_size=1, max_size=3))
    def act(self, acts: Sequence[tuple[str, int]]) -> None:
        """None may end otherwise than done, refused in a sentence, or told that the row is gone."""
        paths = [self.crew.folder / f"act-{self.told + index}" for index in range(len(acts))]
        self.told += len(acts)
        for (name, number), path in zip(acts, paths, strict=True):
            path.unlink(missing_ok=True)
            self.crew.order(act=name, number=number, told=str(path))
        for (name, _), path in zip(acts, paths, strict=True):
            until(path.exists, f"the answer to {name}")
            outcome = path.read_text()
            assert not outcome.startswith("fault"), (name, outcome)
            self.seen[f"{name}: {outcome}"] += 1

    @precondition(lambda self: len(self.frozen) < WORKERS - 1)
    @rule(choice=st.integers(0, WORKERS - 1))
    def freeze_worker(self, choice: int) -> None:
        worker = self.crew.workers[-1 - choice]
        worker.freeze()
        self.frozen.append(worker)

    @precondition(lambda self: bool(self.frozen))
    @rule()
    def wake_worker(self) -> None:
        self.frozen.pop().wake()

    @rule(choice=st.integers(0, WORKERS - 1))
    def kill_worker(self, choice: int) -> None:
        worker = self.crew.workers.pop(-1 - choice)
        worker.kill()
        self.frozen = [one for one in self.frozen if one != worker]
        self.crew.start()

    @rule(acts=st.lists(CHOICES, min_size=2, max_size=3))
    def act_at_once(self, acts: Sequence[tuple[str, int]]) -> None:
        self.act(acts)

    @precondition(lambda self: self.told > self.rested + 4)
    @rule()
    def pause(self) -> None:
        """Everything ends by itself, no matter what a frozen worker holds; and what it says of itself agrees."""
        until(lambda: not _active(), "the end of all operations", within=self.crew.limit)
        self.seen["rest"] += 1
        self.rested = self.told
        for operation in Operation.objects.filter(status="completed"):
            assert set(operation.batches.values_list("state", flat=True)) <= {"done"}
            answer = operation.batches.aggregate(done=Sum("done_units"), units=Sum("units"))
            assert answer["done"] == answer["units"] == (operation.total_units or None)
        assert not Benchmark.objects.filter(status="running").exists()
        assert not Index.objects.filter(status="indexing").exists()

    def teardown(self) -> None:
        while self.frozen:
            self.wake_worker()
        if Operation.objects.exists():
            self.pause()
            hold_figures(self.undisturbed)
            hold_no_orphans()


def hold_figures(undisturbed: Any) -> None:
    """Hold that each completed benchmark has every row, and found what an undisturbed one did, bit for bit."""
    for benchmark in Benchmark.objects.filter(status="completed"):
        assert not BatchValues.objects.filter(run__benchmark=benchmark).exists()
        assert set(benchmark.runs.values_list("status", flat=True)) == {"completed"}
        rows = QueryResult.objects.filter(run__benchmark=benchmark).count()
        assert rows == benchmark.runs.count() * benchmark.dataset_version.queries.count()
        if set(benchmark.runs.values_list("index__name", flat=True)) == {"keywords"}:
            rankings, values = found_by(benchmark)
            assert rankings == undisturbed[0]
            assert values == undisturbed[1] or benchmark.dataset_version.number > 1


def found_by(benchmark: Benchmark) -> tuple[Any, Any]:
    """Return the rankings and the values of a benchmark, in words that do not hang on numbers of rows."""
    names = dict(Document.objects.values_list("pk", "external_id"))
    rankings = {
        (run.config_hash, result.query.key): ([names[pk] for pk in result.document_ids], result.scores, result.error)
        for run in benchmark.runs.all()
        for result in run.query_results.select_related("query")
    }
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=benchmark.dataset_version)
    return rankings, [(one.means, one.values) for one in evaluations.order_by("run__run_order")]


def hold_no_orphans() -> None:
    """Hold that nothing is left of what was deleted, and that each subject of work is there or its work has ended."""
    sets = Index.objects.exclude(chunk_set=None).values("chunk_set")
    assert not Chunk.objects.exclude(chunk_set__in=sets).filter(chunk_set__lexical_indexes=None).exists()
    assert not ListSource.objects.filter(benchmark=None).exists()
    assert not Run.objects.exclude(status__in=("completed", "failed", "cancelled", "pending")).exists()
    assert not Operation.objects.filter(error__contains="DoesNotExist").exists()


def _active() -> bool:
    return Operation.objects.filter(status__in=("pending", "running")).exists()


@pytest.mark.long
def test_concurrent_user_actions_end_consistently(crew):
    seen: Counter[str] = Counter()
    benchmark = run_benchmark(make_library(queries=6, documents=30), name="undisturbed", matrix=MATRIX)
    machine = type("Life", (Life,), {"crew": crew, "seen": seen, "undisturbed": found_by(benchmark)})
    for _ in range(WORKERS):
        crew.start()
    requested = settings(
        max_examples=HISTORIES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # to shrink a history takes an hour
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=requested)
    print(dict(sorted(seen.items())))
