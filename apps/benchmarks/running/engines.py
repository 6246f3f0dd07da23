"""Search engines asked for the queries of a batch: their answers as lists of documents of a collection."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from apps.benchmarks.defining.engines import describe_engine
from apps.benchmarks.running.outcomes import BatchNotes, Outcome, note
from apps.benchmarks.running.timing import LEAST_FOR_P99
from apps.collections.models import Collection, list_live
from apps.collections.stubs import LONGEST_ID, add_titled_ids
from apps.datasets.models import Query
from apps.engines.asking import ask_all
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineDownError, EngineError
from apps.engines.records import Engine
from apps.engines.storing import Question, Reply
from apps.retrieval.encoders.encoding import embed_queries
from apps.retrieval.encoders.registry import load_encoder
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.stages import EngineStage
from benchbench.ir.records import ScoredList

# Notes of a stage: a number; lists of histograms, of sentences, and of what is known of the engine
RETRIES, LATENCIES, DOWN, DECLARED = "retries", "latencies", "down", "declared"
TIMES = ("latency", "service", "waiting")
LONGEST_US, DIGITS = 3_600_000_000, 3  # range of a histogram in microseconds, and its significant digits
Replies = list[Reply | EngineError]


@dataclass(eq=False)
class EngineDesk:
    """Asks engines for a benchmark over `collection`.

    Answers that were stored after `since` are used instead of asking again. With a `rate`, in requests per second,
    requests are sent in an open loop, and nothing stored is used. `check` may raise, to stop the work.
    """

    collection: Collection
    since: datetime
    rate: float | None = None
    check: Callable[[], None] = lambda: None
    notes: BatchNotes = field(default_factory=dict)
    _prepared: dict[tuple[str, int], Outcome] = field(default_factory=dict)

    def ask(self, stage: EngineStage, queries: Sequence[Query], *, afresh: bool = False) -> list[Outcome]:
        """Return the outcome of each query: its documents by primary key, in the order of the engine."""
        keys = [(stage.key, query.pk) for query in queries]
        if all(key in self._prepared for key in keys):
            return [self._prepared[key] for key in keys]
        return self._ask(stage, queries, since=datetime.now(self.since.tzinfo) if afresh else self.since)

    def prepare(self, stages: Iterable[EngineStage], queries: Sequence[Query]) -> None:
        """Ask in an open loop for all queries of each stage; `ask` then returns these outcomes."""
        self._prepared = {}
        for stage in stages:
            outcomes = self._ask(stage, queries, since=datetime.now(self.since.tzinfo), rate=self.rate)
            self._prepared |= {(stage.key, query.pk): one for query, one in zip(queries, outcomes, strict=True)}

    def _ask(
        self, stage: EngineStage, queries: Sequence[Query], *, since: datetime, rate: float | None = None
    ) -> list[Outcome]:
        setting = EngineSetting.parse(stage.engine)
        try:
            engine = load_engine(setting.alias)
            questions, encode_ms = _build_questions(engine, queries)
            replies = ask_all(setting, questions, stage.depth, since=since, rate=rate, check=self.check)
        except EngineError as error:  # the declaration was changed meanwhile
            return [Outcome(error=error.message)] * len(queries)
        self.notes.setdefault(stage.key, {})[DECLARED] = [describe_engine(engine, setting)]
        self._note(stage, replies, timed=rate is not None)
        documents = self._find_documents(engine, replies)
        return [
            Outcome(error=str(reply))
            if isinstance(reply, EngineError)
            else _build_outcome(reply, documents, encode_ms + (reply.waiting_ms if rate else 0.0))
            for reply in replies
        ]

    def _note(self, stage: EngineStage, replies: Replies, *, timed: bool) -> None:
        answered = [reply for reply in replies if isinstance(reply, Reply)]
        if retries := sum(reply.retries for reply in answered):
            note(self.notes, stage.key, RETRIES, retries)
        if down := next((reply for reply in replies if isinstance(reply, EngineDownError)), None):
            note(self.notes, stage.key, DOWN, [str(down)])
        if timed:
            note(self.notes, stage.key, LATENCIES, [build_histograms(answered)])

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


def _build_outcome(reply: Reply, documents: Mapping[str, int], more_ms: float) -> Outcome:
    """Return the list of a reply: each document once, at its first rank. Its time is the round trip as seen from here.

    `more_ms` are those of encoding and, in an open loop, from the moment when the request was due.
    """
    if missing := next((hit.id for hit in reply.hits if hit.id not in documents), None):
        return Outcome(
            error=f"The engine named the document {missing[:80]!r}, which the collection does not have: import it, "
            "or correct `document` in the declaration of the engine."
        )
    ids = np.array(list(dict.fromkeys(documents[hit.id] for hit in reply.hits)), np.int64)
    return Outcome(ScoredList(ids, 1 / np.arange(1, len(ids) + 1)), reply.service_ms + more_ms)


def build_histograms(replies: Sequence[Reply]) -> dict[str, Any]:
    """Return the latencies of an open loop as HDR histograms in base64, with the rate that was reached."""
    histograms = {name: HdrHistogram(1, LONGEST_US, DIGITS) for name in TIMES}
    for reply in replies:
        values = (reply.waiting_ms + reply.service_ms, reply.service_ms, reply.waiting_ms)
        for name, ms in zip(TIMES, values, strict=True):
            histograms[name].record_value(max(1, min(round(ms * 1000), LONGEST_US)))
    sent = sorted(reply.asked_at.timestamp() for reply in replies)
    reached = (len(sent) - 1) / (sent[-1] - sent[0]) if len(sent) > 1 and sent[-1] > sent[0] else None
    return {name: histogram.encode().decode() for name, histogram in histograms.items()} | {"rate": reached}


def merge_histograms(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return p50, p95 and the maximum in milliseconds of each time of an open loop, over all its batches.

    From LEAST_FOR_P99 requests on it has p99 too. `rate` is the mean of the rates that the batches reached, weighted by
    their requests.
    """
    summary: dict[str, Any] = {}
    for name in TIMES:
        total_histogram = HdrHistogram(1, LONGEST_US, DIGITS)
        for batch in batches:
            total_histogram.decode_and_add(batch[name])
        p99 = {"p99": 99} if total_histogram.total_count >= LEAST_FOR_P99 else {}
        shares = {"p50": 50, "p95": 95, **p99, "max": 100}
        summary[f"{name}_ms"] = {
            key: total_histogram.get_value_at_percentile(share) / 1000 for key, share in shares.items()
        }
        summary["requests"] = total_histogram.total_count
    reached = [(batch["rate"], HdrHistogram.decode(batch["latency"]).total_count) for batch in batches if batch["rate"]]
    total = sum(count for _, count in reached)
    return summary | {"rate": sum(rate * count for rate, count in reached) / total if total else None}
