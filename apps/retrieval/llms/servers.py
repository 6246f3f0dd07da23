"""Servers of language models: reading them from the settings, and checking their availability."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from apps.retrieval.llms.clients import LLM, LLMError, OllamaLLM, OpenAILLM, Server

# By the name of the required package, which is also that of the extra.
KINDS: dict[str, Callable[[str, Server], LLM]] = {"ollama": OllamaLLM, "openai": OpenAILLM}
SERVER_PATTERN = re.compile(r"(?P<name>[\w-]+)=(?P<kind>\w+)\+(?P<url>https?://\S+)")
NO_SERVER = "No language model server is configured: set BENCHBENCH_LLM_SERVERS."
DEFAULTS: dict[str, object] = {"provider": "", "temperature": 0.0, "max_tokens": 500, "seed": 0, "cache": True}
WITH_CONTEXT = ("ollama",)  # kinds whose requests can set the context in tokens
OPTIONS = ("temperature", "max_tokens", "seed")  # options of requests, which determine an answer


def load_servers() -> dict[str, Server]:
    """Return the servers of BENCHBENCH_LLM_SERVERS by name. Raises ImproperlyConfigured."""
    keys = dict(entry.split("=", 1) for entry in settings.BENCHBENCH_LLM_KEYS if "=" in entry)
    timeouts, contexts = _parse_numbers("BENCHBENCH_LLM_TIMEOUTS"), _parse_numbers("BENCHBENCH_LLM_CONTEXTS")
    by_name = {}
    for number, entry in enumerate(settings.BENCHBENCH_LLM_SERVERS, start=1):
        match = SERVER_PATTERN.fullmatch(entry)
        if match is None or match["kind"] not in KINDS:
            raise ImproperlyConfigured(
                f"BENCHBENCH_LLM_SERVERS: entry {number} must be NAME=KIND+URL, such as "
                f"ollama=ollama+http://localhost:11434; choose KIND from {', '.join(KINDS)}."
            )
        name = match["name"]
        timeout = timeouts.pop(name, settings.BENCHBENCH_LLM_TIMEOUT_SECONDS)
        context = contexts.pop(name, None) if match["kind"] in WITH_CONTEXT else None
        by_name[name] = Server(name, match["kind"], match["url"], keys.get(name, ""), timeout, context)
    for setting, left in (("BENCHBENCH_LLM_TIMEOUTS", timeouts), ("BENCHBENCH_LLM_CONTEXTS", contexts)):
        if left:
            expected = (
                "a server of BENCHBENCH_LLM_SERVERS"
                if left is timeouts
                else "an Ollama server of BENCHBENCH_LLM_SERVERS"
            )
            raise ImproperlyConfigured(f"{setting}: {', '.join(left)} is not {expected}.")
    return by_name


def _parse_numbers(setting: str) -> dict[str, int]:
    """Parse a setting of the form NAME=NUMBER per server. Raises ImproperlyConfigured."""
    numbers = {}
    for entry in getattr(settings, setting):
        name, _, number = entry.partition("=")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", number.strip()):
            raise ImproperlyConfigured(f"{setting}: {entry!r} must be NAME=NUMBER, such as ollama=300.")
        numbers[name.strip()] = int(number)
    return numbers


def complete_llm(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Return the parameters of a language model with defaults filled in, without `base_url`.

    `provider` is the name of a server, by default the first. Raises LLMError for unknown names and wrong types.
    """
    overrides = {name: value for name, value in parameters.items() if value is not None and name != "base_url"}
    complete = {**DEFAULTS, "provider": next(iter(load_servers()), ""), **overrides}
    if type(complete["temperature"]) is int:
        complete["temperature"] = float(complete["temperature"])
    if complete.keys() != DEFAULTS.keys() or any(type(complete[name]) is not type(DEFAULTS[name]) for name in DEFAULTS):
        example = '{"provider": "ollama", "temperature": 0, "max_tokens": 500, "seed": 0, "cache": true}'
        raise LLMError(
            f"Parameters of a language model must be like {example}, not {parameters}.", field="llm_parameters"
        )
    return complete


