"""Asking a language model: usable answers are stored, passing errors retried, a server that is down left alone."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from apps.operations.workers.watchdog import GRACE_SECONDS, calling
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.llms.answers import are_kept, are_passed_by, find_answer, keep_answer
from apps.retrieval.llms.base import LLM, LLMError, PassingLLMError, Reply
from apps.retrieval.llms.breaker import Breaker
from apps.retrieval.llms.looking import require_model
from apps.retrieval.llms.servers import ASKS, checked_llm, load_llm, servers
from apps.retrieval.models import Index, LLMAnswer

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
    if are_passed_by() or not parameters["cache"]:
        text, ms = _generate(llm, server, prompt, told)
        return Reply(text, ms, _since(started), False)
    known = _known(model, parameters, _revision(llm, server), prompt)
    key = fingerprint(**known)
    kept = find_answer(key)
    if kept is not None and accepts(kept.text):
        return Reply(kept.text, kept.ms, _since(started), True)
    text, ms = _generate(llm, server, prompt, told)
    if not are_kept() or not accepts(text):
        return Reply(text, ms, _since(started), False)
    if kept is not None:  # an answer that another way of reading it accepted
        kept.delete()
    kept = keep_answer(LLMAnswer(key=key, text=text, ms=ms, **known))
    return Reply(kept.text, kept.ms, _since(started), False)


def kept_text(model: str, parameters: Parameters, revision: str, prompt: str) -> str | None:
    """Return the answer of one revision of a model that is kept, and leave it as it is; None where none is."""
    if parameters["provider"] not in servers():
        return None
    key = fingerprint(**_known(model, parameters, "" if revision == UNKNOWN else revision, prompt))
    return LLMAnswer.objects.filter(key=key).values_list("text", flat=True).first()


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
        text = llm.generate(prompt, **told)
        return text.replace("\0", ""), _since(started)

    answer = _asked(server, generate)
    breakers[server].record_success()
    return answer


def _asked(server: str, call: Callable[[], Result]) -> Result:
    """What a call of a server returns, in one of ATTEMPTS. Raises LLMError."""
    breaker, started = breakers[server], time.monotonic()
    breaker.check(server, started)
    try:
        return _attempted(server, call)
    except PassingLLMError:
        now = time.monotonic()
        breaker.record_failure(now - started, now)
        raise


def _attempted(server: str, call: Callable[[], Result]) -> Result:
    seconds = servers()[server].timeout
    for attempt in range(1, ATTEMPTS + 1):
        try:
            # Its own limit is of the wait for each byte: a server that drips would be heard for ever.
            with calling(f"The language model server {server}", within=2 * seconds + GRACE_SECONDS):
                return call()
        except PassingLLMError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
