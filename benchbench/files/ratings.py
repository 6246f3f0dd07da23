"""Queries with the ratings of their documents, as other tools export them: common to their readers."""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Annotated, Any

from benchbench.errors import FileFormatError
from benchbench.reading.objects import Checked, fault, format_value

RATING = re.compile(r"\s*[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})\s*")
KEY_LENGTH = 200


def parse_rating(value: Any) -> Decimal | None:
    """Return a rating, a number or a text such as "2.000", exactly as it is written; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(str(value).strip()) if is_number or (isinstance(value, str) and RATING.fullmatch(value)) else None


def check_rating(value: Any) -> Decimal:
    rating = parse_rating(value)
    if rating is None:
        raise fault(f"must be a number, not {format_value(value)[:40]}")
    return rating


Rating = Annotated[Any, Checked(check_rating, before=True)]


def build_text_key(text: str) -> str:
    """Return the key of a query without an id: its text; of a longer text, the beginning and a hash."""
    digest = sha256(text.encode()).hexdigest()[:16]
    return text if len(text) <= KEY_LENGTH else f"{text[: KEY_LENGTH - 18]}… {digest}"


@dataclass(slots=True)
class RatedQuery:
    """A query of another tool, and the ratings of its documents by id."""

    text: str
    key: str
    expected_answer: str = ""
    notes: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    ratings: dict[str, Decimal] = field(default_factory=dict)


@dataclass(slots=True)
class RatedFile:
    """The queries of a file by key, in its order. `duplicates` counts equal repeated ratings."""

    name: str = ""
    description: str = ""
    source: str = "import"
    queries: dict[str, RatedQuery] = field(default_factory=dict)
    duplicates: int = 0
    warnings: list[str] = field(default_factory=list)

    def add_query(self, text: str, key: str = "") -> RatedQuery:
        """Return the query with a key, by default that of its text. A new one is added."""
        key = key or build_text_key(text)
        return self.queries.setdefault(key, RatedQuery(text, key))

    def add_rating(self, query: RatedQuery, document: str, rating: Decimal, location: str) -> None:
        """Add a rating. Raises FileFormatError if the document has another one for the query; `location` begins it."""
        self.duplicates += document in query.ratings
        before = query.ratings.setdefault(document, rating)
        if before != rating:
            raise FileFormatError(
                f"{location} rates the document {document[:60]!a} of the query {query.text[:60]!a} with {rating}, but "
                f"it was rated {before} before."
            )
