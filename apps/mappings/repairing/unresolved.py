"""Unresolved judgments of a mapping, and the documents that they might mean."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet, Value

from apps.collections.fingerprints import live
from apps.datasets.models import alive_in
from apps.mappings.models import Mapping, Resolution
from apps.mappings.references.rules import read_reference

MOST_CANDIDATES = 10


@dataclass(frozen=True)
class Candidate:
    """A document that an ambiguous reference fits."""

    uuid: UUID
    external_id: str
    uri: str
    file_name: str
    title: str


@dataclass(frozen=True)
class Unresolved:
    """A judgment that found no document, and why."""

    judgment_id: int
    query_id: int
    query_key: str
    query_text: str
    doc_ref: dict[str, Any]
    relevance_grade: int
    outcome: Literal["ambiguous", "not_found", "invalid_ref"]
    key: Annotated[str, "The key of the reference that decided, if any."]
    reason: str
    candidates: Annotated[list[Candidate], f"Of an ambiguous one, at most {MOST_CANDIDATES}."]


def unresolved_of(mapping: Mapping) -> QuerySet[Resolution]:
    """Return what found no document among the judgments that the counts of `mapping` speak of, in their order."""
    lost = Resolution.objects.filter(mapping=mapping).exclude(outcome=Resolution.Outcome.RESOLVED)
    if mapping.dataset_version is None:
        return lost.none()
    number = mapping.dataset_version.number
    of_version = lost.filter(alive_in(number, "judgment__"), alive_in(number, "judgment__query__"))
    return of_version.select_related("judgment__query").order_by("judgment_id")


def with_candidates(mapping: Mapping, resolutions: Sequence[Resolution]) -> list[Unresolved]:
    """Return unresolved judgments with up to MOST_CANDIDATES candidates each, as the collection is now. One query."""
    documents = live(mapping.collection).order_by("external_id")
    looked_up = [
        documents.filter(**dict(read_reference(row.judgment.doc_ref).lookups[:1]))
        .annotate(of=Value(row.pk))
        .values("of", *(field.name for field in fields(Candidate)))[:MOST_CANDIDATES]
        for row in resolutions
        if row.outcome == Resolution.Outcome.AMBIGUOUS  # so its reference was read, and by a key of one field
    ]
    candidates: dict[int, list[Candidate]] = {row.pk: [] for row in resolutions}
    if looked_up:
        for document in looked_up[0].union(*looked_up[1:], all=True):
            candidates[document.pop("of")].append(Candidate(**document))
    return [
        Unresolved(
            judgment_id=row.judgment_id,
            query_id=row.judgment.query_id,
            query_key=row.judgment.query.key,
            query_text=row.judgment.query.text,
            doc_ref=row.judgment.doc_ref,
            relevance_grade=row.judgment.grade,
            outcome=row.outcome,  # type: ignore[arg-type] # those that `unresolved_of` finds
            key=row.key,
            reason=row.reason,
            candidates=sorted(candidates[row.pk], key=lambda candidate: candidate.external_id),
        )
        for row in resolutions
    ]
