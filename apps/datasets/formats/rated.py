"""Queries with ratings, as other tools export them: what the readers of Quepid, _rank_eval and OpenSearch share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, build_judgments, name_source
from benchbench.files.ratings import check_rating

MAX_FACTOR = 10_000


@dataclass(slots=True)
class Ratings:
    """The queries of a file by key, in its order, and their grades by document: a rating times `factor`.

    `location` begins an error's message: "q.csv, line 3,".
    """

    path: Path
    factor: int
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    duplicates: int = 0

    def __post_init__(self) -> None:
        if self.factor not in range(1, MAX_FACTOR + 1):
            message = f"The grade factor {self.factor} is not a number from 1 to {MAX_FACTOR:,}: choose 10 for .7."
            raise DatasetError(message, field="grade_factor")

    def add_query(self, location: str, key: str, **fields: object) -> str:
        """Add a query, and return its key. Raises DatasetError if it is another than before."""
        if self.queries.setdefault(key, fields) != fields:
            raise DatasetError(f"{location} describes the query {key[:60]!a} differently than before.")
        self.grades.setdefault(key, {})
        return key

    def add_rating(
        self, location: str, key: str, document: str, rating: str, scale: Mapping[str, int] | None = None
    ) -> None:
        """Add a rating, perhaps a word of a scale.

        Raises DatasetError if it gives no whole number, or the document has another one.
        """
        try:
            grade = Decimal(scale[rating.casefold()]) if scale else check_rating(rating) * self.factor
        except (ValueError, KeyError):
            raise DatasetError(
                f"{location} has the rating {rating[:40]!a}, which is not a number: write whole numbers, a higher one "
                "where more is relevant."
            ) from None
        subject = f"{location} rates the document {document[:60]!a} of the query {key[:60]!a} with {rating}"
        if grade != int(grade):
            raise DatasetError(
                f"{subject}, and a grade is a whole number: round the ratings, or import them with a factor, such as "
                "10, under Grade factor.",
                field="grade_factor",
                by_command="--grade-factor 10",
            )
        self.duplicates += document in self.grades[key]
        before = self.grades[key].setdefault(document, int(grade))
        if before != grade:
            raise DatasetError(f"{subject}, but its grade was {before} before: keep one of the two.", field="grade")

    def build(self, source_format: str, *, name: str = "", source: str = "import", **about: Any) -> DatasetRecord:
        """Return the dataset. `about` are further fields of it."""
        return DatasetRecord(
            name=name.strip() or name_source(self.path),
            queries=[
                QueryRecord(key, judgments=build_judgments(self.grades[key], source=source), **fields)
                for key, fields in self.queries.items()
            ],
            source_format=source_format,
            metadata={"grade_factor": self.factor} if self.factor != 1 else {},
            duplicates=self.duplicates,
            **about,
        )
