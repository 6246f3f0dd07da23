"""Questions to a search engine: asked at its pace, stored as they come, and waited for while the engine is down."""

import gc
import queue
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from apps.engines import process
from apps.engines.declarations import load_engine
from apps.engines.errors import (
    EngineDownError,
    EngineError,
    EngineTimeoutError,
    TemporaryEngineError,
    UnsentError,
)
from apps.engines.pacing import StoppedError, compute_loop_limit
from apps.engines.records import Engine
from apps.engines.sending import ATTEMPTS, Sender
from apps.engines.storing import Question, Reply, Search, build_keys, find_replies, store_replies
from benchbench.breaker import Breaker
from benchbench.ir.planning.engine import EngineSetting
from benchbench.texts.secret import Secret

CHECK_SECONDS = 0.1
BLOCK = 100  # answers that are stored at once,
BLOCK_SECONDS = 2.0  # or those of this time
PROBE_SECONDS = 0.5  # between requests to an engine that is down; each next interval is longer,
MAX_PROBE_SECONDS = 5.0  # up to this
OUTAGE_SECONDS = 60.0  # without a request, after which an engine that was down has its patience again
PAGES = {"offset", "page", "page0"}

_Result = tuple[int, Reply | EngineError, float, int]  # question, outcome, seconds, failed requests


@dataclass(slots=True)
class Health(Breaker):
    """The state of an engine as this process knows it: its latest requests, and since when all of them fail."""

    size: int = 10
    seconds: float = 60.0
    failing_since: float | None = None
    failed_at: float = 0.0

    def note_failure(self, seconds: float) -> None:
        """Count a question that failed for now and took `seconds`; its outage began with the first of them."""
        now = time.monotonic()
        if self.failing_since is None or now - self.failed_at > OUTAGE_SECONDS:
            self.failing_since = now - seconds
        self.failed_at = now
        self.record_failure(seconds, now)

    def note_success(self) -> None:
        self.failing_since = None
        self.record_success()

    @property
    def is_down(self) -> bool:
        return self.is_open(time.monotonic())


healths: defaultdict[str, Health] = defaultdict(Health)  # by alias
process.add(healths.clear)


def ask_all(
    setting: EngineSetting,
    questions: Sequence[Question],
    depth: int,
    *,
    since: datetime,
    rate: float | None = None,
    check: Callable[[], None],
) -> list[Reply | EngineError]:
    """Return a reply or error for each question, of at most `depth` hits.

    Answers stored after `since` are used; the others are asked for by as many threads as the engine takes requests at
    once. `check` is called several times a second by the calling thread and may raise. While the engine is down, it is
    probed for its patience, and the questions that failed are asked again; then the remaining ones get an
    EngineDownError. With a `rate`, question i is due at i / rate seconds, independent of the others, and nothing stored
    is used; after `compute_loop_limit` the remaining ones get an UnsentError. Raises EngineError for a wrong setting,
    and RedisError.
    """
    engine = load_engine(setting.alias)
    search = Search(engine, engine.complete(dict(setting.parameters)), depth)
    _check_depth(engine, depth, rate)
    keys = build_keys(search, questions)
    stored = find_replies(keys, since) if rate is None else [None] * len(questions)
    with pause_collection():
        asking = _Asking(search, engine.read_secret(), questions, keys, [*stored], rate, check)
        try:
            asking.run()
        finally:
            asking.store()
    return [outcome for outcome in asking.outcomes if outcome is not None]


