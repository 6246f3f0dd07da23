"""Axes of what is searched for: how much of a query's vector, and the text that a language model makes of the query."""

from __future__ import annotations

from typing import Any

from benchbench.ir.planning import axes
from benchbench.ir.planning.axes import METHODS, REWRITING, axis
from benchbench.ir.planning.query_text import AS_ASKED, query_text

DIMENSIONS: Any = axis(
    None,
    "dimensions",
    axes.DEPTH.or_null,
    option="--dimensions",
    section=METHODS,
    label="Dimensions",
    help="How many of the encoder's first dimensions exact dense search compares, for encoders trained for that "
    "(Matryoshka). “none, 128”: all, and 128. Empty: all.",
    part=axes.WHOLE,
    touches=lambda run: run.search_mode != "sparse",
    said=lambda run: "" if run.dimensions is None else f"{run.dimensions} dimensions",
    phrase=lambda value: f"{value} dimensions",
    unstated="all dimensions",
)
QUERY: Any = axis(
    AS_ASKED,
    "query",
    axes.QUERY_TEXT,
    option="--query",
    section=REWRITING,
    label="Query",
    help="What is searched for: “as_asked, rewrite, hyde, multi(3)”. A language model rewrites the query; or writes a "
    "passage that answers it, which vectors are compared with (words are searched as asked); or writes 3 variants, "
    "whose lists are fused by rank. A reranker reads the query as asked.",
    canonical=query_text,
    touches=lambda run: run.rewrites,
    said=lambda run: f"query {run.query} by {axes.last_part(run.llm)}" if run.rewrites else "",
    phrase=lambda value: "query as asked" if value == AS_ASKED else f"query {value}",
)
LLM: Any = axis(
    None,
    "llms",
    axes.LLM.or_null,
    option="--llm",
    section=REWRITING,
    label="Language models",
    help="That make the text of a query, each after the name of its server, one of those in the settings of this site: "
    "“ollama:llama3.2”.",
    touches=lambda run: run.rewrites,
    unstated="no language model",
    named="language model",
)
