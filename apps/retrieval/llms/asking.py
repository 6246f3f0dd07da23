"""Asking a language model: usable answers are stored, passing errors retried, a server that is down left alone."""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.llms.answers import answers_not_kept, answers_passed_by, find_answer, keep_answer
from apps.retrieval.llms.clients import LLM, LLMError, PassingLLMError, Reply
from apps.retrieval.llms.servers import ASKS, checked_llm, load_llm, require_model, servers
from apps.retrieval.models import Index, LLMAnswer
from benchbench.calls import calling
from benchbench.ir.planning.query_text import MAX_TOKENS, QueryText

REQUESTS = 30  # the latest requests that are counted,
SECONDS = 300.0  # or fewer, as soon as they took so long together,
LEAST = 5  # but at least so many
SHARE = 0.9  # of them that failed, from which on the server is left alone
BREAK_SECONDS = 30


@dataclass(slots=True)
class Breaker:
    """Opens when at least SHARE of a server's latest requests failed for good, after their retries.

    The window is of requests, so that a server that refuses some queries in a row is asked the others too, and bounded
    in seconds, so that a server whose every request runs into its time limit costs minutes and not hours. A refusal
    that no retry can mend (a wrong key, a prompt that is too long) counts neither way. After BREAK_SECONDS one request
    decides: it closes the breaker or opens it again. Times are those of the monotonic clock.
    """

    requests: deque[tuple[bool, float]] = field(default_factory=lambda: deque(maxlen=REQUESTS))  # failed, seconds
    reason: str = ""  # why it is open, or was before the request that decides; "" while it is closed
    open_until: float = 0.0

    def check(self, server: str, now: float) -> None:
        """Raise LLMError while the server is left alone."""
        if now < self.open_until:
            raise LLMError(
                f"The language model server {server} is not asked for {BREAK_SECONDS} seconds, because it failed "
                f"{self.reason}: start it or look at its log, then retry what failed."
            )

    def record_success(self) -> None:
        if self.reason:
            self.requests.clear()
            self.reason = ""
        self.requests.append((False, 0.0))

    def record_failure(self, seconds: float, now: float) -> None:
        """Count a request that failed for good after some seconds, and open where that is one too many."""
        self.requests.append((True, seconds))
        window = self._window()
        failed = sum(has_failed for has_failed, _ in window)
        if self.reason or (window and failed >= SHARE * len(window)):
            if window:
                self.reason = f"{failed} of its latest {len(window)} requests ({failed / len(window):.0%})"
            self.open_until = now + BREAK_SECONDS

    def _window(self) -> list[tuple[bool, float]]:
        """The requests that count, the latest first; none while they are too few to tell."""
        window: list[tuple[bool, float]] = []
        seconds = 0.0
        for request in reversed(self.requests):
            window.append(request)
            seconds += request[1]
            if len(window) >= REQUESTS or (len(window) >= LEAST and seconds >= SECONDS):
                return window
        return []


ATTEMPTS = 3
BACKOFF_SECONDS = 0.5  # before the second attempt; twice as long before each further one
UNKNOWN = "unknown"
REVISION_SECONDS = 60  # for which a server is believed that a model is the one it was

Parameters = dict[str, Any]
Result = TypeVar("Result")
Accepts = Callable[[str], bool]  # whether the asker can use an answer

breakers: defaultdict[str, Breaker] = defaultdict(Breaker)  # by the name of a server
revisions: dict[tuple[str, str], tuple[str, float]] = {}  # by server and model, and until when they are believed


def ask(index: Index, prompt: str, accepts: Accepts) -> Reply:
    """Return what the language model of an index answers, as `ask_llm` does."""
    return ask_llm(index.llm, checked_llm(index.llm_parameters), prompt, accepts)


