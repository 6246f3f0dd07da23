"""Rules for finding the document of a judgment's reference: functions over a small lookup table.

A reference is an object with any of the keys `document_id, uri, content_hash, path, file_name`. The first one present,
in that order, decides, even if it finds nothing. So a matching file name does not rescue a reference with a wrong id.
A key with the value null counts as absent; a blank value is reported as an error.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from apps.collections.models import Collection
from apps.collections.stubs import LONGEST_ID, upsert_documents
from apps.datasets.models import DatasetVersion
from apps.mappings.models import Resolution
from benchbench.reading.ids import SHA256

Outcome = Resolution.Outcome

# The document fields that each key may match, in order. Older files call a uri `path`.
FIELDS = {
    "document_id": ("external_id", "uuid"),
    "uri": ("uri",),
    "content_hash": ("content_hash",),
    "path": ("uri",),
    "file_name": ("file_name",),
}
SHOWN_CHARACTERS = 100


class Match(NamedTuple):
    """The number of live documents of a collection that have one value in one field, and the id of one."""

    document_id: int
    documents: int


# (field, value) → the documents with that value. A missing pair means no document.
Catalogue = Mapping[tuple[str, str], Match]


class Period(NamedTuple):
    """Documents with one value in one field from a state of the collection to before another; None: until today."""

    match: Match
    since: int
    until: int | None = None


# (field, value) → the documents with that value over the states of the collection.
History = Mapping[tuple[str, str], list[Period]]


class Verdict(NamedTuple):
    """The outcome for a reference: a document, or the reason as a sentence. `key` is the key that decided."""

    outcome: Resolution.Outcome
    key: str = ""
    document_id: int | None = None
    reason: str = ""


class InvalidReferenceError(ValueError):
    """The reference is invalid in every collection. `key` is the key at fault, if any."""

    def __init__(self, reason: str, key: str = "") -> None:
        super().__init__(reason)
        self.key = key


class Reference(NamedTuple):
    """A parsed reference: the key that decides, its value as written, and the (field, value) pairs to look up."""

    key: str
    value: str
    lookups: tuple[tuple[str, str], ...]


def read_reference(doc_ref: object) -> Reference:
    """Return the deciding part of `doc_ref`. Raises InvalidReferenceError if it is invalid.

    Values are compared exactly, except hashes and UUIDs, which have more than one spelling.
    """
    if not isinstance(doc_ref, dict):
        raise InvalidReferenceError("The reference is not an object.")
    key = next((key for key in FIELDS if doc_ref.get(key) is not None), None)
    if key is None:
        raise InvalidReferenceError(f"The reference must have one of the keys {', '.join(FIELDS)}.")
    value = doc_ref[key]
    if not isinstance(value, str):
        raise InvalidReferenceError(f"The {key} is not a string.", key)
    if not value.strip():
        raise InvalidReferenceError(f"The {key} must not be blank.", key)
    if key == "content_hash" and not SHA256.fullmatch(value):
        raise InvalidReferenceError(f"The content_hash {_quote(value)} is not 64 hexadecimal digits (SHA-256).", key)
    spelled = ((field, _normalise(field, value)) for field in FIELDS[key])
    return Reference(key, value, tuple((field, text) for field, text in spelled if text))


def resolve_reference(doc_ref: object, catalogue: Catalogue) -> Verdict:
    """Return the verdict on `doc_ref`, looked up in `catalogue`.

    The catalogue must hold every pair of `read_reference(doc_ref).lookups` that some live document has. A document_id
    matches a document's public UUID only if it matches no external id.
    """
    try:
        key, value, lookups = read_reference(doc_ref)
    except InvalidReferenceError as error:
        return Verdict(Outcome.INVALID_REF, error.key, reason=str(error))
    match = next((catalogue[pair] for pair in lookups if pair in catalogue), None)
    if match is None:
        return Verdict(Outcome.NOT_FOUND, key, reason=f"No document has the {key} {_quote(value)}.")
    if match.documents > 1:
        return Verdict(Outcome.AMBIGUOUS, key, reason=f"{match.documents} documents have the {key} {_quote(value)}.")
    return Verdict(Outcome.RESOLVED, key, match.document_id)


def resolve_over_time(doc_ref: object, history: History) -> list[tuple[int, int | None, Verdict]]:
    """Return the verdicts on `doc_ref`, each with the states that it holds in: from one, to before another or today.

    `history` must hold every pair of `read_reference(doc_ref).lookups` that some document has or had.
    """
    try:
        lookups = read_reference(doc_ref).lookups
    except InvalidReferenceError:
        lookups = ()
    periods = {pair: history[pair] for pair in lookups if pair in history}
    ends = {end for among in periods.values() for period in among for end in (period.since, period.until)}
    verdicts: list[tuple[int, Verdict]] = []
    for state in sorted({0, *ends} - {None}):  # type: ignore[type-var]
        verdict = resolve_reference(doc_ref, _select_at(periods, state or 0))
        if not verdicts or verdicts[-1][1] != verdict:
            verdicts.append((state or 0, verdict))
    starts = [start for start, _ in verdicts]
    return [(start, end, verdict) for (start, verdict), end in zip(verdicts, [*starts[1:], None], strict=True)]


def _select_at(history: History, state: int) -> dict[tuple[str, str], Match]:
    """Return the documents with each value in one state."""
    matches = {}
    for pair, periods in history.items():
        of_state = [match for match, since, until in periods if since <= state and (until is None or state < until)]
        if of_state:
            matches[pair] = Match(min(of_state)[0], sum(match.documents for match in of_state))
    return matches


def _normalise(field: str, value: str) -> str:
    """Return `value` as the field stores it, or "" if the field cannot hold it."""
    if field == "content_hash":
        return value.lower()
    if field == "uuid":
        try:
            return str(UUID(value)) if value.isascii() else ""
        except ValueError:
            return ""
    return value


def _quote(value: str) -> str:
    return repr(value if len(value) <= SHOWN_CHARACTERS else value[: SHOWN_CHARACTERS - 1] + "…")


CHUNK = 5000  # judgments read at a time


def load_judged_ids(version: DatasetVersion) -> set[str]:
    """Return the ids by which an external run can name the judged documents of a version."""
    doc_refs = version.judgments.order_by().values_list("doc_ref", flat=True).iterator(chunk_size=CHUNK)
    return {value for _, value in filter(None, map(_find_decisive, doc_refs))}


@transaction.atomic
def add_judged_ids(stub: Collection, doc_refs: Iterable[object]) -> None:
    """Add a document to `stub` for each reference, with the value that it resolves by as the id.

    So `{"uri": "file:///a.md"}` adds the document `file:///a.md` with that uri. Skips invalid references and values
    over 500 characters, which cannot be ids. The fingerprint covers these documents only: documents that runs add do
    not change what judgments mean.
    """
    documents_by_id: dict[str, dict[str, str]] = {}
    for doc_ref in doc_refs:
        if decisive := _find_decisive(doc_ref):
            field, value = decisive
            document = documents_by_id.setdefault(value, {})
            if field != "external_id":
                document[field] = value
    upsert_documents(stub, documents_by_id)
    stub.fingerprint = sha256(json.dumps(documents_by_id, sort_keys=True).encode()).hexdigest()
    stub.save(update_fields=["fingerprint", "updated_at"])


def _find_decisive(doc_ref: object) -> tuple[str, str] | None:
    """Return the field and value by which a reference resolves, or None if the value cannot be an id."""
    try:
        field, value = read_reference(doc_ref).lookups[0]
    except InvalidReferenceError:
        return None
    return (field, value) if len(value) <= LONGEST_ID else None
