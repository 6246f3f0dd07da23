"""Rewriting queries: the texts that a language model makes of one."""

from typing import Any

from apps.retrieval.llms.asking import ask_llm, kept_text
from apps.retrieval.llms.base import Reply
from apps.retrieval.llms.servers import checked_llm
from benchbench.ir.planning.query_text import MAX_TOKENS, QueryText


def rewritten(method: str, llm: str, question: str) -> tuple[tuple[str, ...], Reply]:
    """Return the texts that `llm`, such as ollama:llama3, makes of a question, and the reply that holds them.

    `method` is the text of a `QueryText`. Raises LLMError, and QueryTextError for a reply that holds too few texts.
    """
    how = QueryText.parse(method)
    model, parameters = _asked(how, llm)
    reply = ask_llm(model, parameters, how.prompt(question), how.accepts)
    return how.texts(reply.text), reply


def kept_texts(method: str, llm: str, question: str, *, revision: str) -> tuple[str, ...]:
    """Return the texts that a revision of `llm` made of a question; none where no such answer is stored."""
    how = QueryText.parse(method)
    model, parameters = _asked(how, llm)
    answer = kept_text(model, parameters, revision, how.prompt(question))
    return how.texts(answer) if answer is not None and how.accepts(answer) else ()


def _asked(how: QueryText, llm: str) -> tuple[str, dict[str, Any]]:
    server, _, model = llm.partition(":")
    return model, checked_llm({"provider": server, "max_tokens": MAX_TOKENS[how.method]})
