"""Rows to try every address with: in each world the parameters of addresses name things that belong together."""

from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from apps.accounts.tokens import open_sign_in
from apps.collections.models import Collection
from apps.datasets.editing.queries import add_query
from apps.datasets.models import Dataset
from apps.datasets.records import QueryRecord
from apps.execution.launching import launch
from apps.experiments.manifests import build_manifest
from apps.experiments.reproducing import reproduce
from apps.judging.llm.launching import start_judging
from apps.judging.models import Grade, Round
from apps.judging.opening import RoundOptions, open_round
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.operations.working import wait
from apps.records.models import Benchmark, QueryResult, Run, Schedule
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.verdicts.gates.baselines import approve
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.created import create_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round, make_schedule
from tests.library import make_library
from tests.rankings import change_rankings
from tests.retrieval.llm_server import ollama_server

World = dict[str, Any]  # values as they are in JSON
QUERIES: Any = {
    "q1": [({"document_id": "d1"}, 1)],
    "q3": [({"document_id": "start"}, 1)],
    "q4": [],
}  # as in the examples


def measured() -> list[World]:
    """A benchmark of two runs with values for each query, the second a baseline; an index that is being built.

    Twice, the second time with a baseline that is retired.
    """
    mapping = make_gated()
    Collection.objects.update(name="shelf")
    Dataset.objects.update(name="gated")
    benchmark = search(mapping, GOOD, POOR)
    index = Index.objects.create(collection=mapping.collection, name="words", encoder="keyword:a")
    good, poor = benchmark.runs.order_by("run_order")
    old, new = pinned(good), pinned(poor)
    world = fill_world(mapping, benchmark, good, index, build_index(index)) | {"baseline": str(poor.pk)}
    return [world | {"baseline_id": str(baseline.pk)} for baseline in (new, old)]


def ready(mapping: Mapping) -> World:
    """A mapping that was resolved over an index that is ready, a benchmark that can start, and a draft."""
    benchmark = create_benchmark(mapping, name="can start", matrix={"search_modes": ["sparse"]})
    index = mapping.collection.indexes.get(name="keywords")
    add_query(mapping.dataset, QueryRecord("new", "What is new?"))
    return fill_world(
        mapping, benchmark, benchmark.runs.first(), index, Operation.objects.filter(subject_id=index.pk).get()
    )


def running(mapping: Mapping) -> World:
    """A benchmark that runs, with a run that failed; an index that was never built."""
    benchmark = create_benchmark(mapping, name="runs", matrix={"search_modes": ["sparse"], "top_k_values": [20, 50]})
    operation = launch(benchmark)
    failed = benchmark.runs.get(run_order=2)
    Run.objects.filter(pk=failed.pk).update(status=Run.Status.FAILED, error_message="The encoder is gone.")
    index = create_index(mapping.collection, name="not built", encoder="keyword:a")
    return without_key(fill_world(mapping, benchmark, failed, index, operation))


def repeated(mapping: Mapping, judge: User) -> World:
    """A benchmark that was run from the manifest of another, with a query that failed.

    Its round has the whole pool as its items, of which a language model judged one.
    """
    first = create_benchmark(mapping, name="first", matrix={"k_values_for_metrics": [5], "primary_k": 5})
    wait(launch(first))
    first.refresh_from_db()
    manifest = build_manifest(first)
    again = reproduce(manifest)
    operation = wait(launch(again))
    again.refresh_from_db()
    change_rankings(QueryResult.objects.filter(run__benchmark=again, query__key="q001"), error="The database was away.")
    again.runs.update(failed_queries=1)
    index = mapping.collection.indexes.get(name="keywords")
    declared = RoundOptions(name="what is missing", order="depth", depth=10)
    judged = open_round(list(again.runs.all()), declared, judges=[judge], owner=judge)
    with ollama_server():
        wait(start_judging(judged, "ollama:llama3", by=judge, item_limit=1)[1])
    return fill_world(mapping, again, again.runs.get(), index, operation, judged) | {"manifest": manifest}


def unused() -> World:
    """What nothing else needs, so that it can be deleted and mapped; and a benchmark to be retried."""
    mapping = make_mapping(make_dataset({"q": []}, "failed"), make_collection("failed", [{}]), name="failed")
    benchmark = make_benchmark(mapping, [None], name="failed", status=Status.FAILED)
    collection, dataset = make_collection("unused", [{}]), make_dataset(QUERIES, "unused")
    of_them = make_mapping(dataset, make_collection("other", [{}]), name="unused")
    index = create_index(of_them.collection, name="unused", encoder="keyword:a")
    operation = Operation.objects.create(kind="index", subject_id=index.pk, status=Status.COMPLETED)
    world = fill_world(of_them, benchmark, benchmark.runs.get(), index, operation)
    world |= {"collection_id": str(collection.pk), "document_id": str(collection.documents.get().uuid)}
    return without_key(world)


