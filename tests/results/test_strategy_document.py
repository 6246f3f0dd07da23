"""The strategy benchmark's document, kept: its own experiment, directory, columns and definitions.

A script as one of its users would write it: an experiment file goes in by the command, and what comes out is read with
`csv` and `yaml` alone. Every figure of the summary is computed here from the rows, by the document's words.
"""

import csv
import re
import statistics
from dataclasses import astuple
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from django.urls import reverse

from apps.records.models import Benchmark
from apps.retrieval.encoders.registry import KeywordEncoder
from tests.commands import output_of
from tests.results.stated import (
    CUTOFFS,
    LLM_CALLS,
    MODEL,
    QUESTIONS,
    RUNS,
    SECTIONS,
    Matrix,
    experiment_with,
    matrix_of,
    write_experiment,
)
from tests.retrieval.arms import require_installed
from tests.retrieval.llm_server import MODEL as LLM

INDEX = (
    "strategy backend embedding_model llm_model duration_sec num_documents num_chunks num_vectors llm_calls embed_calls"
)
SEARCH = (
    "query_id run strategy backend embedding_model llm_model question expected_doc expected_sections top_k doc_found "
    "doc_rank section_found section_rank search_time_ms embed_calls llm_calls"
)
SUMMARY = (
    "strategy backend embedding_model llm_model index_time_sec num_vectors doc_recall_at_1 doc_recall_at_3 "
    "doc_recall_at_5 doc_recall_at_10 section_recall_at_1 section_recall_at_3 section_recall_at_5 section_recall_at_10 "
    "doc_mrr section_mrr avg_search_time_ms p50_search_time_ms p95_search_time_ms consistency_score total_llm_calls "
    "total_embed_calls queries_evaluated runs_per_query"
)
NAME_FIELDS = ("strategy", "backend", "embedding_model", "llm_model")
Row = dict[str, str]


command = partial(output_of, "run_experiment")


