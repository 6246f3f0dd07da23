"""Words of a text in any script, and their comparison in any case, width or Unicode form."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
SHORT = 2  # letters, as of a bigram
ASCII_WORD = re.compile(r"\w+", re.ASCII)
# Letters and signs of most European texts that NFKC does not change.
COMMON = re.compile("[\0-\x7f¡-§©«¬®°±¶·»¿-\u0131\u0134-\u013e\u0141-\u0148\u014a-\u017eΑ-Ωα-ω‐‒-‖‘-•′←-↓−≈≠≤≥]*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, folded, and where it is in the text; `is_letter`: one letter of a script without blanks."""

    text: str
    start: int
    end: int
    is_letter: bool


def fold(text: str) -> str:
    """Return what texts that read alike have in common: NFKC, case folded, without ignored characters and points.

    Composed and decomposed letters, full and half width, ligatures, capital letters and ß become alike; letters with
    different accents do not.
    """
    if text.isascii():
        return text.lower()
    if is_common(text := text.replace("\xa0", " ").replace("…", "...")):
        return text.casefold().replace("i\u0307", "i")
    from benchbench.texts.scripts import LEFT_OUT

    folded = normalize(text, "NFKC").casefold().replace("i\u0307", "i")  # of İ
    return normalize(LEFT_OUT.sub("", folded), "NFKC")


def is_common(text: str) -> bool:
    """Return whether all letters are common, so that folding changes only their case."""
    return text.isascii() or COMMON.fullmatch(text) is not None


def fold_word(word: str) -> str:
    """Return `fold` of a word; short ones, such as the letters of a Chinese text, are folded once."""
    return _fold_short(word) if len(word) <= SHORT else fold(word)


@lru_cache(maxsize=2**13)
def _fold_short(word: str) -> str:
    return fold(word)


def normalize(text: str, form: Form) -> str:
    """Return a Unicode form of a text, without the marks on one letter beyond the first 30.

    Python puts the marks on a letter in order in time quadratic in their number. Unicode's stream-safe format has the
    same limit (UAX #15, 13), which no language reaches.
    """
    if text.isascii():
        return text
    from benchbench.texts.scripts import TOO_MANY_MARKS

    return unicodedata.normalize(form, TOO_MANY_MARKS.sub(lambda match: match[1], text))


def fold_spelling(name: str) -> str:
    """Return a name or text without differences in case, Unicode form, width and white space."""
    return " ".join(normalize(normalize(name, "NFKC").casefold(), "NFKC").split())


def split_words(text: str) -> list[str]:
    """Return the words of a text, folded: runs of letters, digits and underscores, with their marks.

    In scripts without blanks (Chinese, Japanese, Korean, Thai and others) each letter is a word.
    """
    if text.isascii():
        return ASCII_WORD.findall(text.lower())
    from benchbench.texts.scripts import PERHAPS_UNSPACED, SPACED_WORD, WORD

    folded = fold(text)
    if not PERHAPS_UNSPACED.search(folded):
        return list(SPACED_WORD.findall(folded))
    return [match[0] for match in WORD.finditer(folded)]


def find_words(text: str) -> Iterator[Word]:
    """Yield the words of a text, as `split_words` has them, with their places in it."""
    from benchbench.texts.scripts import WORD

    for match in WORD.finditer(text):
        if folded := fold_word(match[0]):
            yield Word(folded, match.start(), match.end(), match["letter"] is not None)


def count_words(text: str) -> int:
    """Return the number of words between blanks; in scripts without blanks, each letter counts."""
    if text.isascii():
        return len(text.split())
    from benchbench.texts.scripts import UNSPACED_OR_RUN

    return sum(len(UNSPACED_OR_RUN.findall(piece)) for piece in text.split())
