"""The ground truth of a mapping as one hash, the same on any site that holds the same data."""

from hashlib import sha256

from apps.collections.models import Document
from apps.datasets.models import Judgment, Query
from apps.mappings.truth import Truth


def truth_hash(truth: Truth) -> str:
    """Return the SHA-256 over query keys, what they are judged for, and the grades, in three queries.

    A document enters by its external id, an unresolved judgment by the hash of its reference. Rankings of equal
    documents have equal values against truths of equal hash.
    """
    judged = {key for graded in truth.grades.values() for key in graded}
    queries = dict(Query.objects.filter(pk__in=truth.grades).values_list("pk", "key"))
    documents = Document.objects.filter(pk__in=[key for key in judged if key > 0]).values_list("pk", "external_id")
    judgments = Judgment.objects.filter(pk__in=[-key for key in judged if key < 0]).values_list("pk", "ref_hash")
    names = {pk: f"document {name}" for pk, name in documents} | {-pk: f"reference {name}" for pk, name in judgments}
    digest = sha256()
    for query_id in sorted(queries, key=lambda pk: queries[pk]):
        digest.update(f"{queries[query_id]}\n".encode())
        for line in sorted(f"\t{names[key]}\t{grade}\n" for key, grade in truth.grades[query_id].items()):
            digest.update(line.encode())
    return digest.hexdigest()
