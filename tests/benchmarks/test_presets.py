"""Presets of experiments, from a directory of Markdown and questions to the results directory and the page."""

import csv
import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from apps.experiments.experiments import ExperimentError, plan_experiment, prepare_experiment
from apps.records.models import Benchmark
from tests.benchmarks.figures import run_key
from tests.benchmarks.laboratory import FRUITS, write
from tests.commands import output_of

pytestmark = pytest.mark.thorough

WORDS = ("apple", "pear", "plum", "fig")
STRATEGIES: list[dict[str, Any]] = [{"name": "flat"}, {"name": "lod_embed", "doc_top_k": 2}]


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    """Twelve Markdown files, of which the last is asked for, and two others; a file of the experiment next to them."""
    for number in range(12):
        word = WORDS[number % 4]
        path = tmp_path / "documents" / ("more" if number == 11 else "") / f"{number:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# All of {number}\n\n{word}\n\n## Its uses\n\n{' '.join([word] * number)} {WORDS[-1]}\n")
    (tmp_path / "documents/00.md").write_text("apple\n\n```\n# no heading\n```\n")
    uses = ["its-uses"]
    requests = [("q1", "apple", "00.md", []), ("q2", "plum", "10.md", uses), ("q3", "fig", "more/11.md", uses)]
    truth = [
        {"id": key, "question": text, "answer": text, "document_id": id, "section_ids": sections, "evidence": []}
        for key, text, id, sections in requests
    ]
    (tmp_path / "ground_truth.json").write_text(json.dumps(truth))
    return write(tmp_path, strategies=STRATEGIES, backends=[{"name": "memory"}, {"name": "pgvector"}])


command = partial(output_of, "run_experiment")


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("preset", "documents", "times"), [("quick_test", 5, 1), ("baseline", 10, 3), ("full", 12, 5)])
def test_preset_runs_from_markdown_to_results_and_reruns(guide, admin_client, monkeypatch, preset, documents, times):
    command(str(guide), "--preset", preset, "--output-dir", str(guide.parent / "results"))
    first = Benchmark.objects.get()
    assert first.mapping.collection.documents.count() == documents
    assert (first.status, first.runs_per_query, first.mapping.status) == ("completed", times, "resolved")
    results = guide.parent / "results" / "fruit"
    check_results(results, documents=documents, times=times)
    if preset == "quick_test":
        check_quick_test(first, results)
    page = admin_client.get(reverse("admin:benchmark_results", args=[first.pk])).content.decode()
    assert all(word in page for word in ("lod_embed", "pgvector", FRUITS))

    monkeypatch.chdir(results)
    command("config.yaml", "--output-dir", "again")
    again = Benchmark.objects.exclude(pk=first.pk).get()
    assert (again.mapping, again.runs_per_query) == (first.mapping, times)
    assert run_key(again) == run_key(first)
    assert (results / "again/fruit/config.yaml").read_text() == (results / "config.yaml").read_text()


def check_results(results: Path, *, documents: int, times: int) -> None:
    """Each strategy through each store, each query asked so often by each, and always with the same answer."""
    summaries = rows_of(results, "summary.csv")
    searched_by = [(row["strategy"], row["backend"]) for row in summaries]
    assert searched_by == [(name, store) for name in ("flat", "lod_embed") for store in ("memory", "pgvector")]
    assert {(row["queries_evaluated"], row["runs_per_query"]) for row in summaries} == {("3", str(times))}
    assert not any("error" in row for row in summaries)
    assert {row["consistency_score"] for row in summaries} == {"1.0"}
    assert [row["num_documents"] for row in rows_of(results, "index_stats.csv")] == [str(documents)] * 4
    requests = {(row["query_id"], row["run"], row["top_k"]) for row in rows_of(results, "search_results.csv")}
    assert requests == set(product(("q1", "q2", "q3"), map(str, range(1, times + 1)), ("1", "3")))
    assert len(rows_of(results, "search_results.csv")) == 4 * len(requests)


def check_quick_test(benchmark: Benchmark, results: Path) -> None:
    """What is kept of the documents, and where they are found."""
    stored = benchmark.mapping.collection.documents
    titles = {"00.md": "00", "01.md": "All of 1", "02.md": "All of 2", "10.md": "All of 10", "more/11.md": "All of 11"}
    assert list(stored.order_by("external_id").values_list("external_id", "title")) == list(titles.items())
    sections = stored.get(external_id="10.md").sections
    assert list(sections.values_list("section_id", "level")) == [("all-of-10", 1), ("its-uses", 2)]
    assert {row["doc_recall_at_3"] for row in rows_of(results, "summary.csv")} == {"1.0"}
    plum = [row for row in rows_of(results, "search_results.csv") if (row["query_id"], row["top_k"]) == ("q2", "3")]
    ranks = [(row["doc_rank"], row["section_rank"]) for row in plum]
    assert ranks == [("2", "3")] * 4, "after two that say nothing else"


@pytest.mark.django_db(transaction=True)
def test_sections_and_documents_that_markdown_lacks_are_named(guide):
    truth = json.loads((guide.parent / "ground_truth.json").read_text())
    truth[1]["section_ids"] = ["its-price"]
    (guide.parent / "ground_truth.json").write_text(json.dumps([*truth, {**truth[0], "id": "q4", "document_id": "00"}]))
    warnings = " ".join(prepare_experiment(plan_experiment(guide)).warnings)
    assert "Documents that documents/ does not have: '00' of 'q4'." in warnings
    assert "Sections that their document does not have: 'its-price' of '10.md' (q2)." in warnings


@pytest.mark.django_db
def test_questions_may_lie_among_the_documents(guide):
    guide.parent.joinpath("ground_truth.json").rename(guide.parent / "documents/ground_truth.json")
    data = {"documents_dir": "documents", "ground_truth_path": "documents/ground_truth.json"}
    path = write(guide.parent, data=data, embeddings=[{"model": "keyword:"}])
    with pytest.raises(ExperimentError, match=r"No index of fruit\.yaml could be built"):
        prepare_experiment(plan_experiment(path))
