"""Flowbaby's run.json: scored against the dataset that it answers, it gives the values that are stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Document
from apps.collections.records import DocumentRecord
from apps.datasets.formats.flowbaby import read_flowbaby
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.mappings.creating import create_mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.records.models import Benchmark, QueryResult, Run
from apps.results.exporting import export_to
from apps.results.triage.queries import load_evaluation
from apps.retrieval.indexing import build_index, create_index
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.rules import read_rules
from benchbench.files.flowbaby import read_run
from benchbench.files.flowbaby_results import compare_summaries, read_summary
from benchbench.ir.canonical import CanonicalizationError
from benchbench.ir.gate import Outcome
from benchbench.scoring.command import main
from tests.created import run_benchmark
from tests.files.samples import write_file
from tests.library import ENCODER, FRUITS
from tests.results.exported import export_text

METADATA = {"dataset_id": "fruit", "version": "1.0.0", "slice_definitions": {"short": ""}}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A Flowbaby dataset over documents of which many score alike, one judged item that no one has."""
    topics = [
        {"query_id": f"q{index}", "query_text": f"{fruit} {FRUITS[index - 1]}", "slice_ids": ["short"] * (index % 2)}
        for index, fruit in enumerate(FRUITS)
    ]
    qrels = [
        {"query_id": f"q{position}", "canonical_item_id": f"d{document}", "relevance": 1 + document % 2}
        for position in range(len(FRUITS) - 1)  # the last topic has no judgment
        for document in range(position, position + 12, 4)
    ]
    qrels.append({"query_id": "q0", "canonical_item_id": "gone", "relevance": 2})
    folder = tmp_path / "fruit"
    folder.mkdir()
    for name, content in {"metadata": METADATA, "topics": topics, "qrels": qrels}.items():
        write_file(folder / f"{name}.json", content)
    return folder


def make_benchmark(directory: Path) -> Benchmark:
    collection = create_collection("library")
    texts = {f"d{index}": f"{FRUITS[index % 10]} {FRUITS[index % 7]}" for index in range(24)}
    # What metadata says of topics is another id than the judgments have: over a Flowbaby dataset it does not count.
    records = [DocumentRecord(key, key, text, metadata={"topic": f"about {key}"}) for key, text in texts.items()]
    import_documents(collection, records)
    dataset = import_dataset(read_flowbaby(directory), name="another name").version.dataset
    collection.refresh_from_db()
    wait(build_index(create_index(collection, name="keywords", encoder=ENCODER)))
    mapping = create_mapping(dataset, collection, name="library")
    resolve(mapping)
    mapping.refresh_from_db()
    matrix = {"search_modes": ["dense", "hybrid"], "k_values_for_metrics": [5, 10]}
    return run_benchmark(mapping, name="fruit", matrix=matrix)


def test_scores_are_the_stored_values(transactional_db, directory, tmp_path, capsys):
    for run in make_benchmark(directory).runs.all():
        file = export_to(run, "flowbaby-run", tmp_path / f"{run.run_order}.json")
        arguments = ["--dataset", str(directory), "--run", str(file), "-k", "5", "10"]
        assert main([*arguments, "--output", str(tmp_path / "results.json"), "--json", "--by-query"]) == 0
        assert json.loads((tmp_path / "results.json").read_text()) == json.loads(
            export_text(run, "flowbaby-results-1.1")
        )
        scored = json.loads(capsys.readouterr().out)["by_query"]
        evaluation: Any = load_evaluation(run)
        keys = dict(run.benchmark.dataset_version.queries.values_list("pk", "key"))
        for name in ("P@5", "R@10", "nDCG@10", "AP@10", "RR"):
            column = evaluation.values[evaluation.measures.index(name)] if name in evaluation.measures else []
            for query_id, value in zip(evaluation.query_ids, column, strict=False):
                assert scored.get(keys[query_id], {name: 0.0})[name] == pytest.approx(value, abs=1e-12), name


def test_each_mean_is_named_and_usable_in_gates(transactional_db, directory, tmp_path):
    """One topic has no judgment: it is in the benchmark's mean alone."""
    run = make_benchmark(directory).runs.get(run_order=1)
    results = json.loads(export_text(run, "flowbaby-results-1.1"))
    evaluation: Any = load_evaluation(run)
    figures = {
        "benchmark": evaluation.means["R@5"],
        results["means"]["macro_metrics"]: results["macro_metrics"]["recall@5"],
        results["means"]["aggregate_metrics"]: results["aggregate_metrics"]["recall@5"],
    }
    assert len(set(figures.values())) == 3
    for name, figure in figures.items():
        [verdict] = gate(run, rules=read_rules({"floors": {"recall@5": {"at_least": figure, "mean": name}}})).verdicts
        assert (verdict.checks[0].value, verdict.checks[0].mean, verdict.outcome) == (figure, name, Outcome.PASSED)


def test_its_summary_compares_with_that_of_score(transactional_db, directory, tmp_path):
    run = make_benchmark(directory).runs.get(run_order=1)
    file = export_to(run, "flowbaby-run", tmp_path / "run.json")
    exported, scored = export_to(run, "flowbaby-summary-1.1", tmp_path / "a.json"), tmp_path / "b.json"
    assert main(["--dataset", str(directory), "--run", str(file), "-k", "5", "10", "--summary", str(scored)]) == 0
    compared = compare_summaries(read_summary(exported), read_summary(scored))
    assert (compared["dataset_version"], compared["warnings"]) == ("fruit 1.0.0", [])
    assert {measure["difference"] for measure in compared["measures"].values()} == {0.0}


def test_a_document_is_the_item_that_its_metadata_names(exported, tmp_path):
    """Ranked d1, d2, d3: an id, stripped; a topic, by name; and one that a model wrote, which is left out."""
    fields = {"d1": {"topic_id": " t-1 "}, "d2": {"topic": "Auth", "topic_id": ""}, "d3": {"source": "LLM-answer"}}
    for name, metadata in fields.items():
        Document.objects.filter(external_id=name).update(metadata=metadata)
    run = exported.runs.get(run_order=1)
    entries = read_run(export_to(run, "flowbaby-run", tmp_path)).entries
    ranked = [(one.canonical_item_id, one.rank) for one in entries if one.query_id == "q0"]
    assert ranked == [("t-1", 1), ("7a87ae18-aef7-53e6-9b94-ae28c9772048", 2)]
    Document.objects.filter(external_id="d2").update(metadata={"topic_id": "t-1"})
    entries = read_run(export_to(run, "flowbaby-run", tmp_path, force=True)).entries
    assert [one.canonical_item_id for one in entries if one.query_id == "q0"] == ["t-1"], "an item is there once"


def test_exported_run_reads_back_with_the_stored_ranks(exported, tmp_path):
    run: Run = exported.runs.get(run_order=2)
    read = read_run(export_to(run, "flowbaby-run", tmp_path))
    names = dict(Document.objects.values_list("pk", "external_id"))
    results = QueryResult.objects.filter(run=run).select_related("query")
    stored = {(result.query.key, names[d], rank) for result in results for rank, d in enumerate(result.document_ids, 1)}
    assert read.run_id == str(run.pk)
    assert {(one.query_id, one.canonical_item_id, one.rank) for one in read.entries} == stored
    assert "q7" not in {one.query_id for one in read.entries}, "it failed"


def test_rules_that_are_not_known_name_no_item(exported):
    Dataset.objects.update(metadata={"canonicalization_version": "v9"})
    with pytest.raises(CanonicalizationError, match="version 'v9' is not known"):
        export_text(exported.runs.get(run_order=1), "flowbaby-run")