def rows_of(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def configuration(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in NAME_FIELDS)


@pytest.fixture(params=["without a server", "with a server"])
def experiment(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "without a server":
        return experiment_with(None)
    server = request.getfixturevalue("server")
    server.answer = lambda prompt: "A, C, E" if "Choose the documents" in prompt else "apple plum"
    return experiment_with(server)


@pytest.fixture
def results(
    experiment: dict[str, Any], transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> Path:
    """The results directory of the experiment, run by the command. One question cannot be searched."""
    require_installed("chromadb:hnsw")
    settings.BENCHBENCH_MAX_ATTEMPTS = 1
    encode = KeywordEncoder.embed_batch

    def breaks(self: KeywordEncoder, texts: Any, **options: Any) -> Any:
        if "boom" in texts:
            raise ValueError("The model fell over.")
        return encode(self, texts, **options)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", breaks)
    command(write_experiment(tmp_path, experiment), "--output-dir", tmp_path / "results")
    return tmp_path / "results" / "which-strategy"


def test_the_documents_promises_hold(experiment, results, monkeypatch, admin_client):
    matrix = matrix_of(experiment)
    names = {"config.yaml", "index_stats.csv", "search_results.csv", "summary.csv", "run.log"}
    assert {path.name for path in results.iterdir()} == names
    stats, searches, summary = (
        rows_of(results / f"{name}.csv") for name in ("index_stats", "search_results", "summary")
    )
    for rows, columns in ((stats, INDEX), (searches, SEARCH), (summary, SUMMARY)):
        assert list(rows[0])[: len(columns.split())] == columns.split()
    assert {configuration(row) for row in stats} == {configuration(row) for row in summary} == matrix
    assert len(stats) == len(summary) == len(matrix), "one row per configuration"
    answers = {configuration(row): row for row in summary}
    worked = {key for key, row in answers.items() if not row["error"]}
    recognised = {key for key in matrix if key[3] in ("", LLM)}
    assert worked == recognised, "the rest is not known here; each says so, and stops no other"
    for key in matrix:
        check_rows([row for row in searches if configuration(row) == key], failed=key not in worked)
        if key in worked:
            check_summary(answers[key], [row for row in searches if configuration(row) == key])
    for row in stats:
        if configuration(row) in worked:
            check_index(row)
    check_log((results / "run.log").read_text(), unstarted=len(matrix) - len(worked))
    check_page(admin_client, matrix)
    check_config(results, experiment, monkeypatch)


def check_index(row: Row) -> None:
    assert row["num_documents"] == str(len(SECTIONS))
    chunks, vectors, requests = (int(row[name]) for name in ("num_chunks", "num_vectors", "llm_calls"))
    assert vectors == int(row["embed_calls"]) >= chunks >= len(SECTIONS)
    if row["strategy"] != "lod_llm":
        assert vectors == chunks + requests, "one summary an answer"
    assert (float(row["duration_sec"]) > 0, requests > 0) == (True, row["strategy"] == "raptor")


def check_rows(rows: list[Row], *, failed: bool) -> None:
    """One row per query, run and top_k; a query that failed is marked; what is cut off is not found."""
    keys = {(row["query_id"], row["run"], row["top_k"]) for row in rows}
    expected = {key for key, *_ in QUESTIONS}, {str(run + 1) for run in range(RUNS)}, set(map(str, CUTOFFS))
    assert keys == set(product(*expected))
    assert len(rows) == len(keys)
    declared = {key: (text, document, ",".join(sections)) for key, text, document, sections in QUESTIONS}
    for row in rows:
        assert (row["question"], row["expected_doc"], row["expected_sections"]) == declared[row["query_id"]]
        if failed or row["query_id"] == "q5":
            assert row["error"]
            assert {row[name] for name in ("doc_found", "doc_rank", "section_found", "section_rank")} == {""}
            continue
        assert row["error"] == ""
        for piece in ("doc", "section"):
            rank = int(row[f"{piece}_rank"])
            assert (row[f"{piece}_found"], rank == -1) in (("True", False), ("False", True))
            assert rank == -1 or 1 <= rank <= int(row["top_k"])
        assert float(row["search_time_ms"]) >= 0
        assert (row["embed_calls"], row["llm_calls"]) == ("1", LLM_CALLS[row["strategy"]])


def check_summary(row: Row, rows: list[Row]) -> None:
    """Every column by the document's description of it, from the rows."""
    answered = [one for one in rows if not one["error"]]
    queries = sorted({one["query_id"] for one in answered})
    once = {(one["query_id"], one["top_k"]): one for one in answered if one["run"] == "1"}
    for piece, k in product(("doc", "section"), (1, 3, 5, 10)):
        if k not in CUTOFFS:
            assert row[f"{piece}_recall_at_{k}"] == "", "was not run, which is not 0"
            continue
        hits = [once[query, str(k)][f"{piece}_found"] == "True" for query in queries]
        assert float(row[f"{piece}_recall_at_{k}"]) == pytest.approx(sum(hits) / len(queries))
    deepest = str(max(CUTOFFS))
    for piece in ("doc", "section"):
        ranks = [int(once[query, deepest][f"{piece}_rank"]) for query in queries]
        assert float(row[f"{piece}_mrr"]) == pytest.approx(statistics.fmean(0 if r == -1 else 1 / r for r in ranks))
    times = sorted(float(one["search_time_ms"]) for one in answered if one["top_k"] == deepest)
    assert float(row["avg_search_time_ms"]) == pytest.approx(statistics.fmean(times))
    for name, p in (("p50", 0.5), ("p95", 0.95)):
        assert float(row[f"{name}_search_time_ms"]) == times[min(int(len(times) * p), len(times) - 1)]
    ranks_by_run = [
        {
            (one["query_id"], one["top_k"]): (one["doc_rank"], one["section_rank"])
            for one in answered
            if one["run"] == run
        }
        for run in ("1", "2")
    ]
    assert (ranks_by_run[0] == ranks_by_run[1], float(row["consistency_score"])) == (True, 1.0)
    for name in ("embed_calls", "llm_calls"):
        assert row[f"total_{name}"] == str(sum(int(one[name] or 0) for one in rows if one["top_k"] == deepest))
    assert (int(row["total_llm_calls"]) > 0) == (row["strategy"] == "lod_llm")
    assert (row["queries_evaluated"], row["runs_per_query"]) == (str(len(queries)), str(RUNS))
    assert len(queries) == len(QUESTIONS) - 1, "the one that failed is in no aggregate"


def check_page(client: Client, matrix: Matrix) -> None:
    """Each run with its strategy, store and encoder; each index with what it holds."""
    response = client.get(reverse("admin:benchmark_results", args=[Benchmark.objects.get().pk]))
    page = response.content.decode()
    displayed = {astuple(row["made_of"]) for row in response.context["rows"]}
    assert displayed == {tuple(name or None for name in labelled) for labelled in matrix}
    assert "<td>chromadb</td>" in page
    (flat,) = [index for index in response.context["built"] if index["row"].strategy == "flat"]
    assert flat["counts"][0] == len(SECTIONS)
    assert "flat 12/0" in page


def check_log(log: str, *, unstarted: int) -> None:
    """Errors with full tracebacks, those of single queries, what was never started, and the revisions of models."""
    stamps = [line.split()[0] for line in log.splitlines() if not line.startswith("    ")]
    assert [stamp for stamp in stamps if not re.fullmatch(r"[\d-]{10}T[\d:]{8}Z", stamp)] == []
    assert "query q5, run 1: ValueError: The model fell over." in log
    assert "Traceback (most recent call last):" in log
    assert "ValueError: The model fell over." in log.partition("Traceback")[2]
    assert log.count("never started. ") == unstarted
    assert f"embedding model {MODEL}, revision 1" in log


def check_config(results: Path, experiment: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact configuration, and not a reference to a file: it runs again from where it lies, with equal results."""
    config = yaml.safe_load((results / "config.yaml").read_text())
    for key in ("id", "description", "benchmark", "embeddings"):
        assert config[key] == experiment[key]
    for key in ("strategies", "llms"):
        assert [{**one, **declared} for one, declared in zip(config[key], experiment[key], strict=True)] == config[key]
    monkeypatch.chdir(results)
    command("config.yaml", "--output-dir", "again")
    again, first = rows_of(results / "again" / "which-strategy" / "summary.csv"), rows_of(results / "summary.csv")
    timed = {name for name in first[0] if name.endswith(("_ms", "_sec"))}
    assert [{name: row[name] for name in row if name not in timed} for row in again] == [
        {name: row[name] for name in row if name not in timed} for row in first
    ]
