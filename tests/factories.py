"""Small objects for tests, written straight into the tables."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from apps.accounts.bin import keep_deleted
from apps.accounts.models import Deletion
from apps.collections.editing import delete_collection
from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import JudgmentRecord
from apps.judging.models import Round, RoundItem, RoundRun, Slot
from apps.mappings.models import Mapping
from apps.operations.models import Status
from apps.records.models import Benchmark, Evaluation, Preparation, Repeat, Run, Schedule
from benchbench.ir.encoding import DEFAULT


def make_collection(name: str = "library", documents: Sequence[dict[str, Any]] = (), **fields: Any) -> Collection:
    """Return a collection with documents of the given fields; ids and hashes are made up where none are given."""
    fingerprint = _sha256(name)
    collection = Collection.objects.create(name=name, document_count=len(documents), fingerprint=fingerprint, **fields)
    created = []
    for number, declared in enumerate(documents, start=1):
        external_id = declared.get("external_id", f"d{number}")
        recognised = {"external_id": external_id, "content_hash": _sha256(external_id)}
        created.append(Document(collection=collection, **recognised | declared))
    Document.objects.bulk_create(created)
    return collection


def make_dataset(
    queries: dict[str, Sequence[tuple[Any, int]]] | None = None, name: str = "questions", **fields: Any
) -> Dataset:
    """Return a dataset with one frozen version; `queries` gives each key its judgments as (reference, grade)."""
    dataset = Dataset.objects.create(name=name, **fields)
    declared = queries or {}
    created = Query.objects.bulk_create(Query(dataset=dataset, key=key, text=f"What is {key}?") for key in declared)
    Judgment.objects.bulk_create(judged(query, *one) for query in created for one in declared[query.key])
    add_version(dataset)
    return dataset


def judged(query: Query, doc_ref: Any, grade: int, *, since: int = 1) -> Judgment:
    """Return a judgment that is not stored yet."""
    ref_hash = JudgmentRecord(doc_ref, grade).ref_hash
    return Judgment(query=query, doc_ref=doc_ref, ref_hash=ref_hash, grade=grade, since=since)


def add_judgment(query: Query, doc_ref: Any, grade: int, *, since: int = 1) -> Judgment:
    judgment = judged(query, doc_ref, grade, since=since)
    judgment.save()
    return judgment


def add_version(dataset: Dataset, *, frozen: bool = True) -> DatasetVersion:
    """Add the dataset's next version."""
    number = dataset.versions.count() + 1
    return DatasetVersion.objects.create(
        dataset=dataset,
        number=number,
        content_hash=_sha256(f"{dataset.name} {number}"),
        frozen_at=timezone.now() if frozen else None,
    )


def make_mapping(
    dataset: Dataset, collection: Collection, *, name: str = "questions on library", **fields: Any
) -> Mapping:
    """Return a mapping that says it is resolved, without resolutions."""
    created = {"status": Mapping.Status.RESOLVED, "dataset_version": dataset.versions.first(), **fields}
    created.setdefault("collection_fingerprint", collection.fingerprint)
    return Mapping.objects.create(name=name, dataset=dataset, collection=collection, **created)


def make_benchmark(
    mapping: Mapping, values: Sequence[float | None] = (), *, name: str = "which is better", **fields: Any
) -> Benchmark:
    """Return a completed benchmark with a run for each mean nDCG@10; None makes a run that failed.

    The means of every other measure are half of that, and each query has the mean as its value.
    """
    version = mapping.dataset_version
    assert version is not None
    measures = [f"{name}@{k}" for name in ("nDCG", "P", "R") for k in (5, 10)] + ["RR", "AP"]
    created = {"status": Status.COMPLETED, "matrix": {}, "measures": measures, "k_values": [5, 10], **fields}
    created.setdefault("total_runs", len(values))
    benchmark = Benchmark.objects.create(mapping=mapping, dataset_version=version, name=name, **created)
    if values:
        make_runs(benchmark, dict(enumerate(values, start=1)))
    return benchmark


def make_runs(benchmark: Benchmark, values: dict[int, float | None]) -> None:
    """Add runs by their order, each with its mean nDCG@10, evaluated on all queries; or, with None, failed."""
    runs = Run.objects.bulk_create(build_run(benchmark, order, value) for order, value in values.items())
    queries = list(benchmark.dataset_version.queries.order_by("id").values_list("id", flat=True))
    pairs = zip(runs, values.values(), strict=True)
    Evaluation.objects.bulk_create(build_evaluation(run, value, queries) for run, value in pairs if value is not None)


