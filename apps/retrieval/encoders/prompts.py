"""Families of models that were trained with prompts, and the prompts of their publishers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from benchbench.ir.encoding import EncoderParameters

KINDS = {"query": "queries", "document": "documents"}
VERSION = "build a version of the index with"
SEARCH = "Represent this sentence for searching relevant passages: "
INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
ICL = "<instruct>Given a web search query, retrieve relevant passages that answer the query.\n<query>"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models by a pattern of their names, with the usual prompts before queries and documents."""

    names: re.Pattern[str]
    query: str
    document: str = ""


def _name(pattern: str) -> re.Pattern[str]:
    """Return the pattern of names with hyphens, which folders of this machine may have as underscores."""
    return re.compile(rf"(?<![a-z0-9])(?:{pattern.replace('-', '[-_]')})", re.IGNORECASE)


# The first family that fits. Sources: the models' pages on the Hugging Face Hub.
FAMILIES = (
    Family(_name(r"e5-mistral|multilingual-e5-large-instruct"), INSTRUCTION),
    Family(_name(r"e5(?!\w)|e5-|deepset-mxbai"), "query: ", "passage: "),
    Family(_name(r"gte-qwen|qwen3-embedding"), INSTRUCTION),
    Family(_name(r"bge-(?:small|base|large)-zh"), "为这个句子生成表示以用于检索相关文章："),
    Family(_name(r"bge-(?:small|base|large)-en"), SEARCH),
    Family(_name(r"bge-multilingual-gemma2|bge-en-icl"), ICL),
    Family(_name(r"nomic-embed|modernbert-embed"), "search_query: ", "search_document: "),
    Family(_name(r"mxbai-embed"), SEARCH),
    Family(_name(r"arctic-embed-\w-v2"), "query: "),
    Family(_name(r"arctic-embed"), SEARCH),
    Family(
        _name(r"instructor-"),
        "Represent the question for retrieving supporting documents: ",
        "Represent the document for retrieval: ",
    ),
)


def find_family(model: str) -> Family | None:
    """Return the family of a model by its name, or None."""
    return next((family for family in FAMILIES if family.names.search(model)), None)


def describe_missing_prompts(model: str, prompts: Mapping[str, str] | None, *, remedy: str = VERSION) -> str:
    """Return a sentence that offers the prompts that the family of a model has and its encoder did not use, or "".

    `prompts` are those that the encoder used, by the kind of text; None if they were not recorded. The library chooses
    an empty prompt for documents where a model's configuration has one under another name than "document".
    """
    family = find_family(model)
    if family is None or prompts is None:
        return ""
    usual = {"query": family.query, "document": family.document}
    missing = {kind: prompt for kind, prompt in usual.items() if prompt and not prompts.get(kind, prompt)}
    if not missing:
        return ""
    texts = " and ".join(KINDS[kind] for kind in missing)
    offered = " and ".join(f"{kind}_prompt {quote(prompt)}" for kind, prompt in missing.items())
    return (
        f"The encoder {model} was trained with prompts and read {texts} without one, which usually loses accuracy: "
        f"{remedy} {offered}."
    )


def find_unset_prompts(model: str, parameters: EncoderParameters) -> dict[str, str]:
    """Return the usual prompts of a model's family, by parameter, that a new index lacks."""
    family = find_family(model)
    usual = {"query_prompt": family.query, "document_prompt": family.document} if family else {}
    return {name: prompt for name, prompt in usual.items() if prompt and not getattr(parameters, name)}


def describe_unset_prompts(model: str, unset: Mapping[str, str]) -> str:
    """Return a sentence that offers prompts before an index is built, when the model's configuration is not loaded."""
    plurals = {f"{kind}_prompt": plural for kind, plural in KINDS.items()}
    offered = " and ".join(f"{quote(prompt)} before {plurals[name]}" for name, prompt in unset.items())
    return (
        f"{model} was trained with prompts and usually loses accuracy without them. Unless its configuration has them, "
        f"add {offered}."
    )


def quote(prompt: str) -> str:
    """Return a prompt in quotation marks, on one line."""
    return json.dumps(prompt, ensure_ascii=False)
