"""Rows of every kind, each below parents of its own."""

import uuid

from django.contrib.auth.models import Group, User

from apps.accounts.tokens import issue_token
from apps.mappings.models import Resolution
from apps.operations.models import Batch, Operation, Status
from apps.records.models import Baseline
from apps.retrieval.models import CachedVector, ChunkSet, Index, VectorSpace
from benchbench.site.history import note
from tests.factories import (
    make_benchmark,
    make_collection,
    make_dataset,
    make_deletion,
    make_mapping,
    make_round,
    make_schedule,
)
from tests.rankings import add_ranking


def make_row_everywhere(number: int) -> None:
    """Add a row to every table that has a list, each below parents of its own: the hardest case for a list.

    A parent has two of what is listed below it.
    """
    Group.objects.create(name=f"row {number}")
    name = f"row {number}"
    owner = User.objects.create_user(name)
    collection = make_collection(name, [{"title": name}, {"title": f"{name}, other"}])
    judgments = [({"document_id": "d1"}, 1), ({"document_id": "d2"}, 1)]
    dataset = make_dataset({"q": judgments, "r": judgments}, name=name)
    mapping = make_mapping(dataset, collection, name=name, owner=owner)
    chunk_set = ChunkSet.objects.create(
        collection=collection, strategy="flat", fingerprint=name, collection_fingerprint=name
    )
    index = Index.objects.create(collection=collection, name=name, encoder="keyword:apple", chunk_set=chunk_set)
    benchmark = make_benchmark(mapping, [0.5, 0.6], name=name, owner=owner)
    runs, queries = list(benchmark.runs.all()), list(dataset.queries.order_by("key"))
    Baseline.objects.create(dataset=dataset, run=runs[0], name=name, reason=name, approved_by=owner)
    make_round(runs[0], name=name, owner=owner, judges=[owner, User.objects.create_user(f"{name}, judge")], items=2)
    make_schedule(benchmark, name=name, owner=owner, repeats=2)
    document = collection.documents.order_by("external_id")[0]
    for query in queries:
        add_ranking(runs[0], query, [document.pk], scores=[1.0])
        hits = [
            Resolution(mapping=mapping, judgment=judgment, document=document, outcome="resolved")
            for judgment in query.judgments.all()
        ]
        Resolution.objects.bulk_create(hits)
    operation = Operation.objects.create(
        kind="index", subject_id=index.pk, started_by=owner, status=Status.COMPLETED, queue=uuid.uuid4().hex
    )
    Batch.objects.bulk_create(Batch(operation=operation, ordinal=ordinal) for ordinal in range(2))
    note(owner, [collection, dataset], "Imported.")
    space = VectorSpace.objects.create(encoder=name, revision="1", kind="query", dimension=1)
    for piece in ("a", "b"):
        issue_token(owner, name=f"{name} {piece}")
        make_deletion(owner, f"{name} {piece} deleted")
        CachedVector.objects.create(space=space, text_hash=f"{name} {piece}", vector=b"1234")
