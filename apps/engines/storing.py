"""Stored answers of search engines: found again by the same question, and trimmed by their size."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from operator import itemgetter

from django.conf import settings
from django.db import connection

from apps.collections.models import Document
from apps.engines.answers import Hit
from apps.engines.models import EngineAnswer
from apps.engines.records import Engine
from benchbench.database.ordered import retry_deadlocks
from benchbench.timestamps import timestamp

DECIDING = (
    "url",
    "method",
    "headers",
    "query",
    "body",
    "form",
    "page_size",
    "encoder",
    "query_prompt",
    "document",
    "answer",
)
# An array: PostgreSQL may evaluate an IN (…) again for each row, and would then delete more than the limit.
TRIM = """
    DELETE FROM engines_engineanswer WHERE id = ANY(ARRAY(
        SELECT id FROM engines_engineanswer JOIN (
            SELECT id, sum(octet_length(text) + pg_column_size(hits)) OVER (ORDER BY asked_at DESC, id DESC) AS bytes
            FROM engines_engineanswer
        ) AS sizes USING (id) WHERE bytes > %s ORDER BY key FOR UPDATE OF engines_engineanswer SKIP LOCKED
    ))
"""
# One JSON text for all rows: Django would make an array of texts, and escape each quotation mark in Python.
STORE = """
    INSERT INTO engines_engineanswer
        (key, engine, version, parameters, depth, text, filters, hits, total, service_ms, retries, asked_at)
    SELECT key, engine, version, parameters, depth, text, filters, hits, total, service_ms, retries, asked_at
    FROM jsonb_populate_recordset(NULL::engines_engineanswer, %s)
    ON CONFLICT (key) DO UPDATE SET (hits, total, service_ms, retries, asked_at) =
        (excluded.hits, excluded.total, excluded.service_ms, excluded.retries, excluded.asked_at)
"""


@dataclass(frozen=True, slots=True)
class Search:
    """An engine with all its parameters, asked for lists of `depth` hits."""

    engine: Engine
    parameters: Mapping[str, object]
    depth: int


@dataclass(frozen=True, slots=True)
class Question:
    """A query to ask: its text, filters, and vector for an engine with an encoder."""

    text: str
    filters: Mapping[str, object] = field(default_factory=dict)
    vector: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. Hits are in the engine's order; a document may occur twice if the engine gives it twice.

    `service_ms` is the round trip of the successful requests, one for each page. `waiting_ms` is the other time from
    the moment when the question was due: pace, other questions, failed attempts. It is 0 for a stored answer.
    """

    hits: tuple[Hit, ...]
    total: int | None
    service_ms: float
    waiting_ms: float
    retries: int
    asked_at: datetime
    is_stored: bool = False


def build_keys(search: Search, questions: Sequence[Question]) -> list[str]:
    """Return the keys of answers: SHA-256 over all that decides each. A new declared version gives new keys."""
    engine = search.engine
    declared = {name: value for name, value in asdict(engine).items() if name in DECIDING}
    shared = [engine.alias, engine.version, declared, dict(search.parameters), search.depth]
    prefix = sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()
    return [
        sha256(json.dumps([prefix, question.text, dict(question.filters)], sort_keys=True).encode()).hexdigest()
        for question in questions
    ]


def find_replies(keys: Sequence[str], since: datetime) -> list[Reply | None]:
    """Return the stored answers of keys; None for a key without an answer since then."""
    answers = EngineAnswer.objects.filter(key__in=keys, asked_at__gte=since)
    replies = {
        each.key: Reply(_read_hits(each), each.total, each.service_ms, 0.0, each.retries, each.asked_at, is_stored=True)
        for each in answers
    }
    return [replies.get(key) for key in keys]


def find_snippet(text: str, document: Document) -> str:
    """Return what an engine last showed of a document of which only the id is here; "" for another document."""
    if document.text:
        return ""
    answers = EngineAnswer.objects.filter(text=text, hits__contains=[[document.external_id]]).order_by("-asked_at")
    hits = (hit for answer in answers[:1] for hit in _read_hits(answer))
    return next((hit.snippet for hit in hits if hit.id == document.external_id), "")


def _read_hits(answer: EngineAnswer) -> tuple[Hit, ...]:
    return tuple(Hit(*hit) for hit in answer.hits)


def store_replies(search: Search, replies: Mapping[str, tuple[Question, Reply]]) -> None:
    """Store replies by their keys. Each replaces the earlier answer of its key.

    They are stored in the order of their keys: workers with the same questions get answers in different orders.
    """
    engine, parameters = search.engine, dict(search.parameters)
    shared = {"engine": engine.alias, "version": engine.version, "parameters": parameters, "depth": search.depth}
    rows = [
        shared
        | {"key": key, "text": question.text, "filters": dict(question.filters)}
        | {name: getattr(reply, name) for name in ("total", "service_ms", "retries")}
        | {"hits": [_shorten(hit) for hit in reply.hits], "asked_at": timestamp(reply.asked_at)}
        for key, (question, reply) in sorted(replies.items(), key=itemgetter(0))
    ]
    text = json.dumps(rows)

    def store() -> None:
        with connection.cursor() as cursor:
            cursor.execute(STORE, [text])

    retry_deadlocks(store)


def _shorten(hit: Hit) -> tuple[object, ...]:
    """Return a hit without its last fields if they are empty."""
    return hit if hit.snippet else hit[:3] if hit.title else hit[:2]


def trim_answers() -> int:
    """Delete the oldest answers above BENCHBENCH_ENGINE_CACHE_BYTES. Return their number."""
    with connection.cursor() as cursor:
        cursor.execute(TRIM, [settings.BENCHBENCH_ENGINE_CACHE_BYTES])
        return int(cursor.rowcount)
