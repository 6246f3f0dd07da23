"""Texts that name something with options in parentheses: "hnsw(ef_search=100)", "flat(size=500, overlap=50)"."""

import re

from benchbench.reading.objects import shown

SEPARATOR = re.compile(r",(?![^()]*\))")


class CallError(ValueError):
    """Options that are not written as such; its text is a sentence."""


def split_calls(text: str) -> list[str]:
    """The entries of a list with commas between them; commas within parentheses separate options."""
    return [part.strip() for part in SEPARATOR.split(text) if part.strip()]


def read_options(text: str, *, example: str) -> dict[str, str]:
    """Return the options of what stands between the parentheses, as texts. Raises CallError."""
    given: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise CallError(f"{shown(part)} is not an option such as {example}.")
        if name in given:
            raise CallError(f"{name} is there more than once.")
        given[name] = value
    return given
