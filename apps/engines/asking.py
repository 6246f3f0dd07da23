"""Questions to a search engine: asked at its pace, stored as they come, and waited for while the engine is down."""

import contextlib
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from apps.engines.answers import Hit
from apps.engines.declarations import list_engines, load_engine
from apps.engines.errors import EngineDownError, EngineError, TemporaryEngineError
from apps.engines.models import EngineAnswer
from apps.engines.pacing import Pacer, StoppedError
from apps.engines.records import Engine
from apps.engines.secrets import Secret
from apps.engines.sending import ATTEMPTS, Sender
from apps.engines.storing import Question, Reply, build_answer, build_keys, find_replies, store_answers
from benchbench.breaker import Breaker
from benchbench.ir.planning.engine import EngineSetting

__all__ = ["Engine", "EngineError", "Hit", "Question", "Reply", "ask_all", "find_stored", "list_engines", "load_engine"]

CHECK_SECONDS = 0.1
BLOCK = 100  # answers that are stored at once,
BLOCK_SECONDS = 2.0  # or those of this time
PROBE_SECONDS = 0.5  # between requests to an engine that is down; each next interval is longer,
MAX_PROBE_SECONDS = 5.0  # up to this

breakers: defaultdict[str, Breaker] = defaultdict(lambda: Breaker(size=10, seconds=60.0))  # by alias


