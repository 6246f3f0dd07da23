"""Words of a text in any script, and their comparison in any case, width or Unicode form."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import regex

# Written without blanks, or with blanks between phrases, so each letter is compared as a word. Lucene's CJK and ICU
# analyzers divide the same scripts.
UNSPACED = (
    r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Yi}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}"
    r"\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Tibetan}\p{Javanese}\p{Balinese}ーｰ]&&[\p{L}\p{N}]]"
)
IGNORED = r"\p{Default_Ignorable_Code_Point}"  # such as soft hyphens, joiners and variation selectors
JOINED = rf"[\p{{M}}{IGNORED}ﾞﾟ]"
HANGUL = r"[\u1100-\u115f]+[\u1160-\u11a7]+[\u11a8-\u11ff]*"  # a syllable in parts
SPACED = rf"[[\p{{L}}\p{{N}}_]--{UNSPACED}]"
WORD = regex.compile(rf"(?V1)(?P<letter>(?:{HANGUL}|{UNSPACED}){JOINED}*)|{SPACED}(?:{SPACED}|{JOINED})*")
UNSPACED_OR_RUN = regex.compile(rf"(?V1){UNSPACED}{JOINED}*|(?:(?!{UNSPACED}).)+", regex.DOTALL)
ASCII_WORD = re.compile(r"\w+", re.ASCII)
# The same as WORD in a folded text without an UNSPACED letter, in a quarter of the time.
SPACED_WORD = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*")
PERHAPS_UNSPACED = re.compile(
    "[\u0e00-\u11ff\u1780-\u17ff\u1950-\u1aaf\u1b00-\u1b7f\u2e80-\ud7ff\uf900-\uffff"
    "\U000116d0-\U000116ff\U00016fe0-\U0003ffff]"
)
# Points that Hebrew and Arabic are mostly written without, and the stroke that lengthens an Arabic word.
LEFT_OUT = regex.compile(
    rf"{IGNORED}|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)


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
    folded = unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i")  # of İ
    return unicodedata.normalize("NFKC", LEFT_OUT.sub("", folded))


def split_words(text: str) -> list[str]:
    """Return the words of a text, folded: runs of letters, digits and underscores, with their marks.

    In scripts without blanks (Chinese, Japanese, Korean, Thai and others) each letter is a word.
    """
    if text.isascii():
        return ASCII_WORD.findall(text.lower())
    folded = fold(text)
    if not PERHAPS_UNSPACED.search(folded):
        return list(SPACED_WORD.findall(folded))
    return [match[0] for match in WORD.finditer(folded)]


def find_words(text: str) -> Iterator[Word]:
    """Yield the words of a text, as `split_words` has them, with their places in it."""
    for match in WORD.finditer(text):
        if folded := fold(match[0]):
            yield Word(folded, match.start(), match.end(), match["letter"] is not None)


def count_words(text: str) -> int:
    """Return the number of words between blanks; in scripts without blanks, each letter counts."""
    pieces = text.split()
    return len(pieces) if text.isascii() else sum(len(UNSPACED_OR_RUN.findall(piece)) for piece in pieces)
