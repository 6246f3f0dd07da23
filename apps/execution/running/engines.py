"""Search engines asked for the queries of a batch: their answers as lists of documents of a collection."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from apps.collections.models import Collection, list_live
from apps.collections.stubs import LONGEST_ID, add_titled_ids
from apps.datasets.models import Query
from apps.engines.asking import ask_all
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineDownError, EngineError, UnsentError
from apps.engines.records import Engine
from apps.engines.storing import Question, Reply
from apps.execution.running.latencies import LATENCIES, Loop, Timed, build_record
from apps.execution.running.outcomes import DOWN, BatchNotes, Outcome, note
from apps.retrieval.encoders.base import CUT, Encoder, Vectors
from apps.retrieval.encoders.encoding import embed_queries
from apps.retrieval.encoders.prompts import describe_missing_prompts
from apps.retrieval.encoders.registry import load_encoder
from benchbench.ir.encoding import EncoderParameters
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.stages import EngineStage
from benchbench.ir.records import ScoredList

# Notes of a stage: a number; lists of sentences, and of what is known of the engine
RETRIES, DECLARED, UNPROMPTED = "retries", "declared", "unprompted"
Replies = list[Reply | EngineError]


@dataclass(frozen=True, slots=True)
class EngineSearch:
    """Engines asked for documents of `collection`.

    Answers that were stored after `since` are used instead of asking again. `check` may raise, to stop the work. What
    is known of the engine, its retries and its outages are added to the `notes` of a stage. Engines are asked for
    `more` documents than the depth of a stage.
    """

    collection: Collection
    since: datetime
    check: Callable[[], None] = lambda: None
    more: int = 0

    def ask(
        self, notes: BatchNotes, stage: EngineStage, queries: Sequence[Query], *, afresh: bool = False
    ) -> list[Outcome]:
        """Return the outcome of each query: its documents by primary key, in the order of the engine."""
        since, setting = datetime.now(self.since.tzinfo) if afresh else self.since, EngineSetting.parse(stage.engine)
        try:
            engine = load_engine(setting.alias)
            questions, encode_ms = _build_questions(engine, queries)
            replies = ask_all(setting, questions, stage.depth + self.more, since=since, check=self.check)
        except EngineError as error:  # the declaration was changed meanwhile
            note(notes, stage.key, DOWN, [error.message])
            return [Outcome(error=error.message)] * len(queries)
        _note(notes, stage, engine, replies)
        _note_cut(notes, stage, engine, queries)
        return self._build_outcomes(engine, replies, encode_ms)

    def ask_in_loop(
        self, notes: BatchNotes, stage: EngineStage, queries: Sequence[Query], loop: Loop
    ) -> list[tuple[Outcome, float | None]]:
        """Ask in an open loop, where nothing stored is used, and note its latencies under the key of the run.

        Return of each query the first outcome, and the milliseconds that its first request waited, None without an
        answer.
        """
        since, setting = datetime.now(self.since.tzinfo), EngineSetting.parse(stage.engine)
        try:
            engine = load_engine(setting.alias)
            questions, encode_ms = _build_questions(engine, queries)
            requests = [questions[number] for number in loop.schedule]
            depth = stage.depth + self.more
            replies = ask_all(setting, requests, depth, since=since, rate=loop.rate, check=self.check)
        except EngineError as error:
            note(notes, stage.key, DOWN, [error.message])
            return [(Outcome(error=error.message), None)] * len(queries)
        _note(notes, stage, engine, replies)
        _note_cut(notes, stage, engine, queries)
        note(notes, loop.run_key, LATENCIES, [_build_latencies(loop, engine, replies, encode_ms)])
        outcomes = self._build_outcomes(engine, replies, encode_ms)
        waiting = [reply.waiting_ms if isinstance(reply, Reply) else None for reply in replies]
        first = {number: position for position, number in reversed(list(enumerate(loop.schedule)))}
        return [(outcomes[first[number]], waiting[first[number]]) for number in range(len(queries))]

    def _build_outcomes(self, engine: Engine, replies: Replies, encode_ms: float) -> list[Outcome]:
        documents = self._find_documents(engine, replies)
        return [
            Outcome(error=str(reply)) if isinstance(reply, EngineError) else _build_outcome(reply, documents, encode_ms)
            for reply in replies
        ]

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


def _note(notes: BatchNotes, stage: EngineStage, engine: Engine, replies: Replies) -> None:
    parameters = engine.complete(dict(EngineSetting.parse(stage.engine).parameters))
    declared = {"alias": engine.alias, "version": engine.version, "parameters": parameters}
    notes.setdefault(stage.key, {})[DECLARED] = [declared | {"concurrency": engine.concurrency}]
    if retries := sum(reply.retries for reply in replies if isinstance(reply, Reply)):
        note(notes, stage.key, RETRIES, retries)
    if engine.encoder and replies:
        remedy = f"declare, in engines.{engine.alias},"
        prompt = _load_encoder(engine).prompts["query"]
        missing = describe_missing_prompts(engine.encoder, {"query": prompt}, remedy=remedy)
        note(notes, stage.key, UNPROMPTED, [missing] if missing else [])
    if down := next((reply for reply in replies if isinstance(reply, EngineDownError)), None):
        note(notes, stage.key, DOWN, [str(down)])


def _note_cut(notes: BatchNotes, stage: EngineStage, engine: Engine, queries: Sequence[Query]) -> None:
    """Note the queries that the encoder of an engine does not read to their end."""
    cut = _load_encoder(engine).count_cut([query.text for query in queries], kind="query") if engine.encoder else None
    if cut:
        note(notes, stage.key, CUT, [queries[number].pk for number in cut.ends])


def _build_latencies(loop: Loop, engine: Engine, replies: Replies, encode_ms: float) -> dict[str, object]:
    """Return the record of a loop. Queries are encoded before it; each answer's service includes the mean time."""
    timed = [
        Timed(reply.waiting_ms, reply.service_ms + encode_ms, reply.asked_at.timestamp() + reply.service_ms / 1000)
        for reply in replies
        if isinstance(reply, Reply)
    ]
    sent = sum(not isinstance(reply, UnsentError) for reply in replies)
    return build_record(loop, timed, sent=sent, threads=min(engine.concurrency, len(replies)))


