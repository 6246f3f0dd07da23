"""`run_benchmark` as the runner of SPEC-002: a file of queries in, lines and baseline files out."""

import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.execution.defining.previewing import preview
from apps.mappings.creating import ensure_mapping
from apps.mappings.filters import MissingModulesError, find_missing_modules
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, QueryResult, Run, StageList
from apps.results.exporters.spec002 import Console, write_baselines
from apps.retrieval.indexing import build_index, create_index
from tests.commands import output_of
from tests.kept import made_once
from tests.rankings import change_rankings

MODULES = {"einvoice": "electronic invoice", "dock": "cross docking", "tax": "tax of an invoice"}
QUERIES = [
    {"id": 1, "query": "invoice", "version": "16.0", "category": "sales", "difficulty": "easy", "expected": ["tax"]},
    {"id": 2, "query": "docking", "version": "18.0", "category": "stock", "difficulty": "hard", "expected": ["dock"]},
]


@pytest.fixture
def odoo(transactional_db: None) -> None:
    make_odoo()


@made_once
def make_odoo() -> Collection:
    collection = create_collection("odoo")
    versions = zip(MODULES.items(), ("16.0", "18.0", "16.0"), strict=True)
    records = [DocumentRecord(name, name, text, metadata={"version": version}) for (name, text), version in versions]
    import_documents(collection, records)
    wait(build_index(create_index(collection, name="words")))
    return collection


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    return write(tmp_path, QUERIES)


def write(folder: Path, queries: list[dict[str, Any]]) -> Path:
    declared = [{**query, "expected_modules": query["expected"]} for query in queries]
    for query in declared:
        query.pop("expected")
    path = folder / "benchmark_queries.json"
    path.write_text(json.dumps({"benchmark_queries": declared}))
    return path


run = partial(output_of, "run_benchmark")


def map_queries(path: Path) -> Mapping:
    dataset = import_dataset(read_dataset(path)).version.dataset
    return ensure_mapping(dataset, Collection.objects.get())


def test_a_file_of_queries_runs_in_one_go(odoo, queries, tmp_path):
    process = run("--queries", queries, "--collection", "odoo", "--verbose", "--output-dir", tmp_path / "out" / "deep")
    (file,) = (tmp_path / "out" / "deep").iterdir()
    assert "Starting benchmark execution...\n\n[1/2] Query:" in process
    first = process.index('[1/2] Query: "invoice"\n      Version: 16.0 | Category: sales | Difficulty: easy\n')
    assert first < process.index('\n\n[2/2] Query: "docking"') < process.index("BENCHMARK COMPLETED")
    values = r"P@3=0\.333 \| P@5=0\.20 \| R@10=1\.0 \| MRR=\d\.\d+"
    assert re.search(rf"✓ Executed in \d+ms\n      Metrics: {values}\n", process)
    content = json.loads(file.read_text())
    assert content["metadata"]["limit"] == 10
    assert "execution" not in {*content["metadata"], *content["detailed_results"][0]}  # each time is the query's own
    assert content["detailed_results"][1]["returned_modules"] == ["dock"]
    assert Benchmark.objects.get().execution == "isolated"
    again = run("--queries", queries, "--collection", "odoo", "--wait")
    assert (Mapping.objects.count(), Benchmark.objects.count()) == (1, 2)
    assert "completed, index words" in again


def test_shared_times_are_marked_where_they_were_asked_for(odoo, queries, tmp_path):
    declared = ("--queries", queries, "--collection", "odoo", "--execution", "shared")
    process = run(*declared, "--verbose", "--output-dir", tmp_path / "out")
    assert re.search(r"✓ Executed in \d+ms \(shared\)\n", process)
    assert re.search(r"Execution Time: [\d.]+ seconds \(shared\)\n", process)
    (file,) = (tmp_path / "out").iterdir()
    content = json.loads(file.read_text())
    assert [piece.get("execution") for piece in (content["metadata"], *content["detailed_results"])] == ["shared"] * 3
    assert "ms/query (shared)" in run(*declared, "--wait")


def test_limit_caps_the_documents_considered_per_query(odoo, queries, tmp_path):
    declared = ("--queries", queries, "--collection", "odoo", "--modes", "sparse", "--lexical", "bm25,fts")
    facts = json.loads(run(*declared, "--output-dir", tmp_path, "--limit", "1", "--json"))
    assert [Path(path).parent.name for path in facts["files"]] == ["run-1", "run-2"]
    for path in facts["files"]:
        content = json.loads(Path(path).read_text())
        assert content["metadata"]["limit"] == 1
        assert all(len(one["returned_modules"]) <= 1 for one in content["detailed_results"])


