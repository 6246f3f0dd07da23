"""Experiment files through the real importers, indexes and engine, by keyword encoders."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.experiments.experiments import ExperimentError, plan_experiment, prepare_experiment
from apps.records.models import Benchmark
from apps.results.exporters.strategy import build_files
from apps.retrieval.grids import Grid, plan_grid
from apps.retrieval.models import Index
from apps.retrieval.stores.chromadb_store import ChromaStore
from apps.retrieval.stores.sqlite_vec_store import SqliteVecStore
from benchbench.ir.planning.ann import find_arm
from tests.benchmarks.laboratory import EXPERIMENT, FRUITS, QUESTIONS, write, write_truth
from tests.commands import output_of
from tests.created import finish
from tests.factories import plain_encoders
from tests.retrieval.arms import require_installed
from tests.retrieval.llm_server import known_server


def run(path: Path, *, preset: str | None = None) -> Benchmark:
    benchmark = prepare_experiment(plan_experiment(path, preset=preset)).benchmark
    finish(benchmark)
    return benchmark


@pytest.mark.django_db(transaction=True)
def test_it_imports_indexes_and_measures_every_combination(folder):
    require_installed("chromadb:hnsw")
    backends = [{"name": "memory"}, {"name": "chromadb", "path": "stores/c"}]
    embeddings = [{"model": FRUITS}, {"model": "keyword:"}]
    strategies = [*EXPERIMENT["strategies"], {"name": "raptor", "max_layers": 2}]
    path = write(folder, backends=backends, embeddings=embeddings, strategies=strategies, llms=[{"model": "llama3"}])
    benchmark = run(path)
    assert (benchmark.status, benchmark.execution) == ("completed", "isolated")
    assert (benchmark.runs_per_query, benchmark.seed) == (2, 7)
    assert (benchmark.k_values, benchmark.primary_k, benchmark.description) == ([1, 3], 3, "Which is better?")
    runs = list(benchmark.runs.select_related("index"))
    assert [run.status for run in runs] == ["completed"] * 2 + ["failed"] * 6
    assert [(run.index.name, run.config.get("ann", "exact")) for run in runs if run.index][:5] == [
        (f"flat 40/5 sections · {FRUITS}", "exact"),
        (f"flat 40/5 sections · {FRUITS}", "chromadb:hnsw"),
        ("flat 40/5 sections · keyword:", "exact"),
        ("flat 40/5 sections · keyword:", "chromadb:hnsw"),
        (f"raptor 500/50 max_layers=2 seed=7 · {FRUITS} · llama3", "exact"),
    ]
    assert [run.error_message for run in runs][2:4] == [
        "Its index could not be built. 'keyword:' must have distinct keywords, such as keyword:apple,pear."
    ] * 2
    assert [share["mean"] for share in runs[1].provenance["ann"]["recall"]] == [1]
    raptor = runs[-1].index
    assert runs[-1].error_message == f"Its index could not be built. {raptor.error}"
    assert (raptor.strategy, raptor.llm) == ("raptor", "llama3")
    assert raptor.chunk_parameters == {"size": 500, "overlap": 50, "max_layers": 2, "cluster_threshold": 0.1, "seed": 7}
    assert not (folder / "stores").exists(), "what a store keeps is among the data of the site"
    assert benchmark.experiment["config"]["backends"][1]["path"] == str(folder / "stores/c"), "wherever it is run again"
    assert runs[0].config["top_k"] == 3
    assert runs[0].query_results.count() == 4 * 2
    evaluation = runs[0].evaluations.get()
    # Each expected document has nothing but the word that is asked for.
    assert evaluation.means["R@1"] == 1
    assert evaluation.means["RR"] == 1


@pytest.mark.django_db(transaction=True)
def test_running_it_again_imports_and_builds_nothing(folder):
    path = write(folder)
    first, second = run(path), run(path)
    assert first.mapping == second.mapping
    assert [one.index_id for one in first.runs.all()] == [one.index_id for one in second.runs.all()]
    assert [model.objects.count() for model in (Collection, Dataset, Index)] == [1, 1, 1]


@pytest.mark.django_db(transaction=True)
def test_its_indexes_are_those_of_an_index_grid(folder):
    path = write(folder, embeddings=[{"model": FRUITS}, {"model": FRUITS, "provider": "sentence-transformers"}])
    assert len(plan_experiment(path).combinations) == 1, "two names of one provider"
    run_of_one = run(path).runs.get()
    strategies = [("flat", {"size": 40, "overlap": 5, "sections": True}), ("flat", {"size": 20, "overlap": 5})]
    ready, new = plan_grid(run_of_one.index.collection, Grid(strategies, plain_encoders([FRUITS]), lexical=False))
    assert (ready.state, ready.index, ready.name) == ("ready", run_of_one.index, run_of_one.config["index"])
    assert new.state == "new"


@pytest.mark.django_db(transaction=True)
def test_changed_content_leaves_existing_data_unchanged(folder):
    path = write(folder)
    first = run(path)
    (folder / "documents/a.md").write_text("apple pie")
    write_truth(folder, [*QUESTIONS, ("q5", "apple", "E")])
    second = run(path)
    assert [one.name for one in Collection.objects.order_by("created_at")] == ["fruit", "fruit (2)"]
    assert [version.number for version in Dataset.objects.get().versions.order_by("number")] == [1, 2]
    assert (first.dataset_version.number, second.dataset_version.number) == (1, 2)
    write_truth(folder, QUESTIONS)
    assert run(path).dataset_version == first.dataset_version


@pytest.mark.django_db(transaction=True)
def test_limits_keep_expected_documents_and_first_queries(folder):
    benchmark = run(write(folder, data={**EXPERIMENT["data"], "max_documents": 4, "max_queries": 3}))
    mapping = benchmark.mapping
    assert sorted(mapping.collection.documents.values_list("external_id", flat=True)) == ["A", "B", "C", "F"]
    assert sorted(benchmark.dataset_version.queries.values_list("key", flat=True)) == ["q1", "q2", "q3"]
    assert (mapping.collection.name, mapping.dataset.name) == ("fruit (4 documents)", "fruit (3 queries)")
    assert mapping.status == "resolved"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("remaining", "message"),
    [
        (
            {"strategies": [{"name": "raptor"}], "llms": [{"model": "llama3"}], "backends": [{"name": "sqlite_vec"}]},
            "fruit.yaml has no combination that can run here: the language model server ollama is "
            "unknown: set BENCHBENCH_LLM_SERVERS; the store sqlite_vec needs the package sqlite-vec: pip install",
        ),
        (
            {"embeddings": [{"model": "text-embedding-3", "provider": "openai"}]},
            "the provider openai is unknown; choose one of sbert, sentence-transformers",
        ),
        (
            {"data": {**EXPERIMENT["data"], "documents_dir": "nowhere"}},
            "fruit.yaml, data.documents_dir: .*nowhere has no JSON files of documents",
        ),
        (
            {"data": {**EXPERIMENT["data"], "ground_truth_path": "nothing.json"}},
            "fruit.yaml, data.ground_truth_path: the file .*nothing.json does not exist",
        ),
    ],
)
def test_it_imports_nothing_where_nothing_can_run(folder, monkeypatch, remaining, message):
    monkeypatch.setattr(SqliteVecStore, "packages", {"sqlite-vec": "no_such_module"})
    with pytest.raises(ExperimentError, match=message):
        prepare_experiment(plan_experiment(write(folder, **remaining)))
    assert not Collection.objects.exists()
    assert not Dataset.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_no_benchmark_is_created_without_a_buildable_index(folder):
    with pytest.raises(
        ExperimentError, match=r"No index of fruit.yaml could be built. .*'keyword:' must have distinct"
    ):
        prepare_experiment(plan_experiment(write(folder, embeddings=[{"model": "keyword:"}])))
    assert not Benchmark.objects.exists()


def test_it_refuses_more_combinations_than_runs_are_allowed(folder, settings):
    settings.BENCHMARK_MAX_RUNS = 1
    with pytest.raises(ExperimentError, match="combines into 2 runs; at most 1 are allowed"):
        plan_experiment(write(folder, backends=[{"name": "memory"}, {"name": "pgvector"}]))


@pytest.mark.django_db(transaction=True)
def test_more_combinations_than_values_of_an_axis_are_allowed(folder, settings):
    settings.BENCHMARK_MAX_VALUES_PER_AXIS = 1
    memory, pgvector = run(write(folder, backends=[{"name": "memory"}, {"name": "pgvector"}])).runs.all()
    assert [*memory.query_results.values_list("document_ids")] == [*pgvector.query_results.values_list("document_ids")]


def test_language_models_multiply_only_strategies_that_use_them(folder):
    sizes = {"chunk_size": 300, "chunk_overlap": 30, "doc_top_k": 3}
    strategies = [{"name": name, **sizes} for name in ("flat", "raptor", "lod_embed", "lod_llm")]
    models = {"embeddings": [{"model": "one"}, {"model": "two"}], "llms": [{"model": "llama3"}, {"model": "mistral"}]}
    backends = [{"name": "memory"}, {"name": "chromadb"}]
    cells = plan_experiment(write(folder, strategies=strategies, backends=backends, **models)).combinations
    # flat and lod_embed: 2 backends × 2 embeddings; raptor and lod_llm: the same × 2 language models.
    assert len(cells) == 4 + 8 + 4 + 8
    flat = [f"flat 300/30 · {store} · {one}" for one in ("one", "two") for store in ("memory", "chromadb")]
    assert [cell.name for cell in cells[:5]] == [*flat, "raptor 300/30 · memory · one · llama3"]
    assert {cell.ingredients.strategy for cell in cells if cell.ingredients.llm} == {"raptor", "lod_llm"}
    assert cells[-1].name == "lod_llm 300/30 · chromadb · two · mistral"
    assert cells[-1].ingredients.chunk_parameters == {"size": 300, "overlap": 30, "doc_top_k": 3, "section_top_k": 10}


def test_options_without_effect_add_no_combinations(folder):
    strategies = [{"name": "flat"}, {"name": "flat", "max_layers": 9}, {"name": "flat", "chunk_size": 200}]
    backends = [{"name": "memory"}, {"name": "memory", "path": "x"}]
    models = [{"model": "org/one"}, {"model": "other/one"}]
    plan = plan_experiment(write(folder, strategies=strategies, backends=backends, embeddings=models))
    names = [f"flat {cut} · memory · one{more}" for cut in ("500/50", "200/50") for more in ("", " (2)")]
    assert [cell.name for cell in plan.combinations] == names


command = partial(output_of, "run_experiment")


@pytest.mark.django_db(transaction=True)
def test_combinations_have_the_numbers_of_their_runs(folder):
    backends = [{"name": "memory"}, {"name": "pgvector"}, {"name": "sqlite_vec"}]
    strategies = [{"name": "flat"}, {"name": "flat", "chunk_size": 20, "chunk_overlap": 0}]
    models = [{"model": FRUITS}, {"model": "keyword:apple,plum"}]
    path = write(folder, strategies=strategies, backends=backends, embeddings=models)
    planned = plan_experiment(path).combinations
    runs = prepare_experiment(plan_experiment(path)).benchmark.runs.order_by("run_order")
    created = [(run.index.encoder, run.index.chunk_parameters["size"], run.config.get("ann", "exact")) for run in runs]
    assert len(created) == 12
    assert created == [
        (cell.ingredients.encoder, cell.ingredients.chunk_parameters["size"], find_arm(cell.store)) for cell in planned
    ]


@pytest.mark.django_db
def test_dry_run_lists_combinations_and_those_unable_to_run(folder):
    strategies, llms = [{"name": "flat"}, {"name": "raptor"}], [{"model": "llama3"}]
    path = str(write(folder, strategies=strategies, llms=llms, backends=[{"name": "memory"}, {"name": "pgvector"}]))
    assert output_of("preview_experiment", path) == (
        "Experiment fruit: 4 combinations of 2 strategies × 2 backends × 1 embedding × 1 language model where one "
        "is asked; 2 can run here. "
        "Each searches every query 2 times for 3 chunks.\n"
        f"  1 flat 500/50 · memory · {FRUITS}\n"
        f"  2 flat 500/50 · pgvector · {FRUITS}\n"
        f"  3 raptor 500/50 · memory · {FRUITS} · llama3: cannot run, the language model server ollama is "
        "unknown: set BENCHBENCH_LLM_SERVERS\n"
        f"  4 raptor 500/50 · pgvector · {FRUITS} · llama3: cannot run, the language model server ollama is "
        "unknown: set BENCHBENCH_LLM_SERVERS\n"
    )
    facts = json.loads(output_of("preview_experiment", path, "--json", "--preset", "quick_test"))
    assert (facts["total_runs"], facts["runs_that_can_run"]) == (4, 2)
    assert facts["experiment"]["benchmark"]["runs_per_query"] == 1
    assert facts["combinations"][0]["parameters"] == {"chunk_size": 500, "chunk_overlap": 50}
    assert not Collection.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_missing_language_model_fails_its_run(folder, settings, monkeypatch):
    with known_server(settings, monkeypatch):
        path = write(folder, strategies=[{"name": "flat"}, {"name": "lod_llm"}], llms=[{"model": "other"}])
        misses = "anguage model server ollama has no model 'other'; available: llama3, llama3:latest"
        assert f"cannot run, the l{misses}" in output_of("preview_experiment", str(path))
        facts = json.loads(command(str(path), "--wait", "--json"))
    assert [run["status"] for run in facts["runs"]] == ["completed", "failed"]
    assert facts["runs"][1]["error_message"] == f"Its index could not be built. The l{misses}."


@pytest.mark.django_db(transaction=True)
def test_documents_are_counted_upwards_over_all_indexes(folder):
    strategies = [{"name": "flat", "chunk_size": size, "chunk_overlap": 5} for size in (40, 20)]
    events: list[dict[str, Any]] = []
    prepare_experiment(plan_experiment(write(folder, strategies=strategies)), on_progress=events.append)
    documents = Collection.objects.get().document_count
    finished = [event["processed_documents"] for event in events]
    assert finished == sorted(finished)
    assert {0, documents} <= set(finished)
    assert {event["total_documents"] for event in events} == {2 * documents}
    assert len({event["index_id"] for event in events}) == 2


@pytest.mark.django_db(transaction=True)
def test_command_runs_experiment_and_shows_failures(folder, monkeypatch):
    monkeypatch.setattr(ChromaStore, "packages", {"chromadb": "no_such_module"})
    path = str(write(folder, backends=[{"name": "chromadb"}, {"name": "memory"}]))
    assert "cannot run, the store chromadb needs the package chromadb" in output_of("preview_experiment", path)
    facts = json.loads(command(path, "--wait", "--json", "--name", "tonight"))
    assert (facts["name"], facts["status"]) == ("tonight", "completed")
    failed, completed = facts["runs"]
    message = "The store chromadb needs the package chromadb: pip install 'benchbench[chromadb]'."
    assert failed["error_message"] == message
    assert failed["label"].endswith("· dense · chromadb:hnsw · top 3")
    assert completed["metrics_flat"]["recall@1"] == 1
    benchmark = Benchmark.objects.get()
    log = "".join(build_files(benchmark, benchmark.dataset_version)["run.log"])
    _, _, traceback = log.partition("never started. The store chromadb needs the package chromadb")
    assert traceback.splitlines()[1] == "    Traceback (most recent call last):"
    assert 'File "apps/execution/defining/creating.py"' in traceback
