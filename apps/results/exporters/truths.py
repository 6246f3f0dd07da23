"""Names of judged documents, also of those that the collection does not hold."""

from collections.abc import Collection

from apps.benchmarks.models import Benchmark
from apps.collections.models import Document
from apps.datasets.models import Judgment
from apps.mappings.truth import Unresolved

UNRESOLVED = "unresolved:"


def names_of(keys: Collection[int], benchmark: Benchmark) -> dict[int, str]:
    """Return the external id of each key of a truth; of an unresolved judgment the `document_id` that it states, or
    where there is none, or it would name another document too, a made one.
    """
    names = dict(Document.objects.filter(pk__in=keys).values_list("pk", "external_id"))
    unresolved = {key.judgment_id for key in keys if isinstance(key, Unresolved)}
    lost = Judgment.objects.filter(pk__in=unresolved).order_by("pk")
    named = [(judgment, judgment.doc_ref.get("document_id")) for judgment in lost if isinstance(judgment.doc_ref, dict)]
    document_ids = {judgment.pk: str(name) for judgment, name in named if name}
    known = benchmark.mapping.collection.documents.filter(external_id__in=set(document_ids.values()))
    there = set(known.values_list("external_id", flat=True))
    given: set[tuple[int, str]] = set()
    for judgment in lost:
        name = document_ids.get(judgment.pk, "")
        if not name or name in there or (judgment.query_id, name) in given:
            name = f"{UNRESOLVED}{judgment.pk}"
        given.add((judgment.query_id, name))
        names[Unresolved.of(judgment.pk)] = name
    return names