def find_stored(setting: EngineSetting, questions: Sequence[Question], depth: int) -> list[Reply | None]:
    """Return the latest stored replies to questions, without asking. Raises EngineError for an unknown setting."""
    engine = load_engine(setting.alias)
    parameters = engine.complete(dict(setting.parameters))
    return find_replies(build_keys(engine, parameters, depth, questions))


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
    is used. Raises EngineError for a wrong setting, and RedisError.
    """
    engine = load_engine(setting.alias)
    parameters = engine.complete(dict(setting.parameters))
    _check_depth(engine, depth, rate)
    secret = engine.read_secret()
    keys = build_keys(engine, parameters, depth, questions)
    outcomes: list[Reply | EngineError | None] = [None] * len(questions)
    if rate is None:
        outcomes[:] = find_replies(keys, since=since)
    asking = _Asking(engine, parameters, depth, secret, questions, keys, outcomes, rate, check)
    try:
        asking.run()
    except BaseException:
        with contextlib.suppress(DatabaseError):  # the first error is the one to raise
            asking.store()
        raise
    asking.store()
    return [outcome for outcome in outcomes if outcome is not None]


def _check_depth(engine: Engine, depth: int, rate: float | None) -> None:
    if depth > engine.page_size and not engine.is_paged:
        raise EngineError(
            f"The engine {engine.alias} gives at most {engine.page_size} hits, not {depth}: use {{offset}} or {{page}} "
            "in its declaration, or a smaller depth."
        )
    if rate is not None and engine.rate is not None and rate > engine.rate:
        raise EngineError(
            f"The engine {engine.alias} takes {engine.rate:g} requests per second, not {rate:g}: choose a lower rate."
        )


@dataclass(slots=True)
class _Asking:
    """The work of one call of `ask_all`. Threads send requests and use neither database nor outcomes."""

    engine: Engine
    parameters: Mapping[str, Any]
    depth: int
    secret: Secret
    questions: Sequence[Question]
    keys: Sequence[str]
    outcomes: list[Reply | EngineError | None]
    rate: float | None
    check: Callable[[], None]
    started: float = field(default_factory=time.perf_counter)
    answers: list[EngineAnswer] = field(default_factory=list)
    stored_at: float = field(default_factory=time.monotonic)
    waited: float = 0.0  # seconds for which the engine was down

    def run(self) -> None:
        remaining = [index for index, outcome in enumerate(self.outcomes) if outcome is None]
        repeated: set[int] = set()
        breaker = breakers[self.engine.alias]
        while remaining:
            if breaker.is_open(time.monotonic()):
                remaining = self.wait(remaining)
                continue
            failed, unasked = self.ask(remaining)
            if not breaker.is_open(time.monotonic()):
                if len(failed) == len(remaining) and not repeated.issuperset(failed):
                    # Too few to open the breaker, but the engine answered none of them.
                    breaker.open(time.monotonic())
                elif self.rate is not None:
                    failed = []
                else:  # the engine works, so questions that failed twice have the error
                    failed = [index for index in failed if index not in repeated]
                    repeated.update(failed)
            remaining = sorted({*failed, *unasked})

    def ask(self, indices: Iterable[int], attempts: int = ATTEMPTS) -> tuple[list[int], list[int]]:
        """Ask questions until the breaker opens. Return those with temporary errors, and those that were not asked."""
        crew = _Crew(self, indices, attempts)
        failed = []
        breaker = breakers[self.engine.alias]
        try:
            for index, outcome, seconds in crew.collect(self._check):
                self.outcomes[index] = outcome
                if isinstance(outcome, TemporaryEngineError):
                    failed.append(index)
                    breaker.record_failure(seconds, time.monotonic())
                    if breaker.is_open(time.monotonic()):
                        crew.pause()
                else:
                    breaker.record_success()
                    if isinstance(outcome, Reply):
                        self._add(index, outcome)
        finally:
            crew.stop()
        return failed, list(crew.waiting)

    def wait(self, indices: list[int]) -> list[int]:
        """Probe an engine that is down until it answers. Return the questions to ask, none after its patience."""
        started, seconds, probes = time.monotonic() - self.waited, 0.0, 0
        while time.monotonic() - started <= self.engine.patience:
            self._pause(min(seconds, max(0.0, started + self.engine.patience - time.monotonic())))
            probe = indices[probes % len(indices)]
            failed, _ = self.ask([probe], attempts=1)
            self.waited = time.monotonic() - started
            if not failed:
                return [index for index in indices if index != probe]
            seconds, probes = min(max(PROBE_SECONDS, seconds * 1.5), MAX_PROBE_SECONDS), probes + 1
        error = EngineDownError(
            f"The engine {self.engine.alias} is down: it did not answer for {self.engine.patience:g} seconds. Start it "
            f"or read its log, then resume. Its last error: {self._find_last_error(indices)}"
        )
        for index in indices:
            self.outcomes[index] = error
        return []

    def store(self) -> None:
        """Store the answers that came since the last block."""
        self.stored_at = time.monotonic()
        if self.answers:
            answers, self.answers = self.answers, []
            store_answers(answers)

    def _find_last_error(self, indices: list[int]) -> str:
        errors = [outcome.message for index in indices if isinstance(outcome := self.outcomes[index], EngineError)]
        return errors[-1] if errors else "unknown."

    def _add(self, index: int, reply: Reply) -> None:
        question, key = self.questions[index], self.keys[index]
        self.answers.append(build_answer(self.engine, self.parameters, self.depth, question, key, reply))

    def _check(self) -> None:
        self.check()
        is_due = len(self.answers) >= BLOCK or time.monotonic() - self.stored_at > BLOCK_SECONDS
        if is_due and self.rate is None:  # with a rate only at the end, or storing would delay requests
            self.store()

    def _pause(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self._check()
            time.sleep(min(left, CHECK_SECONDS))


class _Crew:
    """Threads that ask questions, each with its own connection."""

    def __init__(self, asking: _Asking, indices: Iterable[int], attempts: int) -> None:
        self.waiting = deque(indices)
        self._asking, self._attempts = asking, attempts
        self._paused, self._stopped = threading.Event(), threading.Event()
        self._results: queue.SimpleQueue[tuple[int, Reply | EngineError, float] | BaseException | None] = (
            queue.SimpleQueue()
        )
        engine = asking.engine
        pacer = Pacer(
            engine.alias,
            concurrency=engine.concurrency,
            rate=engine.rate,
            request_seconds=engine.timeouts.connect + engine.timeouts.total,
            stop=self._stopped,
        )
        number = min(engine.concurrency, len(self.waiting))
        self._senders = [Sender(engine, asking.parameters, asking.depth, asking.secret, pacer) for _ in range(number)]
        self._threads = [
            threading.Thread(target=self._work, args=(sender,), name=f"engine-{engine.alias}", daemon=True)
            for sender in self._senders
        ]
        for thread in self._threads:
            thread.start()

    def collect(self, check: Callable[[], None]) -> Iterable[tuple[int, Reply | EngineError, float]]:
        """Yield index, outcome and seconds of each question until all threads have ended; call `check` meanwhile."""
        running, checked_at = len(self._threads), 0.0
        while running:
            with contextlib.suppress(queue.Empty):
                result = self._results.get(timeout=CHECK_SECONDS)
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    running -= 1
                else:
                    yield result
            if time.monotonic() - checked_at >= CHECK_SECONDS:
                check()
                checked_at = time.monotonic()

    def pause(self) -> None:
        """Let the threads take no further question."""
        self._paused.set()

    def stop(self) -> None:
        """End the threads, and the requests that they are sending. One that waits to retry ends later, unasked."""
        self._stopped.set()
        for thread, sender in zip(self._threads, self._senders, strict=True):
            if thread.is_alive():
                sender.expire()
                thread.join(1.0)

    def _work(self, sender: Sender) -> None:
        try:
            while not self._paused.is_set() and not self._stopped.is_set():
                try:
                    index = self.waiting.popleft()
                except IndexError:
                    break
                self._ask(sender, index)
        except StoppedError:
            pass
        except BaseException as error:
            self._results.put(error)
        finally:
            with contextlib.suppress(Exception):  # a slot that Redis does not take back now expires
                sender.close()
            self._results.put(None)

    def _ask(self, sender: Sender, index: int) -> None:
        due = time.perf_counter()
        if self._asking.rate is not None:
            due = self._asking.started + index / self._asking.rate
            if self._stopped.wait(max(0.0, due - time.perf_counter())):
                raise StoppedError
        started = time.monotonic()
        try:
            outcome: Reply | EngineError = sender.ask(self._asking.questions[index], due, self._attempts)
        except EngineError as error:
            if self._stopped.is_set():
                raise StoppedError from None
            outcome = error
        self._results.put((index, outcome, time.monotonic() - started))
