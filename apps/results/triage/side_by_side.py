"""Two rankings of one query beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from apps.benchmarks.models import QueryResult
from apps.collections.models import Document


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a ranking. `other` is the document's rank in the other ranking, None where that lacks it."""

    rank: int
    document: Document | None
    grade: int | None
    other: int | None

    @property
    def move(self) -> int:
        """How many places higher (below 0: lower) it stands here than in the other ranking."""
        return 0 if self.other is None else self.other - self.rank

    @property
    def drop(self) -> int:
        return -self.move


@dataclass(frozen=True, slots=True)
class Column:
    """One of the two: its result, and its first places."""

    result: QueryResult
    places: list[Place]


def side_by_side(
    first: QueryResult, second: QueryResult, grades: Mapping[int, int], *, shown: int
) -> tuple[Column, Column]:
    """Return the first `shown` places of two rankings, each with where the other has its documents, in one query."""
    wanted = {*first.document_ids[:shown], *second.document_ids[:shown]}
    documents = Document.objects.defer("text", "metadata").in_bulk(wanted)
    return (
        Column(first, _places(first, second, documents, grades, shown)),
        Column(second, _places(second, first, documents, grades, shown)),
    )


def _places(
    mine: QueryResult, other: QueryResult, documents: Mapping[int, Document], grades: Mapping[int, int], shown: int
) -> list[Place]:
    ranks = {document: rank for rank, document in enumerate(other.document_ids, start=1)}
    return [
        Place(rank, documents.get(document), grades.get(document), ranks.get(document))
        for rank, document in enumerate(mine.document_ids[:shown], start=1)
    ]