def build_run(benchmark: Benchmark, order: int, value: float | None) -> Run:
    """Return a run that is not stored yet."""
    return Run(
        benchmark=benchmark,
        run_order=order,
        label=f"dense · top {order * 10}",
        config={
            "search_mode": "dense",
            "top_k": order * 10,
            "use_reranker": False,
            "rrf_k": 60,
            "score_threshold": None,
        },
        config_hash=f"{order:016}",
        status=Run.Status.FAILED if value is None else Run.Status.COMPLETED,
        error_message="The encoder is gone." if value is None else "",
        timing={"total_ms": 10.0 * order, "search_ms": 10.0 * order, "execution": "shared"},
    )


def build_evaluation(run: Run, value: float, queries: list[int]) -> Evaluation:
    """Return an evaluation that is not stored yet, whose queries all have the mean."""
    benchmark = run.benchmark
    means = {name: value if name == "nDCG@10" else value / 2 for name in benchmark.measures}
    return Evaluation(
        run=run,
        dataset_version=benchmark.dataset_version,
        policies={"unresolved": benchmark.unresolved, "empty_queries": benchmark.empty_queries},
        policies_hash=_sha256("policies"),
        means=means,
        measures=benchmark.measures,
        query_ids=queries,
        values=[[means[name]] * len(queries) for name in benchmark.measures] if queries else [],
        query_count=len(queries),
    )


def make_round(run: Run, *, judges: Sequence[Any] = (), compares: bool = True, items: int = 1, **fields: Any) -> Round:
    """Return an open round of the run's mapping: of its first queries, and the first document. It compares the run."""
    mapping = run.benchmark.mapping
    created = {
        "name": "what is missing",
        "depth": 10,
        "measure": "nDCG@10",
        "item_count": items,
        "pool_size": items,
        **fields,
    }
    created.setdefault("scale", [{"grade": grade, "name": f"Grade {grade}", "description": ""} for grade in range(4)])
    opened = Round.objects.create(mapping=mapping, dataset_version=run.benchmark.dataset_version, **created)
    opened.judges.set(judges)
    if compares:
        RoundRun.objects.create(round=opened, run=run)
    planned: dict[str, Any] = {"planned_probability": 1.0, "in_planned_sample": False}
    pair: dict[str, Any] = {"round": opened, "document": mapping.collection.documents.order_by("id")[0]}
    for index, query in enumerate(mapping.dataset.queries.order_by("id")[:items], start=1):
        item = RoundItem.objects.create(query=query, place=index, **planned, **pair)
        Slot.objects.create(round=opened, item=item, place=index, number=1)
    return opened


def make_schedule(benchmark: Benchmark, *, repeats: int = 1, **fields: Any) -> Schedule:
    """Return a schedule of the benchmark, with times at which it was refused."""
    schedule = Schedule.objects.create(**{"name": "nightly", "cron": "0 3 * * *", "benchmark": benchmark, **fields})
    rows = [Repeat(schedule=schedule, due_at=timezone.now(), problem="No index was ready.") for _ in range(repeats)]
    Repeat.objects.bulk_create(rows)
    return schedule


def make_deletion(owner: User, name: str = "thrown away") -> Deletion:
    """Return the deletion of a collection, which is in the bin."""
    collection = make_collection(name, [{"title": "Pears"}], owner=owner)
    with keep_deleted(collection, owner) as deletion:
        delete_collection(collection)
    return deletion


def ensure_preparation() -> Preparation:
    """Return an evaluation that waits for an index, of the first user, made if it is missing."""
    waiting = Preparation.objects.first()
    if waiting:
        return waiting
    mapping = Mapping.objects.order_by("pk")[0]
    index_ids = mapping.collection.indexes.values_list("pk", flat=True)
    user = User.objects.order_by("pk")[0]
    return Preparation.objects.create(started_by=user, mapping=mapping, index_ids=list(index_ids[:1]), question="modes")


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def plain_encoders(names):
    """Return encoders of a grid with the prompts and precision of their models."""
    return [(name, DEFAULT) for name in names]
