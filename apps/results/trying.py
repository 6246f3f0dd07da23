"""Trying a query on an index: a worker searches as a benchmark does, and explains each score.

Web requests load no model, so a quick job searches. Request and answer are in the cache for a few minutes.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from django.core.cache import cache
from redis.exceptions import RedisError

from apps.datasets.models import Query
from apps.engines.declarations import load_engine
from apps.execution.running.engine_trials import ask_engine, render_trial
from apps.execution.running.open_indexes import OpenIndexes
from apps.execution.running.outcomes import Outcome
from apps.execution.running.pairs import PinnedRerankers
from apps.execution.running.rankings import build_final_lists
from apps.execution.running.stages import Stages
from apps.operations.hosts import lock_host
from apps.operations.queueing import enqueue_once, is_behind_batches
from apps.records.planning import SharedList, list_llm_indexes
from apps.retrieval.models import Index
from benchbench.errors import BenchbenchError, error_text
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.lexical import BM25, FULL_TEXT, Lexical
from benchbench.ir.planning.matrix import DEFAULT_CUTOFFS, DEFAULT_PRIMARY_K
from benchbench.ir.planning.plan import RunPlan, plan
from benchbench.ir.planning.stages import DenseStage, FuseStage, LexicalStage, RerankStage, Searching
from benchbench.ir.ranking import scale_shares
from benchbench.ir.records import ScoredList
from benchbench.reading.strict_json import dump_canonical

log = logging.getLogger(__name__)
ANSWER_TRIAL = "apps.results.tasks.answer_trial"
ANSWER_ENGINE_TRIAL = "apps.results.tasks.answer_engine_trial"
MAX_HITS = 10
MAX_TERMS = 100  # of a document that are shown
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
class Progress:
    """The answer to a trial, or None, whether a worker is expected to give it, and whether a batch must end before."""

    answer: dict[str, Any] | None
    is_waiting: bool = False
    is_behind: bool = False


def load_answer(trial: Trial | EngineTrial) -> Progress:
    """Return the answer to a trial, if there is one, without asking for it."""
    return Progress((cache.get(trial.key) or {}).get("answer"))


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
        if earlier and (earlier["error"] or isinstance(trial, EngineTrial)):
            cache.delete(trial.key)
        cache.add(trial.key, {"trial": asdict(trial)}, ANSWER_SECONDS)
        entry = cache.get(trial.key) or {}
    except RedisError:
        return Progress(None)
    if "answer" in entry:
        return Progress(entry["answer"])
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


def answer(key: str, search: Callable[[dict[str, Any]], dict[str, object]]) -> None:
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
        result = {"error": error_text(error), "hits": []}
    cache.set(key, entry | {"answer": result}, ANSWER_SECONDS)


def _build_wait(report: Callable[[], object]) -> Callable[[float], None]:
    deadline = time.monotonic() + HOST_SECONDS

    def wait(seconds: float) -> None:
        report()
        if time.monotonic() > deadline:
            raise TrialError("An isolated benchmark runs alone on the worker's host: try again after it has ended.")
        time.sleep(seconds)

    return wait


def search_engine(trial: EngineTrial) -> dict[str, object]:
    """Ask an engine as a benchmark does; `text` shows the request, the answer and its hits, or what it lacks."""
    engine = load_engine(trial.alias)
    outcome = ask_engine(engine, trial.text, {}, trial.depth)
    error = outcome.error.message if outcome.error else ""
    return {"text": render_trial(outcome, engine, trial.depth), "error": error}


def search(trial: Trial) -> dict[str, Any]:
    """Search as a benchmark of the trial's configuration does, and return the first documents as JSON values.

    Each of `hits` has a document, its first chunk, the score, how each stage came to its score, and the first terms
    that lexical search has of the chunk. `terms` are those of the query; None without lexical search. `depth` is the
    number of documents of the whole ranking. `error` is not empty if the search failed. Raises TrialError.
    """
    index = Index.objects.select_related("chunk_set", "lexical_index", "collection").filter(pk=trial.index_id).first()
    if index is None or list_llm_indexes({None: index}):
        raise TrialError("The index was deleted, or its strategy asks a language model: choose another index.")
    planned = plan([("", trial.configuration)])
    indexes = OpenIndexes({None: index})
    stages = Stages([Query(pk=0, text=trial.text)], indexes, PinnedRerankers(), tolerant=True)
    outcomes = stages.run(planned)
    (run,) = planned.runs
    (final,) = build_final_lists([SharedList(0, (run,))], outcomes, [0], indexes, max_k=1)
    count = min(final.lengths[0], MAX_HITS)
    is_lexical = not final.facts.error and any(isinstance(stage, LexicalStage) for stage in run.stages)
    setting = Lexical.parse(trial.lexical)
    bm25 = indexes[None].words.load_bm25(setting) if is_lexical and setting.engine == BM25 else None
    analyze = bm25.analyzer.analyze if bm25 else None
    terms = analyze(trial.text) if analyze else None
    if final.facts.error or final.chunk_ids is None or not count:
        return {"error": final.facts.error, "hits": [], "depth": 0, "terms": terms}
    first = np.arange(count) if final.chunk_ranks is None else final.chunk_ranks[:count] - 1
    lists = _read_lists(run, outcomes)
    positions = lists[run.final].ids[first].tolist()
    words = bm25.explain(trial.text, positions) if bm25 else [[] for _ in positions]
    explained = explain(run, lists, words, positions)
    texts = indexes[None].load_texts(positions)
    document_terms = [analyze(text)[:MAX_TERMS] if analyze else [] for text in texts]
    columns = final.document_ids[:count].tolist(), final.chunk_ids[first].tolist(), final.scores[first].tolist()
    names = ("document", "chunk", "score", "steps", "terms")
    hits = [dict(zip(names, row, strict=True)) for row in zip(*columns, explained, document_terms, strict=True)]
    ms = final.facts.timings.get("total_ms")
    return {"error": "", "hits": hits, "depth": final.lengths[0], "ms": ms, "terms": terms}


def _read_lists(run: RunPlan, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, ScoredList]:
    """Return the part of each stage's list that the run reads."""
    return {
        stage.key: outcomes[stage.key][0].value.head(run.candidates)
        for stage in run.stages
        if isinstance(stage, Searching)
    }


