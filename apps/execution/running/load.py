"""Load: the queries of a run sent in an open loop by a pool of threads, each through the whole path of a search."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from django.conf import settings
from django.db import connections

from apps.datasets.models import Query
from apps.engines.asking import pause_collection
from apps.engines.errors import UnsentError
from apps.execution.running.engines import EngineSearch
from apps.execution.running.latencies import LATENCIES, Loop, Timed, build_record
from apps.execution.running.outcomes import BatchNotes, Outcome, note
from apps.execution.running.pairs import Pairs
from apps.execution.running.stages import Stages
from apps.records.measuring.approximations import COMPARED_ALL, choose_recall, list_recall_depths
from apps.retrieval.encoders.encoding import TextVector
from apps.retrieval.search.open_indexes import OpenIndex
from apps.retrieval.search.pgvector import check_plans_once
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import DenseStage, EncodeStage, EngineStage

CHECK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Request:
    """A request that ended, with its times on the performance counter, and its result. Positions count from 0."""

    position: int
    due: float
    began: float
    ended: float
    result: Any

    @property
    def timed(self) -> Timed:
        return Timed((self.began - self.due) * 1000, (self.ended - self.began) * 1000, self.ended)


def count_threads(loop: Loop) -> int:
    return min(int(settings.BENCHBENCH_LOAD_THREADS), len(loop.schedule))


def send_all(
    loop: Loop, send: Callable[[int], object], reduce: Callable[[int, Any], object], *, check: Callable[[], object]
) -> list[Request]:
    """Send the requests of a loop when they are due, from BENCHBENCH_LOAD_THREADS threads. Return them by position.

    A free thread takes the next request; if none is free, the request waits. Each thread sends one untimed request
    first, which opens its connection. `send` gets the number of a query; `reduce`, which is not timed, gets the
    position of the request and what `send` returned. `check` is called several times a second by the calling thread
    and may raise.
    """
    pool = _Pool(loop, send, reduce)
    threads = [threading.Thread(target=pool.serve, name="load", daemon=True) for _ in range(count_threads(loop))]
    with pause_collection():
        for thread in threads:
            thread.start()
        try:
            while alive := [thread for thread in threads if thread.is_alive()]:
                alive[0].join(CHECK_SECONDS)
                check()
        finally:
            pool.stop.set()
            for thread in threads:
                thread.join()
    if pool.errors:
        raise pool.errors[0]
    return sorted(pool.requests, key=lambda request: request.position)


@dataclass(eq=False)
class _Pool:
    """Requests and state that the threads of a loop share."""

    loop: Loop
    send: Callable[[int], Any]
    reduce: Callable[[int, Any], Any]
    requests: list[Request] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = 0.0

    def __post_init__(self) -> None:
        self.positions = iter(range(len(self.loop.schedule)))
        self.barrier = threading.Barrier(count_threads(self.loop), self.begin)

    def begin(self) -> None:
        self.started = time.perf_counter()

    def serve(self) -> None:
        """Send requests in a thread until all are sent, or the loop must end."""
        loop, clock = self.loop, time.perf_counter
        try:
            check_plans_once()
            self.send(loop.schedule[0])
            self.barrier.wait()
            for position in self.positions:
                due = self.started + position / loop.rate
                self.stop.wait(max(0.0, due - clock()))
                began = clock()
                if self.stop.is_set() or began - self.started > loop.limit:
                    break
                sent = self.send(loop.schedule[position])
                self.requests.append(Request(position, due, began, clock(), self.reduce(position, sent)))
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()
            self.barrier.abort()
        finally:
            connections.close_all()  # this thread's


class _PairsInTurn(Pairs):
    """Pairs that one thread at a time scores: rerankers set the threads of torch, and store vectors of tokens."""

    _lock = threading.Lock()

    def score(self, *pairs: Any, **options: Any) -> Any:
        with self._lock:
            return super().score(*pairs, **options)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer under load: whether the search failed, its recall by k, and the stages of a query's first answer."""

    has_failed: bool
    recalls: Mapping[int, float | None]
    stages: Stages | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """The first answer to a query under load, with the outcomes of its exact counterpart.

    `latency_ms` counts from when the query was due; None without an answer, or if the loop had a part of the search.
    """

    outcomes: dict[str, list[Outcome]]
    notes: BatchNotes
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run that searches for `queries` in an open loop; `plan` is that of the run alone.

    `build_stages` returns the stages of some queries. Recall is measured at `k` and at the depth.
    """

    plan: Plan
    queries: Sequence[Query]
    indexes: Mapping[str | None, OpenIndex]
    engines: EngineSearch
    build_stages: Callable[..., Stages]
    k: int

    def search(self, loop: Loop, notes: BatchNotes, *, check: Callable[[], None]) -> list[Loaded]:
        """Return each query's first answer, and add the latencies to `notes` under the key of the run.

        For a run that asks an engine, the loop has the requests to the engine alone; its other stages follow one query
        at a time. The exact counterpart of an approximate run is searched before.
        """
        (run,) = self.plan.runs
        alone = self.plan.select([run.run_key], truth=False)
        before, numbers = self._prepare(), range(len(self.queries))
        lists = [{key: [outcomes[number]] for key, outcomes in before.items()} for number in numbers]
        if asking := next((stage for stage in run.stages if isinstance(stage, EngineStage)), None):
            answers = []
            for number, (outcome, ms) in enumerate(self.engines.ask_in_loop(notes, asking, self.queries, loop)):
                stages = self._run(alone, number, before, ask_engine=partial(_repeat, outcome))
                service = stages.outcomes[run.final][0].ms if run.stages == (asking,) else None
                total = None if ms is None or service is None else ms + service
                answers.append(Loaded(lists[number] | stages.outcomes, stages.notes, total))
            return answers
        requests = send_all(
            loop,
            lambda number: self._run(alone, number, before, pairs=_PairsInTurn(), on_part=lambda: None),
            lambda position, stages: self._reduce(loop, position, stages, before),
            check=check,
        )
        answered = [request.timed for request in requests if not request.result.has_failed]
        record = build_record(loop, answered, sent=len(requests), threads=count_threads(loop))
        note(notes, run.run_key, LATENCIES, [record | {"recall": _sum_recalls(requests)}])
        unsent = {stage.key: [Outcome(error=UnsentError().message)] for stage in run.stages}
        loaded = [Loaded(exact | unsent, {}) for exact in lists]
        for request in requests:
            if stages := request.result.stages:
                number = loop.schedule[request.position]
                loaded[number] = Loaded(lists[number] | stages.outcomes, stages.notes, sum(request.timed[:2]))
        return loaded

    def _run(self, plan: Plan, number: int, before: Mapping[str, list[Outcome]], **options: Any) -> Stages:
        """Run the stages of `plan` for one query, as in isolated execution, without reading its stored vectors."""
        encoded = {stage.key: before[stage.key][number] for stage in plan.stages if isinstance(stage, EncodeStage)}
        stored = {key: [TextVector(outcome.value)] for key, outcome in encoded.items() if not outcome.error}
        stages = self.build_stages([self.queries[number]], encode_afresh=True, stored=stored, **options)
        stages.run(plan)
        return stages

    def _prepare(self) -> dict[str, list[Outcome]]:
        """Store the vectors of all queries, and return the lists of the exact counterpart."""
        needed = {stage.key for truth in self.plan.truths for stage in truth.stages}
        stages = [stage for stage in self.plan.stages if isinstance(stage, EncodeStage) or stage.key in needed]
        return self.build_stages(self.queries).run(Plan(tuple(stages), ()))

    def _reduce(self, loop: Loop, position: int, stages: Stages, before: Mapping[str, list[Outcome]]) -> Answer:
        (run,), number = self.plan.runs, loop.schedule[position]
        recalls: dict[int, float | None] = {}
        for searched in self.plan.truths:
            exact, approximate = cast(DenseStage, searched.dense), cast(DenseStage, run.dense)
            retrieved, truth = stages.outcomes[approximate.key][0].value, before[exact.key][number].value
            was_exact = any(name in stages.notes.get(approximate.key, {}) for name in COMPARED_ALL)
            if retrieved is None or truth is None or was_exact:
                continue
            compute = choose_recall(self.indexes[approximate.index].index, approximate)
            for k in list_recall_depths(self.k, approximate):
                recalls[k] = compute(retrieved, truth.head(approximate.depth), k)
        has_failed = bool(stages.outcomes[run.final][0].error)
        return Answer(has_failed, recalls, stages if position < len(self.queries) else None)


def _repeat(outcome: Outcome, *_: Any, **options: Any) -> list[Outcome]:
    """Return the outcome of an engine that was asked before."""
    return [outcome]


def _sum_recalls(requests: Sequence[Request]) -> list[tuple[int, float, int]]:
    """Return (k, sum, count) of the recalls of the requests, without those that have nothing to find."""
    shares: defaultdict[int, list[float]] = defaultdict(list)
    for request in requests:
        for k, share in request.result.recalls.items():
            shares[k] += [] if share is None else [share]
    return [(k, sum(some), len(some)) for k, some in sorted(shares.items()) if some]