def without_key(world: World) -> World:
    """So that new ones can be added, and those of the examples be meant."""
    return {name: value for name, value in world.items() if name != "query_key"}


def fill_world(
    mapping: Mapping,
    benchmark: Benchmark,
    run: Run | None,
    index: Index,
    operation: Operation,
    judged: Round | None = None,
) -> World:
    """Return the values of the parameters; without a round, of one with one item."""
    query = mapping.dataset.queries.filter(judgments__isnull=False).order_by("id").first()
    document = mapping.collection.documents.order_by("id").first()
    assert query
    assert document
    assert run
    judged = judged or make_round(run, compares=run.status == Run.Status.COMPLETED)
    item = judged.items.order_by("place")[0]
    return {
        "round_id": str(judged.pk),
        "item_id": item.pk,
        "collection_id": str(mapping.collection_id),
        "dataset_id": str(mapping.dataset_id),
        "mapping_id": str(mapping.pk),
        "query_id": query.pk,
        "judgment_id": query.judgments.order_by("id")[0].pk,
        "number": mapping.dataset.versions.order_by("-number")[0].number,
        "benchmark_id": str(benchmark.pk),
        "document_id": str(document.uuid),
        "index_id": str(index.pk),
        "operation_id": str(operation.pk),
        "run_id": str(run.pk),
        "query_key": query.key,  # and what other parameters and bodies name
        "item_ids": [item.pk],
        "run_ids": list(map(str, benchmark.runs.order_by("run_order").values_list("pk", flat=True))),
        "run": list(map(str, benchmark.runs.order_by("run_order").values_list("pk", flat=True))),
    }


def worlds(owner: User) -> list[World]:
    """Return one of each, whose collections, datasets, mappings, benchmarks and indexes are the owner's."""
    created = measured()
    library = make_library(documents=6, queries=2)
    created += [repeated(library, owner), running(library), ready(library), unused()]
    repeated_nightly = make_schedule(Benchmark.objects.get(name="can start"))
    for model in (Collection, Dataset, Mapping, Benchmark, Index, Round, Schedule):
        model.objects.update(owner=owner)
    lin = User.objects.create_user("lin", is_staff=True)
    for number, judged in enumerate(Round.objects.order_by("created_at")):
        judged.judges.set([owner, lin])
        for judge, grade in ((owner, 2), (lin, 2 - 2 * (number % 2))):  # of every other world's round they are split
            row = {"judge": judge, "judge_name": judge.username, "grade": grade, "graded_at": timezone.now()}
            Grade.objects.create(item=judged.items.order_by("place")[0], **row)
    refresh = str(open_sign_in(owner))
    manifest = next(world["manifest"] for world in created if "manifest" in world)
    common = {"baseline_id": created[0]["baseline_id"], "refresh": refresh, "manifest": manifest}
    common["schedule_id"] = str(repeated_nightly.pk)
    return [common | world for world in created]


def world(owner: User, name: str = "world") -> dict[str, Any]:
    """Return something of the owner's for each parameter that an address has: add yours."""
    collection = make_collection(name, [{}], owner=owner)
    dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]}, name, owner=owner)
    mapping = make_mapping(dataset, collection, name=name, owner=owner)
    benchmark = make_benchmark(mapping, [0.5], owner=owner)
    index = Index.objects.create(collection=collection, name="index", encoder="keyword:a", owner=owner)
    baseline = approve(benchmark.runs.get(), name="main", reason="Because.", by=owner)
    judged = make_round(benchmark.runs.get(), owner=owner)
    return {
        "collection_id": collection.pk,
        "dataset_id": dataset.pk,
        "mapping_id": mapping.pk,
        "query_id": dataset.queries.get().pk,
        "judgment_id": dataset.queries.get().judgments.get().pk,
        "number": 1,
        "benchmark_id": benchmark.pk,
        "document_id": collection.documents.get().uuid,
        "index_id": index.pk,
        "operation_id": build_index(index).pk,
        "run_id": benchmark.runs.get().pk,
        "baseline_id": baseline.pk,
        "round_id": judged.pk,
        "item_id": judged.items.get().pk,
        "schedule_id": make_schedule(benchmark, owner=owner).pk,
    }
