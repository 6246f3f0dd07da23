"""The ground truth of a mapping: which documents are how relevant to which query."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Self

from django.db.models import QuerySet

from apps.datasets.models import DatasetVersion, alive_in
from apps.mappings.models import Mapping, Resolution
from benchbench.errors import ConflictError

FIELDS = (
    "mapping_id",
    "judgment__query_id",
    "judgment_id",
    "document_id",
    "judgment__grade",
    "document__external_id",
    "judgment__ref_hash",
)


class TruthError(ConflictError):
    """The mapping does not know the truth that is asked for."""

    code = "mapping_not_resolved"


class Unresolved(int):
    """The key in a truth of a judgment without a document: a number that is no document's, so that no ranking has it.

    It is the judgment's id below 0, and goes through arrays and sorting as the ids of documents do.
    """

    @classmethod
    def of(cls, judgment_id: int) -> Self:
        return cls(-judgment_id)

    @property
    def judgment_id(self) -> int:
        return -self


@dataclass(frozen=True)
class Truth:
    """Grades per query of a dataset version, in the documents of a collection.

    `grades` has every query of the version, judged or not: {query id: {document id, or Unresolved: grade}}.
    `unresolved_count` counts the unresolved judgments, and `unresolved_share` says what part of the ideal gain they
    hold, whether they are counted or dropped:

        Σ max(0, grade) over the unresolved judgments / Σ max(0, grade) over the whole truth     (0 where that is 0)

    `keys` are those of the queries, and `names` say what is judged the same on any site: a document by its external
    id, an unresolved judgment by the hash of its reference.
    """

    grades: dict[int, dict[int, int]]
    unresolved_count: int
    unresolved_share: float
    keys: dict[int, str]
    names: dict[int, str]


def truth(
    mapping: Mapping,
    version: DatasetVersion,
    *,
    unresolved: Literal["count", "drop"] = "count",
    query_ids: Collection[int] | None = None,
) -> Truth:
    """Return the truth of `version` as `mapping` resolved it, in two queries; with `query_ids` that of those queries.

    Several judgments of a query that resolve to one document are one: the highest grade counts. Each unresolved
    judgment is a document of its own under an Unresolved key ("count"), or left out ("drop"). Raises TruthError where
    the mapping was never resolved, or only for versions before this one.
    """
    queries = version.queries if query_ids is None else version.queries.filter(id__in=query_ids)
    keys = dict(queries.values_list("id", "key"))
    return truths([mapping], version, keys, unresolved=unresolved, query_ids=query_ids)[0]


def truths(
    mappings: Sequence[Mapping],
    version: DatasetVersion,
    keys: dict[int, str],
    *,
    unresolved: Literal["count", "drop"] = "count",
    query_ids: Collection[int] | None = None,
) -> list[Truth]:
    """Return the truths of several mappings as `truth` does, in one query; `keys` are those of the queries by id."""
    rows = judgments_of(mappings, version, query_ids=query_ids).values_list(*FIELDS)
    return truths_in(rows, mappings, keys, unresolved=unresolved)


def judgments_of(
    mappings: Sequence[Mapping], version: DatasetVersion, *, query_ids: Collection[int] | None = None
) -> QuerySet[Resolution]:
    """Return what became of every judgment of the version, or of some queries, in no order.

    Every judgment of a frozen version up to the resolved one has a resolution. Raises TruthError as `truth` does.
    """
    for mapping in mappings:
        require_resolved(mapping, version)
    alive = alive_in(version.number, "judgment__") & alive_in(version.number, "judgment__query__")
    resolutions = Resolution.objects.filter(alive, mapping__in=mappings).order_by()
    return resolutions if query_ids is None else resolutions.filter(judgment__query__in=query_ids)


def truths_in(
    rows: Iterable[tuple[Any, ...]],
    mappings: Sequence[Mapping],
    keys: dict[int, str],
    *,
    unresolved: Literal["count", "drop"] = "count",
) -> list[Truth]:
    """Return the truths that rows of FIELDS of `judgments_of` make."""
    judged: dict[Any, dict[int, dict[int, int]]] = {
        mapping.pk: {query_id: {} for query_id in keys} for mapping in mappings
    }
    names: dict[int, str] = {}
    for mapping_id, query_id, judgment_id, document_id, grade, external_id, ref_hash in rows:
        of_query = judged[mapping_id][query_id]
        key = Unresolved.of(judgment_id) if document_id is None else document_id
        of_query[key] = max(grade, of_query.get(key, grade))
        names[key] = f"reference {ref_hash}" if document_id is None else f"document {external_id}"
    return [_truth(judged[mapping.pk], unresolved, keys, names) for mapping in mappings]


def _truth(
    grades: dict[int, dict[int, int]],
    unresolved: Literal["count", "drop"],
    keys: dict[int, str],
    names: dict[int, str],
) -> Truth:
    lost = {
        (query, key): grade
        for query, graded in grades.items()
        for key, grade in graded.items()
        if isinstance(key, Unresolved)
    }
    ideal = sum(max(0, grade) for graded in grades.values() for grade in graded.values())
    lost_gain = sum(max(0, grade) for grade in lost.values())
    if unresolved == "drop":
        for query_id, key in lost:
            del grades[query_id][key]
    return Truth(grades, len(lost), lost_gain / ideal if ideal else 0.0, keys, names)


def require_resolved(mapping: Mapping, version: DatasetVersion) -> None:
    """Raise TruthError where `mapping` was never resolved, or only for versions before this one."""
    if version.dataset_id != mapping.dataset_id:
        raise TruthError(f'The mapping "{mapping}" is of another dataset than {version}.')
    if mapping.dataset_version is None:
        raise TruthError(f'The mapping "{mapping}" is pending: resolve it first.')
    if version.number > mapping.dataset_version.number:
        raise TruthError(
            f'The mapping "{mapping}" was resolved for {mapping.dataset_version}; {version} is newer: resolve it again.'
        )


def truth_hash(truth: Truth, query_ids: Iterable[int] | None = None) -> str:
    """Return the SHA-256 over query keys, what they are judged for, and the grades; with `query_ids` of those queries.

    A document enters by its external id, an unresolved judgment by the hash of its reference. Rankings of equal
    documents have equal values against truths of equal hash.
    """
    digest = sha256()
    for query_id in sorted(truth.keys if query_ids is None else query_ids, key=lambda pk: truth.keys[pk]):
        digest.update(f"{truth.keys[query_id]}\n".encode())
        for line in sorted(f"\t{truth.names[key]}\t{grade}\n" for key, grade in truth.grades[query_id].items()):
            digest.update(line.encode())
    return digest.hexdigest()