def explain(
    run: RunPlan, lists: Mapping[str, ScoredList], words: Sequence[Terms], positions: Sequence[int]
) -> list[list[dict[str, Any]]]:
    """Return for each chunk of `positions` its rank and score after each stage, and the terms that the score sums.

    Terms are the matching words of a lexical score, in `words` for each chunk, and the fused ranks of a hybrid one; a
    similarity is not a sum.
    """
    ranks = {key: {chunk: rank for rank, chunk in enumerate(ranked.ids.tolist(), 1)} for key, ranked in lists.items()}
    names = {stage.key: stage.name for stage in run.stages}

    def build_step(stage: Searching, position: int, matches: Terms) -> dict[str, object]:
        rank = ranks[stage.key].get(position)
        step: dict[str, object] = {"name": stage.name, "rank": rank, "kind": KINDS.get(type(stage), ""), "terms": []}
        if rank is None:
            return step
        if isinstance(stage, LexicalStage):
            step["terms"] = matches
            step["kind"] = "ts_rank" if stage.lexical.startswith(FULL_TEXT) else "BM25"
        elif isinstance(stage, FuseStage):
            found_at = {names[key]: (lists[key], ranks[key].get(position)) for key in stage.needs}
            step["terms"] = explain_fusion(stage, found_at)
        return step | {"score": float(lists[stage.key].scores[rank - 1])}

    return [
        [build_step(stage, position, matches) for stage in run.stages if isinstance(stage, Searching)]
        for position, matches in zip(positions, words, strict=True)
    ]


KINDS: dict[type, str] = {
    DenseStage: "similarity",
    RerankStage: "late interaction",
}


def explain_fusion(stage: FuseStage, listed: Mapping[str, tuple[ScoredList, int | None]]) -> Terms:
    """Return what each list, with the rank in it, adds to a fused score, as `rrf` and `weighted` compute it."""
    if stage.weights:
        return [
            (f"{weight:g} of {name} rank {rank}", weight * scale_shares(ranked.scores)[rank - 1] / sum(stage.weights))
            for (name, (ranked, rank)), weight in zip(listed.items(), stage.weights, strict=True)
            if rank and weight
        ]
    maximum, ranks = len(listed) / (stage.rrf_k + 1), {name: rank for name, (_, rank) in listed.items()}
    return [(f"{name} rank {rank}", 1 / (stage.rrf_k + rank) / maximum) for name, rank in ranks.items() if rank]