def test_several_runs_are_reported_in_sequence(odoo, queries):
    process = run("--queries", queries, "--collection", "odoo", "--verbose", "--lexical", "bm25,fts")
    order = [process.index(f"Run {n} of 2: ") for n in (1, 2)] + [process.rindex(f"Run {n} of 2: ") for n in (1, 2)]
    assert order == sorted(order)
    assert process.count("[2/2]") == process.count("BENCHMARK COMPLETED") == 2


def test_failed_query_shows_its_reason_and_is_not_averaged(odoo, queries):
    run("--queries", queries, "--collection", "odoo", "--wait")
    late = QueryResult.objects.filter(query__key="2")
    change_rankings(late, error="The query took 60 s.", document_ids=[], scores=[])
    lines: list[str] = []
    Console(Benchmark.objects.get(), lines.append).close({})
    text = "\n".join(lines)
    assert "      ✗ Failed: The query took 60 s.\n" in text
    assert "Failed Queries: 1, not in the means" in text
    assert text.count("Metrics: P@3") == 1


def test_lines_are_printed_in_query_order(odoo, queries):
    run("--queries", queries, "--collection", "odoo", "--wait")
    stored = list(StageList.objects.order_by("query"))
    StageList.objects.all().delete()
    lines: list[str] = []
    console = Console(Benchmark.objects.get(), lines.append)
    for result, message in ((stored[1], 0), (stored[0], 2)):
        result.pk = None
        result.save()
        console.poll()
        assert sum(line.startswith("[") for line in lines) == message


def test_failed_run_writes_its_error_without_figures(odoo, queries, tmp_path):
    run("--queries", queries, "--collection", "odoo", "--wait")
    Run.objects.update(status=Run.Status.FAILED, error_message="The index is gone.")
    lines: list[str] = []
    Console(Benchmark.objects.get(), lines.append).close({})
    assert lines[-1] == "The run failed: The index is gone."
    (path,) = write_baselines(Benchmark.objects.get(), tmp_path / "out").values()
    content = json.loads(path.read_text())
    assert [content["metadata"][name] for name in ("valid_queries", "failed_queries")] == [0, 2]
    assert {row["error"] for row in content["detailed_results"]} == {"The index is gone."}
    assert set(content["aggregate_metrics"].values()) == {None}
    assert {kind: owner["count"] for kind, owner in content["per_category"].items()} == {"sales": 0, "stock": 0}


def test_total_time_includes_failed_queries(odoo, queries, tmp_path):
    run("--queries", queries, "--collection", "odoo", "--wait")
    change_rankings(QueryResult.objects.filter(query__key="2"), error="Too slow.", document_ids=[], scores=[])
    StageList.objects.filter(lengths__isnull=False, query__key="2").update(total_ms=60_000)
    (path,) = write_baselines(Benchmark.objects.get(), tmp_path / "out").values()
    assert json.loads(path.read_text())["metadata"]["execution_time_seconds"] >= 60


def test_missing_modules_stop_a_run_until_they_are_allowed(odoo, tmp_path):
    queries = write(tmp_path, [{**QUERIES[0], "expected": ["tax", "gone"]}])
    with pytest.raises(CommandError, match=r"lacks 1 of the modules .* expects: gone\. Import .*--allow-missing"):
        run("--queries", queries, "--collection", "odoo", "--wait")
    assert not any(model.objects.exists() for model in (Benchmark, Mapping, Dataset))
    mapping = map_queries(queries)
    assert find_missing_modules(mapping) == {"gone": []}
    with pytest.raises(MissingModulesError):
        preview(mapping, {"search_modes": ["sparse"]})
    assert preview(mapping, {"search_modes": ["sparse"]}, allow_missing=True).labels
    process = run(mapping.name, "--allow-missing", "--verbose")
    assert "Expected: 2 modules" in process
    assert "R@10=0.5" in process


