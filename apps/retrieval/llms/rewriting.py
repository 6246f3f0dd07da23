"""Rewriting queries: the texts that a language model makes of one."""

from apps.retrieval.llms.asking import ask_llm
from apps.retrieval.llms.base import Reply
from apps.retrieval.llms.servers import checked_llm
from benchbench.ir.planning.query_text import MAX_TOKENS, QueryText


def rewritten(method: str, llm: str, question: str) -> tuple[tuple[str, ...], Reply]:
    """Return the texts that `llm`, such as ollama:llama3, makes of a question, and the reply that holds them.

    `method` is the text of a `QueryText`. Raises LLMError, and QueryTextError for a reply that holds too few texts.
    """
    how = QueryText.parse(method)
    server, _, model = llm.partition(":")
    parameters = checked_llm({"provider": server, "max_tokens": MAX_TOKENS[how.method]})
    reply = ask_llm(model, parameters, how.prompt(question))
    return how.texts(reply.text), reply