def ask_llm(model: str, parameters: Parameters, prompt: str, accepts: Accepts) -> Reply:
    """Return what a model answers, by complete `parameters` (`checked_llm`): a stored answer where there is one.

    `accepts` says whether the caller can use a text. Only such an answer is stored; any other is returned too, for the
    caller to refuse, and the model is asked again the next time. Its own `cache`, or `passing_by_answers` around the
    call, bypass what is stored. Raises LLMError.
    """
    started = time.perf_counter()
    server, told = parameters["provider"], {name: parameters[name] for name in ASKS}
    llm = load_llm(server, model)
    if answers_passed_by.get() or not parameters["cache"]:
        text, ms = _generate(llm, server, prompt, told)
        return Reply(text, ms, _since(started), False)
    known = _known(model, parameters, _revision(llm, server), prompt)
    key = fingerprint(**known)
    kept = find_answer(key)
    if kept is not None and accepts(kept.text):
        return Reply(kept.text, kept.ms, _since(started), True)
    text, ms = _generate(llm, server, prompt, told)
    if answers_not_kept.get() or not accepts(text):
        return Reply(text, ms, _since(started), False)
    if kept is not None:  # an answer that another way of reading it accepted
        kept.delete()
    kept = keep_answer(LLMAnswer(key=key, text=text, ms=ms, **known))
    return Reply(kept.text, kept.ms, _since(started), False)


def _known(model: str, parameters: Parameters, revision: str, prompt: str) -> dict[str, Any]:
    """What an answer is known by. In another context the server may cut the prompt elsewhere; where it tells no
    revision, another address may be another model.
    """
    server, told = parameters["provider"], {name: parameters[name] for name in ASKS}
    if context := servers()[server].context:
        told["context"] = context
    if not revision:
        told["address"] = fingerprint(url=servers()[server].url)[:16]
    return {"provider": server, "model": model, "revision": revision, "prompt": prompt, "parameters": told}


def check_llm(index: Index) -> None:
    """Raise LLMError unless the server of an index's language model answers, and has that model."""
    require_model(checked_llm(index.llm_parameters)["provider"], index.llm)


def llm_revision(server: str, model: str) -> str:
    """Return what tells a model from others that had its name; UNKNOWN where its server does not say so now."""
    try:
        return _revision(load_llm(server, model), server) or UNKNOWN
    except LLMError:
        return UNKNOWN


def _revision(llm: LLM, server: str) -> str:
    """The model's revision, asked of its server at most once in REVISION_SECONDS. Raises LLMError."""
    told = revisions.get((server, llm.model_name))
    if told is None or time.monotonic() > told[1]:
        told = _asked(server, llm.revision), time.monotonic() + REVISION_SECONDS
        revisions[server, llm.model_name] = told
    return told[0]


def _generate(llm: LLM, server: str, prompt: str, told: Parameters) -> tuple[str, float]:
    """The answer, and the milliseconds of the attempt that gave it. Raises LLMError."""

    def generate() -> tuple[str, float]:
        started = time.perf_counter()
        return llm.generate(prompt, **told).replace("\0", ""), _since(started)

    answer = _asked(server, generate)
    breakers[server].record_success()
    return answer


def _asked(server: str, call: Callable[[], Result]) -> Result:
    """Return what a call of a server returns, in one of ATTEMPTS. Raises LLMError."""
    breaker, started = breakers[server], time.monotonic()
    breaker.check(server, started)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            # Its own limit is of the wait for each byte: a server that drips would be heard for ever.
            with calling(f"The language model server {server}", within=2 * servers()[server].timeout):
                return call()
        except PassingLLMError:
            if attempt == ATTEMPTS:
                now = time.monotonic()
                breaker.record_failure(now - started, now)
                raise
            time.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def rewritten(method: str, llm: str, question: str) -> tuple[tuple[str, ...], Reply]:
    """Return the texts that `llm`, such as ollama:llama3, makes of a question, and the reply that holds them.

    `method` is the text of a `QueryText`. Raises LLMError, and QueryTextError for a reply that holds too few texts.
    """
    how = QueryText.parse(method)
    model, parameters = _model_for(how, llm)
    reply = ask_llm(model, parameters, how.prompt(question), how.accepts)
    return how.texts(reply.text), reply


def kept_texts(method: str, llm: str, question: str, *, revision: str) -> tuple[str, ...]:
    """Return the texts that a revision of `llm` made of a question; none where no such answer is stored."""
    how = QueryText.parse(method)
    model, parameters = _model_for(how, llm)
    if parameters["provider"] not in servers():
        return ()
    known = _known(model, parameters, "" if revision == UNKNOWN else revision, how.prompt(question))
    answer = LLMAnswer.objects.filter(key=fingerprint(**known)).values_list("text", flat=True).first()
    return how.texts(answer) if answer is not None and how.accepts(answer) else ()


def _model_for(how: QueryText, llm: str) -> tuple[str, dict[str, Any]]:
    server, _, model = llm.partition(":")
    return model, checked_llm({"provider": server, "max_tokens": MAX_TOKENS[how.method]})