def test_module_split_across_version_documents_is_rejected_with_remedy(odoo, tmp_path):
    stock = [DocumentRecord(f"stock-{one}", "stock", "stock", metadata={"version": one}) for one in ("16.0", "18.0")]
    import_documents(Collection.objects.get(), stock, remove_missing=False)
    queries = write(tmp_path, [{**QUERIES[0], "expected": ["stock"]}])
    remedy = "Import each as one document: the id is the module's name, and the metadata lists its versions."
    with pytest.raises(CommandError, match=rf"expects: stock\. {remedy} Or allow .* Use --allow-missing"):
        run("--queries", queries, "--collection", "odoo", "--wait")


def test_queries_of_benchbench_json_run_in_one_go_too(odoo, tmp_path):
    path = tmp_path / "questions.json"
    fields = {"query_key": "1", "query_text": "invoice", "relevant_docs": [{"doc_ref": {"document_id": "tax"}}]}
    path.write_text(json.dumps({"queries": [fields]}))
    assert "[1/1] Query: " in run("--queries", path, "--collection", "odoo", "--verbose")


def test_a_query_may_be_about_several_versions(odoo, tmp_path):
    both = {**QUERIES[0], "query": "invoice docking", "version": ["18.0", "16.0"], "expected": ["tax", "dock"]}
    never = {**QUERIES[0], "id": 3, "version": ["17.0", "19.0"], "expected": ["tax"]}
    process = run("--queries", write(tmp_path, [both]), "--collection", "odoo", "--verbose", "--output-dir", tmp_path)
    assert "Version: 18.0 or 16.0 |" in process
    (file,) = tmp_path.glob("baseline_*.json")
    (answer,) = json.loads(file.read_text())["detailed_results"]
    assert (answer["version"], answer["expected_modules"]) == (["18.0", "16.0"], ["tax", "dock"])
    assert set(answer["returned_modules"]) >= {"tax", "dock"}, "one is there in 16.0, the other in 18.0"
    with pytest.raises(CommandError, match=r"tax \(exists, but not with version 17\.0 or 19\.0\)"):
        run("--queries", write(tmp_path, [never]).rename(tmp_path / "never.json"), "--collection", "odoo", "--wait")


def test_module_absent_from_the_requested_version_is_missing(odoo, tmp_path):
    wrong = {**QUERIES[0], "version": "17.0", "expected": ["tax", "gone"]}
    queries = write(tmp_path, [wrong, {**wrong, "id": 3, "version": "18.0", "expected": ["tax"]}, QUERIES[1]])
    message = (
        r"lacks 2 of the modules .*: gone, tax \(exists, but not with version 17\.0 or version 18\.0\)\. Import .*"
    )
    with pytest.raises(CommandError, match=message + "--allow-missing"):
        run("--queries", queries, "--collection", "odoo", "--wait")
    mapping = map_queries(queries)
    (warning,) = preview(mapping, {"search_modes": ["sparse"]}, allow_missing=True).warnings
    assert warning.startswith("1 query finds nothing")
    assert "(version 17.0)" in warning
    err = io.StringIO()
    call_command("run_benchmark", mapping.name, "--allow-missing", "--verbose", stdout=io.StringIO(), stderr=err)
    assert Run.objects.get().warnings == [warning]
    assert warning in err.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"benchmark_queries\.json does not exist"),
        ('{"benchmark_queries": [', r"benchmark_queries\.json is not JSON: .* \(line 1, column \d+\)"),
        ('{"benchmark_queries": [{"id": 1}]}', r"benchmark_queries\[0\]"),
    ],
)
def test_an_unreadable_file_ends_in_a_sentence(odoo, tmp_path, content, message):
    path = tmp_path / "benchmark_queries.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CommandError, match=message) as caught:
        run("--queries", path, "--collection", "odoo", "--output-dir", tmp_path / "out")
    assert caught.value.returncode == 1
    assert not Mapping.objects.exists()
    assert not (tmp_path / "out").exists()


def test_invalid_output_folder_is_reported_before_searching(odoo, queries, tmp_path):
    with pytest.raises(CommandError, match=r"results cannot be created: Not a directory"):
        run("--queries", queries, "--collection", "odoo", "--output-dir", queries / "results")
    assert not QueryResult.objects.exists()


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--queries", "q.json"],
        ["library", "--queries", "q.json", "--collection", "odoo"],
        ["library", "--collection", "odoo"],
        ["library", "--verbose", "--json"],
        ["library", "--limit", "5"],
        ["library", "--verbose", "--limit", "500"],
        ["library", "--verbose", "--top-k", "5"],
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(options):
    with pytest.raises(CommandError) as caught:
        run(*options)
    assert caught.value.returncode == 2
