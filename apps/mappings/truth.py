"""The ground truth of a mapping: the grade of each judged document for each query."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Self

from django.db.models import QuerySet

from apps.collections.duplicates import find_duplicates
from apps.datasets.models import DatasetVersion, filter_alive
from apps.mappings.models import Mapping, Resolution
from benchbench.errors import ConflictError
from benchbench.ir.measures import SharedGrades, count_once

FIELDS = (
    "judgment__query_id",
    "judgment_id",
    "document_id",
    "judgment__grade",
    "document__external_id",
    "judgment__ref_hash",
)


class TruthError(ConflictError):
    """The mapping is not resolved for the dataset version."""

    code = "mapping_not_resolved"


@dataclass(frozen=True, slots=True)
class TruthPolicies:
    """The policies of a benchmark that decide the grades of documents."""

    unresolved: Literal["count", "drop"] = "count"
    identical_texts: Literal["different", "judged"] = "different"


USUAL = TruthPolicies()


class Unresolved(int):
    """The key of a judgment without a document in a truth: its negated id, which no document in a ranking has.

    As an integer it fits into arrays and sorts like the ids of documents.
    """

    @classmethod
    def from_judgment(cls, judgment_id: int) -> Self:
        return cls(-judgment_id)

    @property
    def judgment_id(self) -> int:
        return -self


@dataclass(frozen=True)
class Truth:
    """Grades per query of a dataset version, by the documents of a collection.

    `grades` has every query of the version, judged or not: {query id: {document id or Unresolved: grade}}.
    `unresolved_count` is the number of unresolved judgments. `unresolved_share` is their share of the ideal gain,
    whether they are counted or dropped:

        Σ max(0, grade) over the unresolved judgments / Σ max(0, grade) over the whole truth     (0 where that is 0)

    With the policy `identical_texts` "judged" the grades of a query are `SharedGrades` if a judged document has
    duplicates. `keys` has the keys of the queries by id. `names` identifies each document by its external id, and each
    unresolved judgment by the hash of its reference, so names are equal on every site.
    """

    grades: dict[int, dict[int, int]]
    unresolved_count: int
    unresolved_share: float
    keys: dict[int, str]
    names: dict[int, str]


def read_truth(
    mapping: Mapping,
    version: DatasetVersion,
    *,
    state: int | None = None,
    policies: TruthPolicies = USUAL,
    query_ids: Collection[int] | None = None,
) -> Truth:
    """Load the truth of `version` as `mapping` resolved it, in two queries; with `query_ids` only of those queries.

    `state` is the number of the searched state of the collection in which judgments find their documents, None today's.
    Of several judgments of one document for a query, the highest grade counts. Each unresolved judgment counts as a
    document of its own under an Unresolved key ("count") or is left out ("drop"). With `identical_texts` "judged" each
    duplicate of a judged document has its grade, or the highest of several; three more queries find them. Raises
    TruthError if the mapping was never resolved, or only for older versions.
    """
    queries = version.queries if query_ids is None else version.queries.filter(id__in=query_ids)
    keys = dict(queries.values_list("id", "key"))
    return read_truths([(mapping, state)], version, keys, policies=policies, query_ids=query_ids)[0]


def read_truths(
    resolved: Sequence[tuple[Mapping, int | None]],
    version: DatasetVersion,
    keys: dict[int, str],
    *,
    policies: TruthPolicies = USUAL,
    query_ids: Collection[int] | None = None,
) -> list[Truth]:
    """Load the truths of mappings in states of their collections, like `read_truth`. One query for each distinct one.

    `keys` has the keys of queries by id.
    """
    truths = {
        (mapping, state): build_truth(
            list_resolutions(mapping, version, state=state, query_ids=query_ids).values_list(*FIELDS),
            keys,
            policies=policies,
            duplicates=duplicates_of(mapping, state),
        )
        for mapping, state in dict.fromkeys(resolved)
    }
    return [truths[each] for each in resolved]


def list_resolutions(
    mapping: Mapping, version: DatasetVersion, *, state: int | None, query_ids: Collection[int] | None = None
) -> QuerySet[Resolution]:
    """Return the resolutions of all judgments of the version, or of some queries, in a state, in no order.

    Every judgment of a frozen version up to the resolved one has a resolution. Raises TruthError as `read_truth` does.
    """
    require_resolved(mapping, version)
    alive = filter_alive(version.number, "judgment__") & filter_alive(version.number, "judgment__query__")
    resolutions = Resolution.objects.at(state).filter(alive, mapping=mapping).order_by()
    return resolutions if query_ids is None else resolutions.filter(judgment__query__in=query_ids)


def build_truth(
    rows: Iterable[tuple[Any, ...]],
    keys: dict[int, str],
    *,
    policies: TruthPolicies = USUAL,
    duplicates: Callable[[Collection[int]], list[dict[int, str]]] = lambda documents: [],
) -> Truth:
    """Build the truth from `rows`, the FIELDS of `list_resolutions`.

    `keys` has the keys of queries by id. `duplicates` finds those of the judged documents, as `find_duplicates`.
    """
    grades: dict[int, dict[int, int]] = {query_id: {} for query_id in keys}
    names: dict[int, str] = {}
    for query_id, judgment_id, document_id, grade, external_id, ref_hash in rows:
        of_query = grades[query_id]
        key = Unresolved.from_judgment(judgment_id) if document_id is None else document_id
        of_query[key] = max(grade, of_query.get(key, grade))
        names[key] = f"reference {ref_hash}" if document_id is None else f"document {external_id}"
    if policies.identical_texts == "judged":
        _share_grades(grades, names, duplicates({key for key in names if not isinstance(key, Unresolved)}))
    every = [(query, key, grade) for query, graded in grades.items() for key, grade in count_once(graded).items()]
    lost = [row for row in every if isinstance(row[1], Unresolved)]
    gain, lost_gain = (sum(max(0, grade) for *_, grade in rows) for rows in (every, lost))
    for query_id, key, _ in lost if policies.unresolved == "drop" else ():
        del grades[query_id][key]
    return Truth(grades, len(lost), lost_gain / gain if gain else 0.0, keys, names)


def duplicates_of(mapping: Mapping, state: int | None) -> Callable[[Collection[int]], list[dict[int, str]]]:
    """Return the search for duplicates of documents in a state of a mapping's collection."""
    return lambda documents: find_duplicates(mapping.collection, documents, state=state)


