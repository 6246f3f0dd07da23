"""Names of judged documents, also of those that the collection does not hold."""

from collections.abc import Collection

from apps.benchmarks.models import Benchmark
from apps.collections.models import Document
from apps.datasets.models import Judgment

UNRESOLVED = "unresolved:"


def names_of(keys: Collection[int], benchmark: Benchmark) -> dict[int, str]:
    """Return the external id of each key of a truth (`apps.mappings.truth`); of a negative one, an unresolved judgment,
    the `document_id` that it states, or where there is none, or it would name another document too, a made one.
    """
    names = dict(Document.objects.filter(pk__in=keys).values_list("pk", "external_id"))
    lost = Judgment.objects.filter(pk__in={-key for key in keys if key < 0}).order_by("pk")
    found = [(judgment, judgment.doc_ref.get("document_id")) for judgment in lost if isinstance(judgment.doc_ref, dict)]
    stated = {judgment.pk: str(name) for judgment, name in found if name}
    known = benchmark.mapping.collection.documents.filter(external_id__in=set(stated.values()))
    there = set(known.values_list("external_id", flat=True))
    given: set[tuple[int, str]] = set()
    for judgment in lost:
        name = stated.get(judgment.pk, "")
        if not name or name in there or (judgment.query_id, name) in given:
            name = f"{UNRESOLVED}{judgment.pk}"
        given.add((judgment.query_id, name))
        names[-judgment.pk] = name
    return names
