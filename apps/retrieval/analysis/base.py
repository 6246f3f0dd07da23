"""Rules that a language adds to the analysis of its texts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchbench.texts.words import normalize

ACCENTS = "\u0300\u0301\u0302\u0303\u0308\u0327"  # grave, acute, circumflex, tilde, diaeresis, cedilla
APOSTROPHES = {"`": "'", "´": "'", "′": "'"}  # as typed for one; NFKC would divide a word there


def keep(text: str) -> str:
    """Return the text itself."""
    return text


@dataclass(frozen=True, slots=True)
class Language:
    """Steps of a chain that a language adds to the common ones.

    `prepare` changes a text before letters are folded. `fold` normalises a folded word before the stop list and the
    stemmer read it, `finish` the stem. `stemmer` names a stemmer of PyStemmer.
    """

    stemmer: str = ""
    prepare: Callable[[str], str] = keep
    fold: Callable[[str], str] = keep
    finish: Callable[[str], str] = keep


def replace(letters: Mapping[str, str | None]) -> Callable[[str], str]:
    """Return the function that replaces single characters of a word; None removes one."""
    table = str.maketrans(dict(letters))
    return lambda word: word.translate(table)


def strip(marks: str) -> Callable[[str], str]:
    """Return the function that removes marks from the letters of a word."""
    table = dict.fromkeys(map(ord, marks))
    return lambda word: word if word.isascii() else normalize(normalize(word, "NFD").translate(table), "NFC")
