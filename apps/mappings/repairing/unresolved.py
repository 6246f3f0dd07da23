"""Unresolved judgments of a mapping, and the documents that they might mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Value

from apps.collections.fingerprints import live
from apps.datasets.models import alive_in
from apps.mappings.models import Mapping, Resolution
from apps.mappings.references.rules import read_reference

MOST_CANDIDATES = 10
CANDIDATE_FIELDS = ("uuid", "external_id", "uri", "file_name", "title")


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A judgment without a document. An ambiguous one has candidates: CANDIDATE_FIELDS of the documents it fits."""

    resolution: Resolution
    candidates: list[dict[str, Any]]


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
        .values("of", *CANDIDATE_FIELDS)[:MOST_CANDIDATES]
        for row in resolutions
        if row.outcome == Resolution.Outcome.AMBIGUOUS  # so its reference was read, and by a key of one field
    ]
    candidates: dict[int, list[dict[str, Any]]] = {row.pk: [] for row in resolutions}
    if looked_up:
        for document in looked_up[0].union(*looked_up[1:], all=True):
            candidates[document.pop("of")].append(document)
    return [
        Unresolved(row, sorted(candidates[row.pk], key=lambda document: document["external_id"])) for row in resolutions
    ]
