"""Requests to language models: store usable answers, retry temporary errors, and pause for a server that is down."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from apps.retrieval import process
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.llms.answers import answers_bypassed, answers_read_only, find_answer, store_answer
from apps.retrieval.llms.clients import LLM, LLMError, Reply, TemporaryLLMError
from apps.retrieval.llms.servers import OPTIONS, complete_llm, load_llm, load_servers, require_model
from apps.retrieval.models import Index, LLMAnswer
from benchbench.breaker import Breaker
from benchbench.ir.planning.query_text import MAX_TOKENS, QueryText
from benchbench.process import calling
from benchbench.texts.secret import Secret
from benchbench.texts.storable import clean_text

ATTEMPTS = 3
BACKOFF_SECONDS = 0.5  # before the second attempt; doubled for each further one
UNKNOWN = "unknown"
LONGEST = 200_000  # characters of an answer that are used
REVISION_LENGTH = 200
REVISION_SECONDS = 60  # how long a model's revision is cached

Parameters = dict[str, Any]
Result = TypeVar("Result")
Accepts = Callable[[str], bool]  # whether the caller can use an answer

breakers: defaultdict[str, Breaker] = defaultdict(Breaker)  # by server name
process.add(breakers.clear)
revisions: dict[tuple[str, str], tuple[str, float]] = {}  # by server and model, with the time of expiry
process.add(revisions.clear)


def ask(index: Index, prompt: str, accepts: Accepts) -> Reply:
    """Return the answer of an index's language model, as `ask_llm` does."""
    return ask_llm(index.llm, complete_llm(index.llm_parameters), prompt, accepts)


def ask_llm(model: str, parameters: Parameters, prompt: str, accepts: Accepts) -> Reply:
    """Return a model's answer, cached if possible, with complete `parameters` (`complete_llm`).

    `accepts` returns whether the caller can use a text. Only accepted answers are stored. Others are returned for the
    caller to refuse, and the next call asks the model again. The parameter `cache: false` and `bypass_answers`
    bypass the cache. Raises LLMError.
    """
    started = time.perf_counter()
    server, options = parameters["provider"], {name: parameters[name] for name in OPTIONS}
    llm = load_llm(server, model)
    if answers_bypassed.get() or not parameters["cache"]:
        text, ms = _generate(llm, server, prompt, options)
        return Reply(text, ms, _measure_ms(started), False)
    fields = _build_answer_fields(model, parameters, _request_revision(llm, server), prompt)
    key = fingerprint(**fields)
    answer = find_answer(key)
    if answer is not None and accepts(answer.text):
        return Reply(answer.text, answer.ms, _measure_ms(started), True)
    text, ms = _generate(llm, server, prompt, options)
    if answers_read_only.get() or not accepts(text):
        return Reply(text, ms, _measure_ms(started), False)
    if answer is not None:  # accepted by another `accepts` before
        answer.delete()
    answer = store_answer(LLMAnswer(key=key, text=text, ms=ms, **fields))
    return Reply(answer.text, answer.ms, _measure_ms(started), False)


def _build_answer_fields(model: str, parameters: Parameters, revision: str, prompt: str) -> dict[str, object]:
    """Return the fields that identify an answer.

    They include the context, since the server may truncate prompts to it. They include the address of a server that
    reports no revision, since another address may have another model.
    """
    server, options = parameters["provider"], {name: parameters[name] for name in OPTIONS}
    if context := load_servers()[server].context:
        options["context"] = context
    if not revision:
        options["address"] = fingerprint(url=load_servers()[server].url)[:16]
    return {"provider": server, "model": model, "revision": revision, "prompt": prompt, "parameters": options}


def check_llm(index: Index) -> None:
    """Check that the server of an index's language model answers and has the model. Raises LLMError."""
    require_model(complete_llm(index.llm_parameters)["provider"], index.llm)


def find_llm_revision(server: str, model: str) -> str:
    """Return the revision of a model; UNKNOWN if its server does not report it or answer."""
    try:
        return _request_revision(load_llm(server, model), server) or UNKNOWN
    except LLMError:
        return UNKNOWN


def _request_revision(llm: LLM, server: str) -> str:
    """Return the model's revision, requested from its server at most once in REVISION_SECONDS. Raises LLMError."""
    entry = revisions.get((server, llm.model_name))
    if entry is None or time.monotonic() > entry[1]:
        revision = clean_text(_call_server(server, llm.request_revision), REVISION_LENGTH)
        entry = revision, time.monotonic() + REVISION_SECONDS
        revisions[server, llm.model_name] = entry
    return entry[0]


def _generate(llm: LLM, server: str, prompt: str, options: Parameters) -> tuple[str, float]:
    """Return the answer and the milliseconds of the successful attempt. Raises LLMError."""

    def generate() -> tuple[str, float]:
        started = time.perf_counter()
        text = clean_text(llm.generate(prompt, **options), LONGEST)
        if Secret(llm.server.key).is_in(text):
            raise LLMError(f"The language model server {server} repeats its key in an answer: correct it there.")
        return text, _measure_ms(started)

    answer = _call_server(server, generate)
    breakers[server].record_success()
    return answer


def _call_server(server: str, call: Callable[[], Result]) -> Result:
    """Call a server, with up to ATTEMPTS attempts, and return the result. Raises LLMError."""
    breaker, started = breakers[server], time.monotonic()
    if breaker.is_open(started):
        raise LLMError(
            f"The language model server {server} is paused for {breaker.break_seconds:g} seconds, because it failed "
            f"{breaker.reason}. Start it or check its log, then retry."
        )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            # The client's timeout applies to each read, so a slowly dripping answer would never time out.
            with calling(f"The language model server {server}", within=2 * load_servers()[server].timeout):
                return call()
        except TemporaryLLMError:
            if attempt == ATTEMPTS:
                now = time.monotonic()
                breaker.record_failure(now - started, now)
                raise
            time.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


def _measure_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def rewrite_query(method: str, llm: str, question: str) -> tuple[tuple[str, ...], Reply]:
    """Return the texts that `llm`, such as ollama:llama3, writes for a question, and its reply.

    `method` is the text of a `QueryText`. Raises LLMError, and QueryTextError for a reply with too few texts.
    """
    query_text = QueryText.parse(method)
    model, parameters = _find_model(query_text, llm)
    reply = ask_llm(model, parameters, query_text.build_prompt(question), query_text.accepts)
    return query_text.parse_texts(reply.text), reply


def find_texts(method: str, llm: str, question: str, *, revision: str) -> tuple[str, ...]:
    """Return the cached texts that a revision of `llm` wrote for a question; empty if not cached."""
    query_text = QueryText.parse(method)
    model, parameters = _find_model(query_text, llm)
    if parameters["provider"] not in load_servers():
        return ()
    fields = _build_answer_fields(
        model, parameters, "" if revision == UNKNOWN else revision, query_text.build_prompt(question)
    )
    answer = LLMAnswer.objects.filter(key=fingerprint(**fields)).values_list("text", flat=True).first()
    return query_text.parse_texts(answer) if answer is not None and query_text.accepts(answer) else ()


def _find_model(query_text: QueryText, llm: str) -> tuple[str, dict[str, object]]:
    server, _, model = llm.partition(":")
    return model, complete_llm({"provider": server, "max_tokens": MAX_TOKENS[query_text.method]})