def name_llm(llm: str, parameters: Mapping[str, object]) -> str:
    """Return a language model with its server, "ollama:llama3", and the server's `base_url` if given."""
    server, url = parameters.get("provider") or next(iter(load_servers()), ""), parameters.get("base_url")
    return f"{server}:{llm}" + (f" at {url}" if url else "")


def describe_missing_llm(name: str) -> str:
    """Return why a language model, by its full name, cannot be used here, as a clause; "" if it can."""
    server, _, model_and_url = name.partition(":")
    model, _, url = model_and_url.partition(" at ")
    by_name = load_servers()
    if not model:
        return "its strategy needs a language model: name one"
    if server not in by_name:
        choices = f"choose one of {', '.join(by_name)}" if by_name else "set BENCHBENCH_LLM_SERVERS"
        return f"the language model server {server or 'of ' + model} is unknown: {choices}"
    if find_spec(by_name[server].kind) is None:
        package = by_name[server].kind
        return f"the language model server {server} needs the package {package}: pip install 'benchbench[{package}]'"
    if url and url.rstrip("/") != by_name[server].url.rstrip("/"):
        return f"the language model server {server} has another address than {url}: correct BENCHBENCH_LLM_SERVERS"
    return ""


@lru_cache(maxsize=16)
def create_llm(server: Server, model: str) -> LLM:
    """Return a model of a server. The package of its kind must be installed."""
    return KINDS[server.kind](model, server)


def load_llm(provider: str, model: str) -> LLM:
    """Return a model of the server called `provider`. Raises LLMError."""
    if missing := describe_missing_llm(f"{provider}:{model}"):
        raise LLMError(f"{missing[0].upper()}{missing[1:]}.")
    return create_llm(load_servers()[provider], model)


LOOK_SECONDS = 5.0  # timeout for listing models: a page may be waiting
LISTED_SECONDS = 60.0  # how long a list of models is cached
BELIEVED_SECONDS = 5.0  # how long the result is cached, since each run of a benchmark checks


def find_llm_failure(name: str) -> str:
    """Return why a language model, by its full name, does not answer now, as a clause; "" if it does."""
    if missing := describe_missing_llm(name):
        return missing
    server, _, model_and_url = name.partition(":")
    return _check_server(
        load_servers()[server], model_and_url.partition(" at ")[0], int(time.monotonic() / BELIEVED_SECONDS)
    )


def require_model(server: str, model: str) -> None:
    """Check that a server answers and has a model. Raises LLMError."""
    llm_server = load_llm(server, model).server
    models = create_llm(replace(llm_server, timeout=min(llm_server.timeout, LOOK_SECONDS)), model).list_models()
    if model not in models:
        raise LLMError(
            f"The language model server {server} has no model {model!r}; available: "
            f"{', '.join(sorted(models)) or 'none'}.",
            field="llm",
        )


def find_first_llm() -> tuple[str, str]:
    """Return a language model that answers now, as SERVER:MODEL; otherwise "" and the reason, as a sentence."""
    problem = NO_SERVER
    for server in load_servers().values():
        models, problem = _list_models(server, int(time.monotonic() / LISTED_SECONDS))
        if models:
            return f"{server.name}:{models[0]}", ""
    return "", problem


@lru_cache(maxsize=16)
def _list_models(server: Server, moment: int) -> tuple[list[str], str]:
    """Return the models of a server in order; without any, the reason."""
    try:
        model = load_llm(server.name, "any").model_name  # raises if the package of the server is missing
        llm = create_llm(replace(server, timeout=min(server.timeout, LOOK_SECONDS)), model)
        return sorted(llm.list_models()), f"The language model server {server.name} has no model: install one there."
    except LLMError as error:
        return [], error.message


@lru_cache(maxsize=64)
def _check_server(server: Server, model: str, moment: int) -> str:
    try:
        require_model(server.name, model)
    except LLMError as error:
        return error.message[0].lower() + error.message[1:].rstrip(".")
    return ""
