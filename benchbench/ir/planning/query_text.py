"""The searched text: the query as asked, or a language model's text from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from benchbench.errors import BenchbenchError

AS_ASKED, REWRITE, HYDE, MULTI = "as_asked", "rewrite", "hyde", "multi"
METHODS = (AS_ASKED, REWRITE, HYDE, MULTI)
DEFAULT_VARIANTS, MAX_VARIANTS = 3, 10
TEXT = re.compile(r"\s*(?P<method>[a-z_]+)\s*(?:\(\s*(?P<count>[0-9]{1,4})\s*\)\s*)?")
MARK = re.compile(r"^\s*(?:[-*•]\s|\d{1,2}\s*[.):](?!\d))\s*")  # of a list
THOUGHT = ("<think>", "</think>")  # around what some models write before they answer

PROMPT_VERSION = 1  # part of what a list is known by: raise it with any change of a prompt, or of how answers are read
PROMPTS: Mapping[str, str] = {
    REWRITE: """Rewrite the question as a query for a search engine: keep its meaning, write out abbreviations, add \
the words that an answer would use. Answer with the query alone, on one line.

Question: {question}

Query:""",
    # After Gao, Ma, Lin and Callan: Precise Zero-Shot Dense Retrieval without Relevance Labels, ACL 2023.
    HYDE: """Write a short passage that answers the question. Answer with the passage alone.

Question: {question}

Passage:""",
    # After Rackauckas: RAG-Fusion, 2024.
    MULTI: """Write {count} different queries for a search engine that would find what answers the question, each in \
other words. Answer with the queries alone, one on each line.

Question: {question}

Queries:""",
}
MAX_TOKENS: Mapping[str, int] = {REWRITE: 100, HYDE: 300, MULTI: 500}


class QueryTextError(BenchbenchError):
    """A query-text method is unknown, or a model's answer contains no query text."""

    code = "invalid_query_text"


@dataclass(frozen=True, slots=True)
class QueryText:
    """A method, and how many texts it makes of a query. Made by `parse`, so always valid; `str` gives its one text."""

    method: str = AS_ASKED
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> QueryText:
        """Read "as_asked", "rewrite", "hyde", "multi" or "multi(4)". Raises QueryTextError."""
        match = TEXT.fullmatch(text)
        if match is None or match["method"] not in METHODS or (match["count"] and match["method"] != MULTI):
            raise QueryTextError(f"{text!r} must be one of as_asked, rewrite, hyde and multi(n), such as multi(3).")
        if match["method"] != MULTI:
            return cls(match["method"])
        count = int(match["count"] or DEFAULT_VARIANTS)
        if not 2 <= count <= MAX_VARIANTS:
            raise QueryTextError(f"{text!r}: multi makes 2 to {MAX_VARIANTS} variants of a query, not {count}.")
        return cls(MULTI, count)

    def __str__(self) -> str:
        return f"{self.method}({self.count})" if self.method == MULTI else self.method

    @property
    def by_words(self) -> bool:
        """Return whether lexical search uses the texts too. It does not use a passage, whose words are guesses."""
        return self.method in (REWRITE, MULTI)

    def build_prompt(self, question: str) -> str:
        return PROMPTS[self.method].format(question=question, count=self.count)

    def parse_texts(self, answer: str) -> tuple[str, ...]:
        """Return the texts, `count` of them, that a language model's answer holds. Raises QueryTextError."""
        texts = self._parse_texts(answer)
        if len(texts) < self.count:
            raise QueryTextError(
                f"The language model returned {len(texts)} of the {self.count} texts that {self} asks "
                "for: use a model that follows the prompt, or another query."
            )
        return texts

    def accepts(self, answer: str) -> bool:
        """Return whether a language model's answer holds as many texts as the method asks for."""
        return len(self._parse_texts(answer)) == self.count

    def _parse_texts(self, answer: str) -> tuple[str, ...]:
        """Return the texts that an answer holds, at most `count` different ones."""
        reply = answer.rpartition(THOUGHT[1])[2].partition(THOUGHT[0])[0]
        plain = (" ".join(text.split()).strip("\"'`“”") for text in self._split_answer(reply))
        return tuple(dict.fromkeys(text for text in plain if text))[: self.count]

    def _split_answer(self, answer: str) -> list[str]:
        """Return the parts of an answer that may be texts: the whole answer for a passage, else its query lines.

        A line that ends with a colon introduces others and is left out.
        """
        if self.method == HYDE:
            return [answer]
        lines = [line for line in answer.splitlines() if not line.rstrip().endswith(":")]
        if self.method == REWRITE:
            return lines
        marked = [line for line in lines if MARK.match(line)]
        return [MARK.sub("", line) for line in (marked if len(marked) >= self.count else lines)]


def query_text(text: str) -> str:
    """Return the canonical text of a value of the axis. Raises QueryTextError."""
    return str(QueryText.parse(text))
