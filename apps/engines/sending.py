"""One question to an engine: its requests page by page, with retries, and the hits of their answers."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import quote, urlencode

import stamina
from django.utils import timezone

from apps.engines.answers import Hit, map_answer, parse_body
from apps.engines.errors import AnswerError, EngineError, EngineTimeoutError, TemporaryEngineError
from apps.engines.guards import Deadline, Request, Response, fetch
from apps.engines.pacing import Slot
from apps.engines.storing import Question, Reply, Search
from apps.engines.templates import ANY_WORD, fill, fill_address, fill_text, format_text, join_any_word
from benchbench.texts.secret import HIDDEN, Secret

ATTEMPTS = 4
# Seconds before the second attempt; doubled for each further one, plus up to as much at random.
BACKOFF = {"wait_initial": 0.25, "wait_max": 8.0, "wait_jitter": 0.25}
LONGEST = 20_000  # characters of an answer that are shown


def build_request(search: Search, question: Question, size: int, number: int, secret: Secret) -> Request:
    """Return the request for a page of `size` hits, numbered from 0. Raises EngineError for an impossible address."""
    engine, values = (
        search.engine,
        {
            **search.parameters,
            "query": question.text,
            ANY_WORD: join_any_word(question.text),
            "filters": dict(question.filters),
            "vector": question.vector,
            "size": size,
            "offset": number * size,
            "page": number + 1,
            "page0": number,
        },
    )
    try:
        url = fill_address(engine.url, values)
    except ValueError as error:
        raise EngineError(f"{engine.subject}: {error}.") from None
    if engine.query:
        url += ("&" if "?" in url else "?") + _encode(fill(engine.query, values))
    headers, body = {}, None
    if engine.body is not None:
        headers = {"Content-Type": "application/json"}
        body = json.dumps(fill(engine.body, values), ensure_ascii=False).encode()
    elif engine.form is not None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = _encode(fill(engine.form, values)).encode()
    with_secret = {**values, "secret": secret.reveal()}
    declared = {name: fill_text(text, with_secret) for name, text in engine.headers.items()}
    return Request(engine.method, url, headers | declared, data=body)


def _encode(fields: Mapping[str, object]) -> str:
    """Return fields of an address or form: null is left out, a list repeats its field."""
    pairs = []
    for name, value in fields.items():
        values = value if isinstance(value, list) else [value]
        pairs += [(name, format_text(each)) for each in values if each is not None]
    return urlencode(pairs, quote_via=quote)


class Sender:
    """A thread's way to an engine: a slot, and the request that it is sending. `stop` ends all waiting."""

    def __init__(self, search: Search, secret: Secret, stop: threading.Event) -> None:
        self._search, self._engine, self._secret = search, search.engine, secret
        self._deadline = Deadline()
        self.slot = Slot(search.engine, stop)
        self.failures = 0  # requests of the latest question that failed

    def ask(self, question: Question, due: float, attempts: int) -> Reply:
        """Return the reply to a question that was `due` at a time of the performance counter.

        Raises EngineError, and StoppedError if the caller stops.
        """
        hits: list[Hit] = []
        depth, earlier = self._search.depth, None
        size = min(self._engine.page_size, depth)
        service_ms, asked_at, self.failures = 0.0, None, 0
        for number in range(-(-depth // size)):
            request = build_request(self._search, question, size, number, self._secret)
            response = self._fetch(request, attempts)
            asked_at = asked_at or timezone.now() - timedelta(milliseconds=response.ms)
            service_ms += response.ms
            page, total = self._map(response, size + 1)
            hits += page
            self._check_page(page, total, size, earlier, len(hits))
            if len(page) != size:
                break
            earlier = page
        assert asked_at is not None
        waiting_ms = max(0.0, (response.ended - due) * 1000 - service_ms)
        return Reply(tuple(hits[:depth]), total, service_ms, waiting_ms, self.failures, asked_at)

    def expire(self) -> None:
        """End the current request, from another thread."""
        self._deadline.expire()

    def _fetch(self, request: Request, attempts: int) -> Response:
        find_backoff = partial(_find_backoff, ends=time.monotonic() + self._engine.patience)
        for attempt in stamina.retry_context(on=find_backoff, attempts=attempts, timeout=None, **BACKOFF):
            with attempt:
                self.slot.enter()
                self._deadline = Deadline()
                self.failures += 1
                response = fetch(self._engine, request, self._secret, self._deadline)
                self.failures -= 1
        return response

    def _map(self, response: Response, limit: int) -> tuple[list[Hit], int | None]:
        answer, document = self._engine.answer, self._engine.document
        try:
            return map_answer(parse_body(response.body), answer, document.template, limit=limit)
        except AnswerError as error:
            message = f"{self._engine.subject} gave an answer that cannot be used. {error.message}"
            raise AnswerError(message, path=error.path, looked_at=error.looked_at) from None

    def _check_page(self, page: list[Hit], total: int | None, size: int, earlier: list[Hit] | None, count: int) -> None:
        """Raise AnswerError for a page that shows that the list would lack hits of the engine's ranking."""
        path = ""
        if total is not None and total > count and len(page) < size:
            advice, path = "lower page_size to what it returns, or leave out answer.total", self._engine.answer.total
            problem = f"returned {len(page)} of {size} hits though it counts {total:,}: {advice}"
        elif len(page) > size and count < self._search.depth:
            problem = f"returned more than {size} hits: use {{size}} in its declaration, or page_size"
        elif page and page == earlier:
            problem = "returned the same page twice: correct {offset} or {page} in its declaration"
        else:
            return
        raise AnswerError(f"{self._engine.subject} {problem}.", path=path)


def _find_backoff(error: Exception, ends: float) -> bool | float:
    """Return whether a request is repeated after an error, or in how many seconds.

    It is not if the engine wants it to wait until after its patience `ends`, a time of the monotonic clock.
    """
    if not isinstance(error, TemporaryEngineError) or isinstance(error, EngineTimeoutError):
        return False
    if error.retry_after is None:
        return True
    return error.retry_after if time.monotonic() + error.retry_after <= ends else False


@dataclass(frozen=True, slots=True)
class Trial:
    """A request whose secret is hidden, its answer, and the hits, or the path that failed on a part of the answer."""

    request: Request
    response: Response
    body: str
    hits: list[Hit]
    total: int | None
    error: AnswerError | None = None


def try_engine(search: Search, question: Question) -> Trial:
    """Ask an engine once, for the first page of the list; nothing is stored. Raises EngineError."""
    engine, secret = search.engine, search.engine.read_secret()
    size = min(engine.page_size, search.depth)
    request, displayed = (build_request(search, question, size, 0, each) for each in (secret, Secret(HIDDEN)))
    response = fetch(engine, request, secret)
    body = secret.hide(response.body.decode("utf-8", "replace"), LONGEST)
    try:
        hits, total = map_answer(parse_body(response.body), engine.answer, engine.document.template, limit=search.depth)
    except AnswerError as error:
        return Trial(displayed, response, body, [], None, error)
    return Trial(displayed, response, body, hits[: search.depth], total)
