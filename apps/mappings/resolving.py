"""Resolution of a mapping: each judgment of its dataset gets a document of its collection, or a reason."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Count, Min, Model, QuerySet
from django.utils import timezone

from apps.collections.models import Collection, FormerDocument, list_live
from apps.datasets.models import DatasetVersion, Judgment, filter_alive
from apps.mappings import references
from apps.mappings.models import Mapping, Resolution
from apps.operations.launching import OperationActiveError, start_operation
from apps.operations.models import Operation
from benchbench.database.failures import read_again, refresh
from benchbench.errors import ConflictError
from benchbench.reading.strict_json import attributes

CHUNK = 5000  # judgments looked up and written at a time
NEVER_CHANGED = ("external_id", "uuid")  # fields of a document that no import changes
COLUMNS = ("mapping_id", "judgment_id", "since", "until", "document_id", "outcome", "key", "reason")
RESULT_FIELDS = (
    *("dataset_version", "collection_fingerprint", "resolved_at", "updated_at"),
    *("counts", "mapped_count", "total_count", "status"),
)


class ResolveError(ConflictError):
    """The mapping cannot be resolved."""


class TookTooLongError(Exception):
    """A synchronous resolution exceeded its time limit and was rolled back."""


@dataclass(frozen=True)
class Basis:
    """The data that a resolution is valid for: a frozen version of the dataset and a state of the collection."""

    version: DatasetVersion | None
    fingerprint: str


@dataclass(frozen=True)
class Resolved:
    """The mapping, and the operation that will resolve it if the work was queued."""

    mapping: Mapping
    operation: Operation | None = None


# The id of a judgment, and the verdict on its reference from a state of the collection to before another, or today.
Ruling = tuple[int, int, int | None, references.Verdict]


def resolve(mapping: Mapping, *, by: User | None = None) -> Resolved:
    """Resolve every judgment of `mapping`: at once if that is quick, else by an operation on the queue.

    The limits are the settings BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS (references), _MAX_DOCS (documents of the
    collection) and _MAX_WALL_MS. An attempt that takes longer is rolled back and queued. The old resolutions stay until
    one transaction replaces them all. A queued operation counts against the quota of `by`, by default the mapping's
    owner. Raises ResolveError if the dataset has no frozen version, OperationActiveError if an operation is already
    resolving the mapping, and QuotaError.
    """
    if mapping.collection.kind == Collection.Kind.EXTERNAL:
        add_judged_documents(mapping)
    if Operation.active_on(mapping):
        raise OperationActiveError(f'The mapping "{mapping}" is already being resolved: wait, or cancel it.')
    number = list_judgments(load_basis(mapping)).count()
    documents = list_live(mapping.collection).count()
    if (
        number <= settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS
        and documents <= settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS
    ):
        try:
            return Resolved(resolve_now(mapping, limit_ms=settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_WALL_MS))
        except TookTooLongError:
            refresh(mapping)
    with transaction.atomic():
        read_again(Mapping.objects.select_for_update(no_key=True), mapping.pk)  # a deletion waits
        operation = start_operation(
            Operation.Kind.RESOLVE,
            subject_id=mapping.pk,
            by=by or mapping.owner,
            batches=[({"refs": number}, max(1, number))],
        )
    return Resolved(mapping, operation)


def resolve_now(mapping: Mapping, *, limit_ms: float | None = None) -> Mapping:
    """Resolve in this process at any size, in one transaction; concurrent calls wait for each other.

    Raises TookTooLongError and changes nothing after more than `limit_ms` milliseconds.
    """
    ends = None if limit_ms is None else time.monotonic() + limit_ms / 1000
    with transaction.atomic():
        locked = read_again(Mapping.objects.select_for_update(), mapping.pk)
        basis = load_basis(locked)
        return store_rulings(locked, basis, compute_rulings(locked, basis, ends=ends))


def add_judged_documents(mapping: Mapping) -> None:
    """Add the documents that the judgments name now to the mapping's collection of external ids."""
    judgments = list_judgments(load_basis(mapping)).order_by().values_list("doc_ref", flat=True)
    references.add_judged_ids(mapping.collection, judgments.iterator(chunk_size=CHUNK))