def _build_questions(engine: Engine, queries: Sequence[Query]) -> tuple[list[Question], float]:
    """Return what to ask, with vectors if the engine needs them, and the milliseconds per query of encoding."""
    vectors: Sequence[list[float] | None] = [None] * len(queries)
    started = time.perf_counter()
    if engine.encoder and queries:
        vectors = embed_for(engine, [query.text for query in queries]).tolist()
    ms = (time.perf_counter() - started) * 1000 / max(len(queries), 1) if engine.encoder else 0.0
    pairs = zip(queries, vectors, strict=True)
    return [Question(query.text, query.filters, vector) for query, vector in pairs], ms


def embed_for(engine: Engine, texts: Sequence[str]) -> Vectors:
    """Return the vectors (n, d) of queries by the encoder of an engine. Raises ModelError, EncoderError."""
    return embed_queries(_load_encoder(engine), texts, "query")[0]


def _load_encoder(engine: Engine) -> Encoder:
    return load_encoder(engine.encoder or "", EncoderParameters(query_prompt=engine.query_prompt))


def _build_outcome(reply: Reply, documents: Mapping[str, int], encode_ms: float) -> Outcome:
    """Return the list of a reply: each document once, at its first rank. Its time is the round trip, and encoding."""
    if missing := next((hit.id for hit in reply.hits if hit.id not in documents), None):
        return Outcome(
            error=f"The engine named the document {missing[:80]!r}, which the collection does not have: import it, "
            "or correct `document` in the declaration of the engine."
        )
    ids = np.array(list(dict.fromkeys(documents[hit.id] for hit in reply.hits)), np.int64)
    return Outcome(ScoredList(ids, 1 / np.arange(1, len(ids) + 1)), reply.service_ms + encode_ms)
