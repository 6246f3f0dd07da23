"""Search engines asked for the queries of a batch: their answers as lists of documents of a collection."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from apps.benchmarks.defining.engines import describe_engine
from apps.benchmarks.running.latencies import LATENCIES, Loop, Timed, build_record
from apps.benchmarks.running.outcomes import BatchNotes, Outcome, note
from apps.collections.models import Collection, list_live
from apps.collections.stubs import LONGEST_ID, add_titled_ids
from apps.datasets.models import Query
from apps.engines.asking import ask_all
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineDownError, EngineError, UnsentError
from apps.engines.records import Engine
from apps.engines.storing import Question, Reply
from apps.retrieval.encoders.encoding import embed_queries
from apps.retrieval.encoders.registry import load_encoder
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.stages import EngineStage
from benchbench.ir.records import ScoredList

# Notes of a stage: a number; lists of sentences, and of what is known of the engine
RETRIES, DOWN, DECLARED = "retries", "down", "declared"
Replies = list[Reply | EngineError]


@dataclass(eq=False)
class EngineDesk:
    """Asks engines for a benchmark over `collection`.

    Answers that were stored after `since` are used instead of asking again. `check` may raise, to stop the work.
    """

    collection: Collection
    since: datetime
    check: Callable[[], None] = lambda: None
    notes: BatchNotes = field(default_factory=dict)
    _prepared: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    _waiting: dict[int, float | None] = field(default_factory=dict)

    def ask(self, stage: EngineStage, queries: Sequence[Query], *, afresh: bool = False) -> list[Outcome]:
        """Return the outcome of each query: its documents by primary key, in the order of the engine."""
        keys = [(stage.key, query.pk) for query in queries]
        if all(key in self._prepared for key in keys):
            return [self._prepared[key] for key in keys]
        return self._ask(stage, queries, since=datetime.now(self.since.tzinfo) if afresh else self.since)

    def ask_in_loop(self, stage: EngineStage, queries: Sequence[Query], loop: Loop) -> Mapping[int, float | None]:
        """Ask in an open loop, where nothing stored is used; `ask` then returns the first outcome of each query.

        Return by the number of the query the milliseconds that its first request waited, None without an answer.
        """
        outcomes = self._ask(stage, queries, since=datetime.now(self.since.tzinfo), loop=loop)
        pairs = list(zip(loop.schedule, outcomes, strict=True))
        self._prepared = {(stage.key, queries[number].pk): outcome for number, outcome in reversed(pairs)}
        return self._waiting

    def forget(self) -> None:
        """Drop the outcomes of an open loop."""
        self._prepared, self._waiting = {}, {}

    def _ask(
        self, stage: EngineStage, queries: Sequence[Query], *, since: datetime, loop: Loop | None = None
    ) -> list[Outcome]:
        setting, rate = EngineSetting.parse(stage.engine), loop.rate if loop else None
        order = loop.schedule if loop else range(len(queries))
        try:
            engine = load_engine(setting.alias)
            questions, encode_ms = _build_questions(engine, queries)
            requests = [questions[number] for number in order]
            replies = ask_all(setting, requests, stage.depth, since=since, rate=rate, check=self.check)
        except EngineError as error:  # the declaration was changed meanwhile
            return [Outcome(error=error.message)] * len(order)
        self.notes.setdefault(stage.key, {})[DECLARED] = [describe_engine(engine, setting)]
        self._note(stage, replies)
        if loop:
            self._note_latencies(loop, replies, encode_ms, min(engine.concurrency, len(order)))
        documents = self._find_documents(engine, replies)
        return [
            Outcome(error=str(reply)) if isinstance(reply, EngineError) else _build_outcome(reply, documents, encode_ms)
            for reply in replies
        ]

    def _note(self, stage: EngineStage, replies: Replies) -> None:
        answered = [reply for reply in replies if isinstance(reply, Reply)]
        if retries := sum(reply.retries for reply in answered):
            note(self.notes, stage.key, RETRIES, retries)
        if down := next((reply for reply in replies if isinstance(reply, EngineDownError)), None):
            note(self.notes, stage.key, DOWN, [str(down)])

    def _note_latencies(self, loop: Loop, replies: Replies, encode_ms: float, threads: int) -> None:
        """Note the latencies of a loop. Queries are encoded before it; each answer's service includes the mean time."""
        answered = [reply for reply in replies if isinstance(reply, Reply)]
        pairs = reversed(list(zip(loop.schedule, replies, strict=True)))
        self._waiting = {number: reply.waiting_ms if isinstance(reply, Reply) else None for number, reply in pairs}
        ends = (reply.asked_at.timestamp() + reply.service_ms / 1000 for reply in answered)
        timed = [
            Timed(reply.waiting_ms, reply.service_ms + encode_ms, end)
            for reply, end in zip(answered, ends, strict=True)
        ]
        sent = sum(not isinstance(reply, UnsentError) for reply in replies)
        note(self.notes, loop.run_key, LATENCIES, [build_record(loop, timed, sent=sent, threads=threads)])

    def _find_documents(self, engine: Engine, replies: Replies) -> Mapping[str, int]:
        """Return the primary key of each document that the engine named, by its id or URI in the answers.

        A collection of ids alone takes every id, and the engine's title of the document. Of several documents with one
        URI, the first has the rank.
        """
        titles = {hit.id: hit.title for reply in replies if isinstance(reply, Reply) for hit in reply.hits}
        column = engine.document.by
        if self.collection.kind == Collection.Kind.EXTERNAL and column == "external_id":
            possible = sorted(
                one for one in titles if len(one) <= LONGEST_ID
            )  # one order, or two workers could deadlock
            return add_titled_ids(self.collection, {one: titles[one] for one in possible}) if possible else {}
        documents = list_live(self.collection).filter(**{f"{column}__in": titles.keys()}).order_by("-pk")
        return dict(documents.values_list(column, "pk"))


def _build_questions(engine: Engine, queries: Sequence[Query]) -> tuple[list[Question], float]:
    """Return what to ask, with vectors if the engine needs them, and the milliseconds per query of encoding."""
    vectors: Sequence[list[float] | None] = [None] * len(queries)
    started = time.perf_counter()
    if engine.encoder and queries:
        vectors = embed_queries(load_encoder(engine.encoder), [query.text for query in queries], "query")[0].tolist()
    ms = (time.perf_counter() - started) * 1000 / max(len(queries), 1) if engine.encoder else 0.0
    pairs = zip(queries, vectors, strict=True)
    return [Question(query.text, query.filters, vector) for query, vector in pairs], ms


def _build_outcome(reply: Reply, documents: Mapping[str, int], encode_ms: float) -> Outcome:
    """Return the list of a reply: each document once, at its first rank. Its time is the round trip, and encoding."""
    if missing := next((hit.id for hit in reply.hits if hit.id not in documents), None):
        return Outcome(
            error=f"The engine named the document {missing[:80]!r}, which the collection does not have: import it, "
            "or correct `document` in the declaration of the engine."
        )
    ids = np.array(list(dict.fromkeys(documents[hit.id] for hit in reply.hits)), np.int64)
    return Outcome(ScoredList(ids, 1 / np.arange(1, len(ids) + 1)), reply.service_ms + encode_ms)
