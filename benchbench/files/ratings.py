"""Ratings as other tools export them, and the keys of queries without an id."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Annotated, Any

from benchbench.reading.objects import Checked, fault, format_value

RATING = re.compile(r"\s*[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,15}|,[0-9]{1,2})?|\.[0-9]{1,15})\s*")
GRADE = re.compile(r"\s*([+-]?[0-9]{1,9})(?:\.0{0,15})?\s*")
KEY_LENGTH = 200
# Grades in words, the worst first, each counted from 0. A file's words must all be of one scale; the first one decides.
SCALES = tuple(
    [[word.strip() for word in level.split("/")] for level in scale.split("|")]
    for scale in (
        "no/n/false/not relevant/nonrelevant/non-relevant/irrelevant/incorrect/wrong/👎|yes/y/true/relevant/correct/👍",
        "nein/falsch/nicht relevant/irrelevant|ja/wahr/richtig/relevant",
        "non/faux/non pertinent|oui/vrai/pertinent",
        "no/falso/no relevante|sí/si/verdadero/relevante",
        "no/falso/non rilevante|sì/si/vero/rilevante",
        "não/falso/não relevante/irrelevante|sim/verdadeiro/relevante",
        "nee/onwaar/niet relevant|ja/waar/relevant",
        "いいえ/不適合|はい/適合",
        "否/不相关|是/相关",
        "not relevant/irrelevant|partially relevant/somewhat relevant/marginally relevant|relevant|highly relevant",
        "nicht relevant/irrelevant|teilweise relevant|relevant|sehr relevant",
        "non pertinent|peu pertinent|pertinent|très pertinent",
        "bad|fair|good|excellent|perfect",
        "irrelevant|complement|substitute|exact",
        "d|c|b|a",
    )
)
LETTERS = {"a", "b", "c"}  # c may be the worst, as d is
HOLLOW = "☆✩"
STARS = re.compile(f"([★⭐*]+)\ufe0f?[{HOLLOW}]*|[{HOLLOW}]+")
UNJUDGED = {"", "-", "–", "?", "n/a", "na", "nan", "null", "none", "unjudged", "not judged"}  # in a cell for a grade


def check_rating(value: object) -> Decimal:
    """Return a rating, a number or a text such as "2.000", exactly as it is written, or raise a `fault`."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and RATING.fullmatch(value)):
        raise fault(f"must be a number, not {format_value(value)[:40]}")
    return Decimal(str(value).strip().replace(",", "."))


def parse_grade(value: object) -> int | None:
    """Return a grade, by the rule of every reader; None for another value.

    A grade is a whole number, as a number or as text: white space around it, a sign and zeros after the point do not
    change it. So "+1", "1 ", "1.0" and 1.0 are 1; 1.5, true, "1e0" and "one" are refused.
    """
    if isinstance(value, str):
        written = GRADE.fullmatch(value)
        return int(written[1]) if written else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return None
    return int(value)


def is_unjudged(value: object) -> bool:
    """Return whether a cell for a grade holds none: it is empty, or says so."""
    return value is None or (isinstance(value, str) and value.strip().casefold() in UNJUDGED)


def find_scale(values: Iterable[object]) -> dict[str, int]:
    """Return the grade of each value in words, if all those that are not numbers are of one scale; else nothing.

    Words of SCALES, true and false, and stars (★★☆ is 2) have grades. The words are in small letters. None have grades
    that may mean something else: letters of which d is not the last, and hollow stars of different numbers.
    """
    words = {str(value).strip().casefold() for value in values if not is_unjudged(value) and not is_number(value)}
    if words and all(map(STARS.fullmatch, words)):
        if any(word[-1] in HOLLOW for word in words) and len({*map(len, words)}) > 1:
            return {}
        return {word: len(stars[1] or "") for word in words if (stars := STARS.fullmatch(word))}
    if words <= LETTERS:
        return {}
    grades = ({word: grade for grade, level in enumerate(scale) for word in level} for scale in SCALES)
    scale = next((scale for scale in grades if words <= scale.keys()), {})
    return {word: scale[word] for word in sorted(words, key=lambda word: -scale[word])} if scale else {}


def is_number(value: object) -> bool:
    """Return whether a cell for a grade is a number, perhaps in percent."""
    if isinstance(value, str):
        return RATING.fullmatch(value.strip().removesuffix("%")) is not None
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def describe_scale(name: str, scale: Mapping[str, int]) -> str:
    """Return the note about grades in words."""
    return f"{name} has grades in words, read as {', '.join(f'{word} = {grade}' for word, grade in scale.items())}."


Rating = Annotated[Any, Checked(check_rating, before=True)]


def build_text_key(text: str) -> str:
    """Return the key of a query without an id: its text; of a longer text, the beginning and a hash."""
    digest = sha256(text.encode()).hexdigest()[:16]
    return text if len(text) <= KEY_LENGTH else f"{text[: KEY_LENGTH - 18]}… {digest}"