def is_stale(mapping: Mapping) -> bool:
    """Check whether the dataset or the collection has changed since `mapping` was resolved. Costs two queries."""
    if mapping.status == Mapping.Status.PENDING:
        return False
    return load_basis(mapping) != Basis(mapping.dataset_version, mapping.collection_fingerprint)


def load_basis(mapping: Mapping) -> Basis:
    """Load the dataset's latest frozen version and the collection's current fingerprint."""
    version = DatasetVersion.objects.filter(dataset=mapping.dataset_id, frozen_at__isnull=False).first()
    fingerprint = Collection.objects.values_list("fingerprint", flat=True).get(pk=mapping.collection_id)
    return Basis(version, fingerprint)


def list_judgments(basis: Basis) -> QuerySet[Judgment]:
    """Return the judgments of every frozen version up to the basis': runs of older versions may be measured again.

    Leaves out judgments that only the draft has: they may change, and no benchmark reads them. Raises ResolveError if
    no version is frozen yet.
    """
    if basis.version is None:
        raise ResolveError("The dataset has no frozen version yet: freeze its draft, then resolve.", field="dataset")
    return Judgment.objects.filter(query__dataset=basis.version.dataset_id, since__lte=basis.version.number)


def compute_rulings(mapping: Mapping, basis: Basis, *, ends: float | None = None) -> Iterator[list[Ruling]]:
    """Yield the rulings on all judgments, CHUNK at a time, in all states of the collection that were searched.

    Each chunk costs at most nine queries. Raises TookTooLongError if a chunk, also the last one, is stored after the
    time `ends`.
    """
    judgments = list_judgments(basis).order_by("id").values_list("id", "doc_ref").iterator(chunk_size=CHUNK)
    while chunk := list(islice(judgments, CHUNK)):
        history = _load_history(mapping.collection, (doc_ref for _, doc_ref in chunk))
        yield [
            (judgment_id, *ruling)
            for judgment_id, doc_ref in chunk
            for ruling in references.resolve_over_time(doc_ref, history)
        ]
        if ends is not None and time.monotonic() > ends:
            raise TookTooLongError


def load_catalogue(collection: Collection, doc_refs: Iterable[object]) -> references.Catalogue:
    """Load the catalogue of a collection's live documents that match one of `doc_refs`."""
    catalogue = {}
    for field, values in _list_lookups(doc_refs).items():
        having = list_live(collection).filter(**{f"{field}__in": values}).order_by().values(field)
        for value, document_id, documents in having.values_list(field, Min("id"), Count("id")):
            catalogue[field, str(value)] = references.Match(document_id, documents)
    return catalogue


def _load_history(collection: Collection, doc_refs: Iterable[object]) -> references.History:
    """Load the documents that match or matched one of `doc_refs` in a searched state of the collection."""
    history: dict[tuple[str, str], list[references.Period]] = {}
    was_searched = collection.states.exists()
    for field, values in _list_lookups(doc_refs).items():
        path = f"document__{field}" if field in NEVER_CHANGED else field
        live = list_live(collection).filter(**{f"{field}__in": values})
        rows = [(value, since, None, *match) for value, since, *match in _group(live, "id", field, "since")]
        if was_searched:
            former = FormerDocument.objects.filter(document__collection=collection, **{f"{path}__in": values})
            rows += _group(former, "document", path, "since", "until")
        for value, since, until, *match in rows:
            period = references.Period(references.Match(*match), since, until)
            history.setdefault((field, str(value)), []).append(period)
    return history


def _group(rows: QuerySet[Model], document: str, *by: str) -> list[tuple[Any, ...]]:
    """Return the distinct values of fields, each with the least document and the number of documents."""
    grouped = rows.order_by().values(*by).annotate(least=Min(document), documents=Count(document))
    return list(grouped.values_list(*by, "least", "documents"))


def _list_lookups(doc_refs: Iterable[object]) -> dict[str, set[str]]:
    """Return the values to look up in each field of documents."""
    values_by_field: dict[str, set[str]] = {}
    for doc_ref in doc_refs:
        try:
            lookups = references.read_reference(doc_ref).lookups
        except references.InvalidReferenceError:
            continue
        for field, value in lookups:
            values_by_field.setdefault(field, set()).add(value)
    return values_by_field


