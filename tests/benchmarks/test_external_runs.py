"""What becomes of runs that were made elsewhere, once they are here: they are treated as any other run."""

import csv

import pytest
from django.utils import timezone

from apps.collections.editing import delete_collection
from apps.collections.importing import import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.datasets.models import Query
from apps.execution.launching import delete_benchmark, launch, retry
from apps.experiments.manifests import build_manifest
from apps.mappings.creating import create_mapping, delete_dataset, delete_mapping, ensure_external
from apps.mappings.resolving import is_stale, resolve
from apps.records.lists.reading import RankingsDeletedError
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, Run
from apps.results.exporting import export, export_to
from apps.retrieval.indexing import create_index
from apps.verdicts.comparing import compare_runs
from apps.verdicts.gates.baselines import approve
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.rules import read_rules
from benchbench.errors import BenchbenchError, ConflictError
from tests.benchmarks.gated import pinned
from tests.benchmarks.imported import imported, means_of, write
from tests.created import create_benchmark, run_benchmark
from tests.factories import add_judgment, add_version, make_dataset

pytestmark = pytest.mark.django_db


def test_later_dataset_version_is_measured_from_stored_rankings(dataset, run_file):
    benchmark = imported(dataset, run_file).benchmark
    before = means_of(benchmark.runs.get())
    add_judgment(Query.objects.get(key="q1"), {"uri": "e"}, 1, since=2)  # an id of the run, by another key
    add_judgment(Query.objects.get(key="q3"), {"document_id": "nowhere"}, 1, since=2)
    add_version(dataset)
    assert is_stale(benchmark.mapping)
    mapping = resolve(benchmark.mapping).mapping
    assert (mapping.status, mapping.mapped_count) == ("resolved", 7)
    rescored = rescore(benchmark)
    assert rescored.evaluations[0].means["R@10"] == pytest.approx((2 / 3 + 0 + 1 / 2) / 3)
    assert means_of(benchmark.runs.get()) == before
    newer = imported(dataset, run_file).benchmark
    assert newer.dataset_version.number == 2
    assert means_of(newer.runs.get()) == rescored.evaluations[0].means
    assert means_of(imported(dataset, run_file, version=benchmark.dataset_version).benchmark.runs.get()) == before


def test_benchmark_without_rankings_takes_no_more_runs(dataset, run_file, tmp_path):
    benchmark = imported(dataset, run_file).benchmark
    Benchmark.objects.update(rankings_deleted_at=timezone.now())
    with pytest.raises(RankingsDeletedError, match="import its files into a new benchmark"):
        imported(dataset, write(tmp_path / "another.run", "q1 Q0 a 1 1 bm25\n"), benchmark=benchmark)


def test_nothing_of_it_can_be_searched(dataset, run_file):
    benchmark = imported(dataset, run_file).benchmark
    stub = benchmark.mapping.collection
    with pytest.raises(ConflictError, match="holds external runs: you cannot start it"):
        launch(benchmark)
    with pytest.raises(ConflictError, match="you cannot retry it"):
        retry(benchmark)
    with pytest.raises(BenchbenchError, match="no experiment file"):
        build_manifest(benchmark)
    with pytest.raises(BenchbenchError, match="no text to index"):
        create_index(stub, name="i")
    with pytest.raises(BenchbenchError, match="has only ids of documents"):
        create_benchmark(benchmark.mapping, name="x", matrix={})
    with pytest.raises(ConflictError, match="holds the ids of external runs"):
        import_documents(stub, [DocumentRecord("a", "", "text")])


def test_deleting_follows_the_usual_rules(dataset, run_file, admin_user):
    ((run, _),) = imported(dataset, run_file).runs
    approve(run, name="main", reason="good", by=admin_user)
    mapping = run.benchmark.mapping
    with pytest.raises(ConflictError, match="is used by the baseline"):
        delete_benchmark(run.benchmark)
    with pytest.raises(ConflictError, match="is used by"):
        delete_mapping(mapping)
    with pytest.raises(ConflictError, match="is used by"):
        delete_dataset(dataset)
    with pytest.raises(ConflictError, match="is used by"):
        delete_collection(mapping.collection)
    run.baselines.all().delete()
    delete_benchmark(run.benchmark)
    delete_dataset(dataset)
    assert not Collection.objects.exists()


def test_external_runs_of_a_dataset_share_one_mapping(dataset, admin_user):
    Collection.objects.create(name="questions (external runs)")
    first = ensure_external(dataset)
    assert ensure_external(dataset) == first
    assert first.collection.kind == "external"
    assert first.name.startswith("questions ")
    with pytest.raises(ConflictError, match="the ids of external runs for one dataset"):
        create_mapping(make_dataset(name="others"), first.collection)


def test_unknown_external_run_values_are_exported_empty(dataset, run_file, tmp_path):
    directory = export_to(imported(dataset, run_file).benchmark, "strategy", tmp_path)
    for name, columns in (
        ("search_results.csv", ["embed_calls", "llm_calls"]),
        ("summary.csv", ["total_embed_calls", "total_llm_calls"]),
    ):
        with (directory / name).open(newline="") as file:
            assert {row[column] for row in csv.DictReader(file) for column in columns} == {""}


def test_an_imported_run_can_be_gated_and_compared(dataset, run_file, tmp_path):
    importing = imported(dataset, run_file, write(tmp_path / "other.run", "q1 Q0 a 1 1 other\n"))
    first, second = (run for run, _ in importing.runs)
    assert gate(first, rules=read_rules("floors: {nDCG@10: 0.1}")).outcome == "passed"
    timed = gate(first, rules=read_rules("latency_ms: {mean: 100}"))
    assert (timed.outcome, timed.outcome.phrase) == ("undecided", "cannot be decided")
    assert compare_runs([first, second]).labels == ("bm25", "other")


def test_external_run_is_gated_against_a_local_baseline(library, tmp_path):
    personal = Run.objects.get(benchmark=run_benchmark(library, name="ours", matrix={"search_modes": ["sparse"]}))
    lines = "".join(map(str, export(personal, "trec-run"))).splitlines(keepends=True)
    columns = [line.split() for line in lines]
    worse = "".join(f"{query} Q0 {document} 1 {rank} worse\n" for query, _, document, rank, *_ in columns)
    dataset = library.dataset
    files = write(tmp_path / "same.run", "".join(lines)), write(tmp_path / "worse.run", worse)
    same, reversed_ = (run for run, _ in imported(dataset, *files).runs)
    rules = read_rules("against_baseline: {ndcg@10: {may_lose: 0.01}}")
    baseline = pinned(personal)
    claimed = gate(same, rules=rules, baseline=baseline)
    assert claimed.outcome == "passed", claimed
    assert gate(reversed_, rules=rules, baseline=baseline).outcome == "failed"
    assert gate(personal, rules=rules, baseline=pinned(same, "theirs")).outcome == "passed"
