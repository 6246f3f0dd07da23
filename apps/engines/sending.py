"""One question to an engine: its requests page by page, with retries, and the hits of their answers."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import requests
import stamina
from django.utils import timezone

from apps.engines.answers import Hit, map_answer, parse_body
from apps.engines.deadlines import Deadline
from apps.engines.errors import AnswerError, EngineError, EngineTimeoutError, TemporaryEngineError
from apps.engines.guards import Request, Response, fetch, open_session
from apps.engines.pacing import Pacer, Slot
from apps.engines.records import Engine
from apps.engines.secrets import Secret
from apps.engines.storing import Question, Reply
from apps.engines.templates import ANY_WORD, fill, fill_address, fill_text, format_text, join_any_word

ATTEMPTS = 4
BACKOFF_SECONDS = 0.25  # before the second attempt; doubled for each further one, plus up to as much at random
MAX_BACKOFF_SECONDS = 8.0
JSON_TYPE = {"Content-Type": "application/json"}
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a ranking: how many hits it may have, and its number from 0."""

    size: int
    number: int


def build_request(
    engine: Engine, parameters: Mapping[str, Any], question: Question, page: Page, secret: Secret
) -> Request:
    """Return the request for a page of a question. Raises EngineError for values that no address can have."""
    values = {
        **parameters,
        "query": question.text,
        ANY_WORD: join_any_word(question.text),
        "filters": dict(question.filters),
        "vector": question.vector,
        "size": page.size,
        "offset": page.number * page.size,
        "page": page.number + 1,
        "page0": page.number,
    }
    try:
        url = fill_address(engine.url, values)
    except ValueError as error:
        raise EngineError(f"The engine {engine.alias}: {error}.") from None
    if engine.query:
        url += ("&" if "?" in url else "?") + _encode(fill(engine.query, values))
    headers, body = {}, None
    if engine.body is not None:
        headers, body = JSON_TYPE, json.dumps(fill(engine.body, values), ensure_ascii=False).encode()
    elif engine.form is not None:
        headers, body = FORM_TYPE, _encode(fill(engine.form, values)).encode()
    with_secret = {**values, "secret": secret.reveal()}
    declared = {name: fill_text(text, with_secret) for name, text in engine.headers.items()}
    return Request(engine.method, url, {**headers, **declared}, body)


def _encode(fields: Mapping[str, Any]) -> str:
    """Return fields of an address or form: null is left out, a list repeats its field."""
    pairs = []
    for name, value in fields.items():
        values = value if isinstance(value, list) else [value]
        pairs += [(name, format_text(each)) for each in values if each is not None]
    return urlencode(pairs, quote_via=quote)


def list_pages(engine: Engine, depth: int) -> Iterator[Page]:
    size = min(engine.page_size, depth)
    for number in range(-(-depth // size)):
        yield Page(size, number)


class Sender:
    """A thread's way to an engine: a session, a slot, and the request that it is sending."""

    def __init__(self, engine: Engine, parameters: Mapping[str, Any], depth: int, secret: Secret, pacer: Pacer) -> None:
        self._engine, self._parameters, self._depth, self._secret = engine, parameters, depth, secret
        self._slot = Slot(pacer)
        self._session: requests.Session = open_session(private=engine.private, ca_file=engine.ca_file)
        self._deadline = Deadline()

    def ask(self, question: Question, due: float, attempts: int) -> Reply:
        """Return the reply to a question that was `due` at a time of the performance counter.

        Raises EngineError, and StoppedError if the caller stops.
        """
        asked_at, total = timezone.now(), None
        hits: list[Hit] = []
        service_ms, retries, answered = 0.0, 0, due
        for page in list_pages(self._engine, self._depth):
            response, repeated = self._fetch(self.build_request(question, page), attempts)
            answered = time.perf_counter()
            service_ms, retries = service_ms + response.ms, retries + repeated
            page_hits, total = self._map(response, page, len(hits))
            hits += page_hits
            if len(page_hits) != page.size:
                break
        waiting_ms = max(0.0, (answered - due) * 1000 - service_ms)
        return Reply(tuple(hits[: self._depth]), total, service_ms, waiting_ms, retries, asked_at)

    def build_request(self, question: Question, page: Page) -> Request:
        return build_request(self._engine, self._parameters, question, page, self._secret)

    def expire(self) -> None:
        """End the current request, from another thread."""
        self._deadline.expire()

    def close(self) -> None:
        self._session.close()
        self._slot.leave()

    def _fetch(self, request: Request, attempts: int) -> tuple[Response, int]:
        """Return the response, and how often the request was repeated."""
        context = stamina.retry_context(
            on=find_backoff,
            attempts=attempts,
            timeout=None,
            wait_initial=BACKOFF_SECONDS,
            wait_max=MAX_BACKOFF_SECONDS,
            wait_jitter=BACKOFF_SECONDS,
        )
        for attempt in context:
            with attempt:
                self._slot.enter()
                self._deadline = Deadline()
                response = fetch(
                    self._session,
                    request,
                    self._engine.limits,
                    subject=f"The engine {self._engine.alias}",
                    secret=self._secret,
                    deadline=self._deadline,
                )
        return response, attempt.num - 1

    def _map(self, response: Response, page: Page, before: int) -> tuple[list[Hit], int | None]:
        try:
            hits, total = map_answer(parse_body(response.body), self._engine.paths)
        except AnswerError as error:
            message = f"The engine {self._engine.alias} gave an answer that cannot be used. {error.message}"
            raise AnswerError(message, path=error.path, looked_at=error.looked_at) from None
        missing = total is not None and total > before + len(hits)
        if missing and len(hits) < page.size:
            raise AnswerError(
                f"The engine {self._engine.alias} returned {len(hits)} of {page.size} hits though it counts {total:,}: "
                f"lower page_size to what it returns, or leave out answer.total.",
                path=self._engine.answer.total,
            )
        return hits, total


def find_backoff(error: Exception) -> bool | float:
    """Return whether a request is repeated after an error, or in how many seconds."""
    if not isinstance(error, TemporaryEngineError) or isinstance(error, EngineTimeoutError):
        return False
    return True if error.retry_after is None else error.retry_after
