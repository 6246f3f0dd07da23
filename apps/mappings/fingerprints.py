"""The ground truth of a mapping as one hash, the same on any site that holds the same data."""

from collections.abc import Iterable
from hashlib import sha256

from apps.mappings.truth import Truth


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
