"""Ratings as other tools export them, and the keys of queries without an id."""

import re
from decimal import Decimal
from hashlib import sha256
from typing import Annotated, Any

from benchbench.reading.objects import Checked, fault, format_value

RATING = re.compile(r"\s*[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,15}|,[0-9]{1,2})?|\.[0-9]{1,15})\s*")
GRADE = re.compile(r"\s*([+-]?[0-9]{1,9})(?:\.0{0,15})?\s*")
KEY_LENGTH = 200


def check_rating(value: Any) -> Decimal:
    """Return a rating, a number or a text such as "2.000", exactly as it is written, or raise a `fault`."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and RATING.fullmatch(value)):
        raise fault(f"must be a number, not {format_value(value)[:40]}")
    return Decimal(str(value).strip().replace(",", "."))


def parse_grade(value: Any) -> int | None:
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


Rating = Annotated[Any, Checked(check_rating, before=True)]


def build_text_key(text: str) -> str:
    """Return the key of a query without an id: its text; of a longer text, the beginning and a hash."""
    digest = sha256(text.encode()).hexdigest()[:16]
    return text if len(text) <= KEY_LENGTH else f"{text[: KEY_LENGTH - 18]}… {digest}"