@contextmanager
def pause_collection() -> Iterator[None]:
    """Collect no garbage in this block: a full collection of a large process takes a fifth of a second."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_depth(engine: Engine, depth: int, rate: float | None) -> None:
    if depth > engine.page_size and engine.names.isdisjoint(PAGES):
        raise EngineError(
            f"{engine.subject} gives at most {engine.page_size} hits, not {depth}: use {{offset}} or {{page}} in its "
            "declaration, or a smaller depth."
        )
    if rate is not None and engine.rate is not None and rate > engine.rate:
        raise EngineError(
            f"{engine.subject} takes {engine.rate:g} requests per second, not {rate:g}: choose a lower rate."
        )


@dataclass(slots=True)
class _Asking:
    """The work of one call of `ask_all`. Threads send requests and use neither database nor outcomes."""

    search: Search
    secret: Secret
    questions: Sequence[Question]
    keys: Sequence[str]
    outcomes: list[Reply | EngineError | None]
    rate: float | None
    check: Callable[[], None]
    started: float = field(default_factory=time.perf_counter)
    unstored: dict[str, tuple[Question, Reply]] = field(default_factory=dict)
    stored_at: float = field(default_factory=time.monotonic)
    failures: Counter[int] = field(default_factory=Counter)  # requests that failed, by question

    @property
    def health(self) -> Health:
        return healths[self.search.engine.alias]

    def run(self) -> None:
        remaining = [index for index, outcome in enumerate(self.outcomes) if outcome is None]
        repeated: set[int] = set()
        while remaining:
            if self.health.is_down:
                remaining = self.wait(remaining)
                continue
            failed, unasked = self.ask(remaining)
            if not self.health.is_down:
                if len(failed) == len(remaining) and self._seems_down(failed, repeated):
                    self.health.open(time.monotonic())  # too few questions to open it by their share
                elif self.rate is not None:
                    failed = []
                else:  # the engine works, so questions that failed twice have the error
                    failed = [index for index in failed if index not in repeated]
                    repeated.update(failed)
            remaining = sorted({*failed, *unasked})

    def _seems_down(self, failed: list[int], repeated: set[int]) -> bool:
        """Return whether an engine that answered none of these questions is down, or they are slow ones."""
        are_slow = all(isinstance(self.outcomes[index], EngineTimeoutError) for index in failed)
        has_answered = not all(has_failed for has_failed, _ in self.health.requests)
        return not repeated.issuperset(failed) and not (are_slow and has_answered)

    def ask(self, indices: list[int], attempts: int = ATTEMPTS, delay: float = 0.0) -> tuple[list[int], list[int]]:
        """Ask questions until the breaker opens. Return those with temporary errors, and those that were not asked."""
        waiting, stop = iter(indices), threading.Event()
        results: queue.SimpleQueue[_Result | BaseException | None] = queue.SimpleQueue()
        number = min(self.search.engine.concurrency, len(indices))
        senders = [Sender(self.search, self.secret, stop) for _ in range(number)]
        serve = partial(self._serve, waiting, results, attempts, delay)
        threads = [threading.Thread(target=serve, args=(sender,), daemon=True) for sender in senders]
        failed: list[int] = []
        unasked: list[int] = []
        for thread in threads:
            thread.start()
        try:
            while number:
                with suppress(queue.Empty):
                    result = results.get(timeout=CHECK_SECONDS)
                    if isinstance(result, BaseException):
                        raise result
                    if result is None:
                        number -= 1
                    elif self._take(*result):
                        failed.append(result[0])
                if failed and self.health.is_down:
                    unasked += waiting
                self._check()
        finally:
            stop.set()
            for sender in senders:
                sender.expire()
            for thread in threads:
                thread.join(1.0)  # one that waits to retry ends later, unasked
        return failed, unasked

    def _serve(
        self, waiting: Iterator[int], results: queue.SimpleQueue[Any], attempts: int, delay: float, sender: Sender
    ) -> None:
        """Ask questions in a thread."""
        try:
            sender.slot.sleep(delay)
            for index in waiting:  # which the threads share
                due = time.perf_counter()
                if self.rate is not None:
                    due = self.started + index / self.rate
                    sender.slot.sleep(due - time.perf_counter())
                    limit = compute_loop_limit(len(self.questions), self.rate, self.search.engine.patience)
                    if time.perf_counter() - self.started > limit:
                        results.put((index, UnsentError(), 0.0, 0))
                        continue
                began = time.monotonic()
                try:
                    outcome: Reply | EngineError = sender.ask(self.questions[index], due, attempts)
                except EngineError as error:
                    outcome = error
                results.put((index, outcome, time.monotonic() - began, sender.failures))
        except StoppedError:
            pass
        except BaseException as error:
            results.put(error)
        finally:
            with suppress(Exception):  # a slot that Redis does not take back now expires
                sender.slot.leave()
            results.put(None)

    def _take(self, index: int, outcome: Reply | EngineError, seconds: float, failures: int) -> bool:
        """Keep the outcome of a question. Return whether it is a temporary error."""
        self.failures[index] += failures
        if isinstance(outcome, Reply):
            outcome = replace(outcome, retries=self.failures[index])
            self.unstored[self.keys[index]] = self.questions[index], outcome
        self.outcomes[index] = outcome
        if isinstance(outcome, UnsentError):
            return False
        if isinstance(outcome, TemporaryEngineError):
            self.health.note_failure(seconds)
            return True
        self.health.note_success()
        return False

    def wait(self, indices: list[int]) -> list[int]:
        """Probe an engine that is down until it answers. Return the questions to ask, none after its patience.

        Its patience counts from the first failure of the outage, which later calls share, so that each of them costs
        one probe, not the patience again.
        """
        seconds, probes = 0.0, 0
        while True:
            probe = indices[probes % len(indices)]
            failed, _ = self.ask([probe], attempts=1, delay=seconds)
            if not failed:
                return [index for index in indices if index != probe]
            remaining = (self.health.failing_since or 0.0) + self.search.engine.patience - time.monotonic()
            if remaining <= 0:
                break
            probes += 1
            seconds = min(max(PROBE_SECONDS, seconds * 1.5), MAX_PROBE_SECONDS, remaining)
        errors = [outcome.message for index in indices if isinstance(outcome := self.outcomes[index], EngineError)]
        engine = self.search.engine
        error = EngineDownError(
            f"{engine.subject} is down: it did not answer for {engine.patience:g} seconds. Start it or read its "
            f"log, then resume. Its last error: {errors[-1]}"
        )
        for index in indices:
            self.outcomes[index] = error
        return []

    def store(self) -> None:
        """Store the answers that came since the last block."""
        self.stored_at = time.monotonic()
        if self.unstored:
            replies, self.unstored = self.unstored, {}
            store_replies(self.search, replies)

    def _check(self) -> None:
        self.check()
        is_due = len(self.unstored) >= BLOCK or time.monotonic() - self.stored_at > BLOCK_SECONDS
        if is_due and self.rate is None:  # with a rate only at the end, or storing would delay requests
            self.store()
