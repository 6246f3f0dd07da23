"""Trying a query on an index: what is asked of a worker, and what it answers.

Web requests load no model, so a quick job searches (`trial_search`). Request and answer are in the cache for some
minutes.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, ClassVar

from django.core.cache import cache
from redis.exceptions import RedisError

from apps.operations.hosts import lock_host
from apps.operations.queueing import enqueue_once, is_behind_batches
from benchbench.errors import BenchbenchError, error_text
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.matrix import DEFAULT_CUTOFFS, DEFAULT_PRIMARY_K
from benchbench.reading.objects import read_as
from benchbench.reading.strict_json import dump_canonical

log = logging.getLogger(__name__)
ANSWER_TRIAL = "apps.results.tasks.answer_trial"
ANSWER_ENGINE_TRIAL = "apps.results.tasks.answer_engine_trial"
MAX_HITS = 10
ANSWER_SECONDS = 600
SEARCH_SECONDS = 120  # a search without an answer is started again afterwards
LOOK_SECONDS = 0.01  # between two looks for an answer
PATIENCE_SECONDS = 0.3  # of a request for an answer that a worker may give at once
HOST_SECONDS = 20  # of waiting for a host
Terms = list[tuple[str, float]]


class TrialError(BenchbenchError):
    """The query cannot be tried."""

    code = "trial"


def _build_key(kind: str, trial: Any) -> str:
    return f"{kind}-{sha256(dump_canonical(asdict(trial)).encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One query on one index in one configuration, whose other parts have their defaults."""

    job: ClassVar[str] = ANSWER_TRIAL
    text: str
    index_id: str
    mode: str
    use_reranker: bool
    top_k: int
    lexical: str = "bm25"
    rrf_k: int = 60
    weights: tuple[float, float] | None = None  # of dense and lexical; None fuses by rank

    @property
    def key(self) -> str:
        return _build_key("trial", self)

    @property
    def configuration(self) -> Configuration:
        return Configuration(
            search_mode=self.mode,
            use_reranker=self.use_reranker,
            top_k=self.top_k,
            lexical=self.lexical,
            fusion="weighted" if self.weights else "rrf",
            weights=self.weights,
            rrf_k=self.rrf_k,
        )


@dataclass(frozen=True, slots=True)
class EngineTrial:
    """One query to a declared search engine, with the defaults of its parameters."""

    job: ClassVar[str] = ANSWER_ENGINE_TRIAL
    alias: str
    text: str
    depth: int = MAX_HITS

    @property
    def key(self) -> str:
        return _build_key("engine-trial", self)


@dataclass(frozen=True, slots=True)
class Step:
    """The rank of a chunk in the list of a stage, None if it is not in it, and its score, which sums `terms`.

    Terms are the matching words of a lexical score, and the fused ranks of a hybrid one; of a similarity, nothing.
    """

    name: str
    rank: int | None
    kind: str = ""
    terms: Terms = field(default_factory=list)
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class TrialHit:
    """A document of an answer, its first chunk with the first terms that lexical search has of it, and its score."""

    document: int
    chunk: int
    score: float
    steps: list[Step]
    terms: list[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The first documents of a ranking of `depth`, and the terms of the query; or the `text` of an engine's answer.

    `terms` are None without lexical search. `error` is not empty if the search failed.
    """

    error: str = ""
    hits: list[TrialHit] = field(default_factory=list)
    depth: int = 0
    ms: float | None = None
    terms: list[str] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The answer to a trial, or None, whether a worker is expected to give it, and whether a batch must end before."""

    answer: Answer | None
    is_waiting: bool = False
    is_behind: bool = False


def load_answer(trial: Trial | EngineTrial) -> Progress:
    """Return the answer to a trial, if there is one, without asking for it."""
    return _read_answer(cache.get(trial.key) or {})


def _read_answer(entry: Mapping[str, Any]) -> Progress:
    return Progress(read_as(Answer, entry["answer"]) if "answer" in entry else None)


def build_matrix(trials: Sequence[tuple[str, Trial]]) -> dict[str, Any]:
    """Return the smallest matrix with the configurations of trials, each with the name of its index."""
    runs = [replace(trial.configuration, index=name) for name, trial in trials]
    top_k = min(run.top_k for run in runs)
    cutoffs = [cutoff for cutoff in DEFAULT_CUTOFFS if cutoff <= top_k] or [top_k]
    matrix = {"k_values_for_metrics": cutoffs, "primary_k": min(DEFAULT_PRIMARY_K, top_k)}
    for key, axis in BY_KEY.items():
        values = list(dict.fromkeys(getattr(run, axis.field) for run in runs if axis.touches(run)))
        if values and (values != [axis.default] or key == "search_modes"):
            matrix[key] = values
    return matrix


def request_answer(trial: Trial | EngineTrial, *, waits: bool = True) -> Progress:
    """Return the answer to a trial; without one, enqueue its search and wait for PATIENCE_SECONDS.

    Unless the user `waits` for it already, an earlier error is forgotten, and each earlier answer of an engine.
    """
    try:
        earlier = None if waits else load_answer(trial).answer
        if earlier and (earlier.error or isinstance(trial, EngineTrial)):
            cache.delete(trial.key)
        cache.add(trial.key, {"trial": asdict(trial)}, ANSWER_SECONDS)
        entry = cache.get(trial.key) or {}
    except RedisError:
        return Progress(None)
    if "answer" in entry:
        return _read_answer(entry)
    if "is_started" in entry:
        return Progress(None, is_waiting=True, is_behind="is_behind" in entry)
    is_waiting = enqueue_once(trial.job, trial.key)
    with suppress(RedisError):
        if is_behind_batches():
            return Progress(None, is_waiting=is_waiting, is_behind=True)
        deadline = time.monotonic() + (PATIENCE_SECONDS if is_waiting else 0.0)
        while time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            if (progress := load_answer(trial)).answer:
                return progress
        return Progress(None, is_waiting=is_waiting)
    return Progress(None)


def answer(key: str, search: Callable[[dict[str, Any]], Answer]) -> None:
    """Search for the trial under a key of the cache, and store its answer there. Nothing is done twice."""
    entry = cache.get(key)
    if entry is None or "answer" in entry:
        return
    started = entry | {"is_started": True}
    cache.set(key, started, SEARCH_SECONDS)
    try:
        wait = _build_wait(lambda: cache.set(key, started | {"is_behind": True}, SEARCH_SECONDS))
        with lock_host(alone=False, wait=wait):  # times that an isolated benchmark measures stay valid
            cache.set(key, started, SEARCH_SECONDS)
            result = search(entry["trial"])
    except Exception as error:
        log.exception("Could not search for %s.", key)
        result = Answer(error_text(error))
    cache.set(key, entry | {"answer": asdict(result)}, ANSWER_SECONDS)


def _build_wait(report: Callable[[], object]) -> Callable[[float], None]:
    deadline = time.monotonic() + HOST_SECONDS

    def wait(seconds: float) -> None:
        report()
        if time.monotonic() > deadline:
            raise TrialError("An isolated benchmark runs alone on the worker's host: try again after it has ended.")
        time.sleep(seconds)

    return wait