def store_rulings(mapping: Mapping, basis: Basis, chunks: Iterable[list[Ruling]]) -> Mapping:
    """Replace the resolutions of `mapping` by `chunks` and update its counts, in one transaction under a row lock."""
    with transaction.atomic():
        locked = read_again(Mapping.objects.select_for_update(), mapping.pk)
        Resolution.objects.filter(mapping=locked).delete()
        for chunk in chunks:
            _copy(locked, chunk)
        locked.dataset_version = basis.version
        locked.collection_fingerprint = basis.fingerprint
        locked.resolved_at = timezone.now()
        _count(locked)
        locked.save(update_fields=RESULT_FIELDS)
    return locked


def _copy(mapping: Mapping, chunk: list[Ruling]) -> None:
    table = Resolution._meta.db_table
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(COLUMNS)}) FROM STDIN") as copy,
    ):
        for judgment_id, since, until, (outcome, key, document_id, reason) in chunk:
            copy.write_row((mapping.pk, judgment_id, since, until, document_id, outcome.value, key, reason))


def _count(mapping: Mapping) -> None:
    """Set counts and status from the stored resolutions of the latest version's judgments.

    `conflicts` counts the pairs of query and document whose judgments have different grades; the truth takes the
    highest (`apps.mappings.truth`).
    """
    version = mapping.dataset_version
    assert version is not None
    # Joins instead of a subquery, because the planner has no statistics on these new rows. With joins it looks up each
    # resolution's judgment and query by key, and does not scan all judgments for each resolution.
    alive = filter_alive(version.number, "judgment__") & filter_alive(version.number, "judgment__query__")
    current = Resolution.objects.at(None).filter(alive, mapping=mapping).order_by()
    counts = dict(current.values_list("outcome").annotate(Count("id")))
    graded = current.filter(document__isnull=False).values("judgment__query", "document")
    disputed = graded.annotate(grades=Count("judgment__grade", distinct=True)).filter(grades__gt=1)
    mapping.counts = {outcome: counts.get(outcome, 0) for outcome in Resolution.Outcome.values}
    mapping.counts["conflicts"] = disputed.count()
    mapping.mapped_count = counts.get(Resolution.Outcome.RESOLVED, 0)
    mapping.total_count = sum(counts.values())
    complete = mapping.mapped_count == mapping.total_count
    mapping.status = Mapping.Status.RESOLVED if complete else Mapping.Status.PARTIAL


TROUBLES = ("not_found", "ambiguous", "invalid_ref", "conflicts")
MAX_LISTED = 3


def build_facts(mapping: Mapping) -> dict[str, object]:
    """Return the state of `mapping` as JSON-ready values."""
    return {
        **attributes(mapping, "id", "name", "status"),
        "dataset_version": mapping.dataset_version.number if mapping.dataset_version else None,
        "mapped": mapping.mapped_count,
        "total": mapping.total_count,
        "counts": mapping.counts,
    }


def describe(mapping: Mapping) -> str:
    """Describe how far `mapping` is resolved: counts by outcome, and the first judgments without a document."""
    counts = (f"{name.replace('_', ' ')} {mapping.counts[name]:,}" for name in TROUBLES if mapping.counts.get(name))
    troubles = ", ".join(counts)
    line = f'Mapping "{mapping}" is {mapping.status}: {mapping.mapped_count:,} of {mapping.total_count:,} judgments'
    line += f" ({troubles})." if troubles else "."
    unresolved = Resolution.objects.at(None).filter(mapping=mapping, document=None)
    lost = unresolved.order_by("judgment__query_id", "judgment_id")
    first = lost.values_list("judgment__query__key", "judgment__doc_ref")[:MAX_LISTED]
    examples = [f"{key[:60]} {json.dumps(doc_ref, ensure_ascii=False)[:120]}" for key, doc_ref in first]
    if not examples:
        return line
    more = lost.count() - len(examples)
    suffix = f" and {more:,} more" if more else ""
    return f"{line} Without a document: {', '.join(examples)}{suffix}."