def _share_grades(grades: dict[int, dict[int, int]], names: dict[int, str], groups: Iterable[dict[int, str]]) -> None:
    """Give every duplicate of a judged document the highest grade of its text.

    The document that stands for a text is the judged one with that grade, of several the first by external id.
    """
    members = {document: group for group in groups for document in group}
    for query_id, graded in grades.items():
        originals: dict[int, int] = {}
        for group in {id(members[key]): members[key] for key in graded if key in members}.values():
            judged = sorted((key for key in group if key in graded), key=lambda key: (-graded[key], group[key]))
            originals |= {key: judged[0] for key in group if key != judged[0]}
            names |= {key: f"document {name}" for key, name in group.items()}
        if originals:
            shared = {key: graded[original] for key, original in originals.items()}
            grades[query_id] = SharedGrades({**graded, **shared}, originals)


def require_resolved(mapping: Mapping, version: DatasetVersion) -> None:
    """Raise TruthError if `mapping` was never resolved, or only for older versions."""
    if version.dataset_id != mapping.dataset_id:
        raise TruthError(f'The mapping "{mapping}" belongs to another dataset than {version}.')
    if mapping.dataset_version is None:
        raise TruthError(f'The mapping "{mapping}" is pending: resolve it first.')
    if version.number > mapping.dataset_version.number:
        raise TruthError(
            f'The mapping "{mapping}" was resolved for {mapping.dataset_version}; {version} is newer: resolve it again.'
        )


def hash_truth(truth: Truth, query_ids: Iterable[int] | None = None) -> str:
    """Return the SHA-256 of query keys, judged documents and grades; with `query_ids` only of those queries.

    Documents enter by external id, unresolved judgments by the hash of their reference. Equal rankings have equal
    values against truths of equal hash.
    """
    digest = sha256()
    for query_id in sorted(truth.keys if query_ids is None else query_ids, key=lambda pk: truth.keys[pk]):
        digest.update(f"{truth.keys[query_id]}\n".encode())
        graded = truth.grades[query_id]
        lines = [f"\t{truth.names[key]}\t{grade}\n" for key, grade in graded.items()]
        if isinstance(graded, SharedGrades):
            lines += [f"\t{truth.names[key]}\t= {truth.names[one]}\n" for key, one in graded.originals.items()]
        for line in sorted(lines):
            digest.update(line.encode())
    return digest.hexdigest()
