"""The strategy benchmark's results directory: from sectioned files through a real benchmark to golden files."""

import io
import os
import re
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.operations.models import Batch
from apps.records.lists.reading import CutError
from apps.records.models import Benchmark, Origin, QueryResult, StageList
from apps.results.exporting import export, export_to
from apps.results.triage.sections import load_section_means
from benchbench.files.experiment import parse_experiment
from tests.kept import made_once
from tests.rankings import change_rankings, own_rankings
from tests.results.exported import rows_of
from tests.results.sectioned import make_sectioned, searching

GOLDEN = Path(__file__).parent / "golden" / "strategy"
EXPERIMENT = GOLDEN.parent / "strategy-experiment.yaml"
FILES = ("config.yaml", "run.log", "index_stats.csv", "search_results.csv", "summary.csv")


@pytest.fixture
def benchmark(transactional_db: None) -> Benchmark:
    return make_searched()


@made_once
def make_searched() -> Benchmark:
    with TemporaryDirectory() as folder:
        return make_sectioned(Path(folder))


def test_export_matches_the_golden_files(benchmark, tmp_path):
    """To write them again after a change that is meant: BENCHBENCH_WRITE_GOLDEN=1, and read the difference."""
    directory = export_to(benchmark, "strategy", tmp_path / "results")
    assert directory == tmp_path / "results" / "which-strategy"
    assert sorted(os.listdir(directory)) == sorted(FILES)
    for name in FILES:
        created = (directory / name).read_bytes()
        if name == "run.log":  # less what changes with the code and its libraries
            created = b"".join(x for x in created.splitlines(True) if b": ran with" not in x and x[:4] != b" " * 4)
        if os.environ.get("BENCHBENCH_WRITE_GOLDEN"):
            GOLDEN.mkdir(exist_ok=True)
            (GOLDEN / name).write_bytes(created)
        assert created == (GOLDEN / name).read_bytes(), name


def test_documents_and_sections_have_their_known_ranks(benchmark, tmp_path):
    rows = rows_of(export_to(benchmark, "strategy", tmp_path), "search_results.csv")
    names = ("doc_found", "doc_rank", "section_found", "section_rank")
    searched = {(row["query_id"], row["top_k"]): row for row in rows if row["run"] == "1" and not row["error"]}
    ranks = {key: tuple(row[name] for name in names) for key, row in searched.items()}
    assert ranks["q1", "3"] == ("True", "2", "True", "3"), "(B,s1), (A,s9), (A,s2) where A with s1 or s2 is expected"
    assert ranks["q1", "1"] == ("False", "-1", "False", "-1"), "the same ranking, cut"
    assert ranks["q2", "1"] == ("True", "1", "True", "1")
    assert ranks["q3", "3"] == ranks["q4", "3"] == ("False", "-1", "False", "-1"), "not found, and not there at all"
    assert ranks["q5", "3"] == ("True", "2", "", ""), "no section is expected"
    assert [searched["q1", k]["evidence_recall"] for k in "13"] == ["0.0", "0.5"]
    failed = [row for row in rows if row["error"]]
    assert len(failed) == len(rows) / 2, "every search of the configuration that failed"
    assert {tuple(row[name] for name in (*names, "search_time_ms", "rouge_l")) for row in failed} == {("",) * 6}


def test_the_summary_is_that_of_the_page(benchmark, tmp_path):
    built, _ = rows_of(export_to(benchmark, "strategy", tmp_path), "summary.csv")
    evaluation = searching(benchmark).evaluations.get()
    means = load_section_means(evaluation)
    assert float(built["section_recall_at_3"]) == means.rows[1].section_recall
    assert float(built["section_mrr"]) == means.section_mrr
    assert float(built["doc_recall_at_3"]) == evaluation.means["R@3"]


def test_failed_or_differing_repetitions_are_reported_but_not_counted(benchmark, tmp_path):
    second = QueryResult.objects.filter(run=searching(benchmark), repetition=2)
    change_rankings(second.filter(query__key="q1"), error="It took 60 s.", document_ids=[], scores=[])
    another = second.get(query__key="q2")
    change_rankings(second.filter(query__key="q2"), document_ids=another.document_ids[::-1])
    directory = export_to(benchmark, "strategy", tmp_path)
    hits = [row for row in rows_of(directory, "search_results.csv") if row["embedding_model"] == "keyword:apple,pear"]
    rows = {(row["query_id"], row["run"], row["top_k"]): row for row in hits}
    failed, differs = rows["q1", "2", "3"], rows["q2", "2", "3"]
    assert (failed["error"], failed["doc_found"], failed["search_time_ms"]) == ("It took 60 s.", "", "")
    assert (differs["doc_rank"], differs["section_rank"]) == ("2", ""), "the sections of this order are not known"
    built = rows_of(directory, "summary.csv")[0]
    assert built["consistency_score"] == str(3 / 5)
    assert float(built["section_mrr"]) == (1 / 3 + 1 + 0 + 0) / 4, "of the first that did not fail"
    assert float(built["avg_search_time_ms"]) == (550 - 20) / 9


def test_the_log_has_errors_and_tracebacks(benchmark, tmp_path):
    second = QueryResult.objects.filter(run=searching(benchmark), query__key="q2", repetition=2)
    change_rankings(second, error="It took 60 s.", document_ids=[], scores=[])
    batch = Batch.objects.filter(operation__subject_id=benchmark.pk).order_by("pk").last()
    batch.result["tracebacks"] = {"It took 60 s.": "Traceback (most recent call last):\nTimeoutError"}
    batch.save()
    log = (export_to(benchmark, "strategy", tmp_path) / "run.log").read_text()
    flat, broken = "flat / memory / keyword:apple,pear", "flat / memory / keyword:"
    assert (
        f"ERROR {flat}: query q2, run 2: It took 60 s.\n    Traceback (most recent call last):\n    TimeoutError\n"
        in log
    )
    assert f"INFO {flat}: embedding model keyword:apple,pear, revision " in log
    assert re.search(rf"INFO {flat}: ran with git_revision \w+; python 3\.", log)
    assert f"{broken}: started" not in log
    assert f"ERROR {broken}: never started. Its index could not be built. 'keyword:' must have distinct" in log
    answer = log.partition(f"ERROR {broken}: never started")[2].splitlines()
    assert answer[1] == "    Traceback (most recent call last):"
    assert any('File "apps/retrieval/' in line for line in answer), "in the project, wherever that lies"
    error = "apps.retrieval.encoders.base.EncoderError"
    assert answer[-2].startswith(f"    {error}: 'keyword:' must have distinct keywords")


def test_a_config_runs_where_it_lies(benchmark, tmp_path, monkeypatch):
    first = export_to(benchmark, "strategy", tmp_path / "results")
    answers = [line for line in (first / "config.yaml").read_text().splitlines() if line.startswith("#")]
    assert answers[0] == "# To run it again: manage.py reproduce config.yaml"
    assert answers[2].startswith(
        "# The index \"broken\" could not be built: it and its runs are left out. 'keyword:' must have distinct"
    )
    for model, name in ((Benchmark, "1e5"), (Collection, "shelf"), (Dataset, "what was asked")):
        model.objects.update(name=name)  # the data is found no matter what it is called by then
    monkeypatch.chdir(first)
    call_command("reproduce", "config.yaml", "--output-dir", "again")
    again = first / "again" / first.name
    created = Benchmark.objects.order_by("created_at").last()
    assert created.pk != benchmark.pk
    assert (created.execution, created.runs_per_query, created.seed, created.k_values) == ("isolated", 2, 42, [1, 3])
    names = ("strategy", "doc_recall_at_1", "section_recall_at_3", "section_mrr", "queries_evaluated")
    before, after = rows_of(first, "summary.csv")[0], rows_of(again, "summary.csv")[0]
    assert [before[name] for name in names] == [after[name] for name in names]
    declared, restated = [yaml.safe_load((one / "config.yaml").read_text()) for one in (first, again)]
    keys = ("matrix", "indexes", "id")
    assert [declared[key] for key in keys] == [restated[key] for key in keys]
    with pytest.raises(CommandError, match="exists already"):
        call_command("reproduce", "config.yaml", "--output-dir", "again")
    Collection.objects.update(fingerprint="0" * 64)
    with pytest.raises(CommandError, match="The collection of the experiment was not found"):
        call_command("reproduce", "config.yaml", "--wait")


def test_experiment_settings_become_the_config_and_id_the_directory(benchmark, tmp_path):
    fields = {
        "id": "quick",
        "description": "Wie schnell? Größe: klein.",
        "data": {"documents_dir": "documents", "ground_truth_path": "ground_truth.json", "max_documents": 5},
        "benchmark": {"runs_per_query": 1, "top_k_values": [1, 3]},
        "embeddings": [{"model": "keyword:apple,pear", "provider": "keyword"}],
        "backends": [{"name": "pgvector"}],
        "strategies": [{"name": "flat", "chunk_size": 20, "chunk_overlap": 0}],
    }
    experiment = parse_experiment(fields, location="quick.yaml")
    Origin.objects.create(benchmark=benchmark, experiment={"id": "quick", "config": experiment.as_dict()})
    directory = export_to(benchmark, "strategy", tmp_path)
    assert directory.name == "quick"
    text = (directory / "config.yaml").read_text()
    if os.environ.get("BENCHBENCH_WRITE_GOLDEN"):
        EXPERIMENT.write_text(text)
    assert text == EXPERIMENT.read_text(), "with every key, in the order of the format"
    assert parse_experiment(yaml.safe_load(text), location="config.yaml") == experiment


def test_without_its_lists_the_sections_are_not_guessed(benchmark, tmp_path):
    own_rankings(benchmark)
    StageList.objects.filter(lengths=None).delete()
    with pytest.raises(CutError, match="run the benchmark again"):
        export_to(benchmark, "strategy", tmp_path)
    assert os.listdir(tmp_path) == []


class TestOfAnyBenchmark:
    """A benchmark that names no sections, of whose four runs one failed."""

    def test_runs_of_one_strategy_have_distinct_labels(self, exported, tmp_path):
        directory = export_to(exported, "strategy", tmp_path)
        rows = rows_of(directory, "summary.csv")
        assert len({tuple(row.values())[:4] for row in rows}) == 4
        assert [row["strategy"] for row in rows] == [f"external top {k}" for k in (10, 20, 30, 40)]
        assert [row["queries_evaluated"] for row in rows] == ["8", "7", "8", "0"]
        assert {row["section_mrr"] for row in rows} == {""}
        assert (rows[0]["doc_recall_at_5"], rows[0]["doc_recall_at_1"]) == ("1.0", ""), (
            "each query has a right document, one of them another that is unresolved"
        )
        assert rows_of(directory, "search_results.csv")[2]["expected_doc"] == "d1"
        assert "The encoder is gone." in (directory / "run.log").read_text()

    @pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
    def test_the_browser_gets_them_in_a_zip(self, exported, admin_client, tmp_path):
        directory = export_to(exported, "strategy", tmp_path)
        answer = admin_client.get(reverse("admin:benchmark_export", args=[exported.pk, "strategy"]))
        assert f'filename="{directory.name}.zip"' in answer["Content-Disposition"]
        text = b"".join(answer)
        with zipfile.ZipFile(io.BytesIO(text)) as archive:
            assert archive.namelist() == [f"{directory.name}/{name}" for name in FILES]
            for name in FILES:
                assert archive.read(f"{directory.name}/{name}") == (directory / name).read_bytes()
        assert b"".join(export(exported, "strategy")) == text

    def test_the_command_replaces_no_directory(self, exported, tmp_path, capsys):
        target = tmp_path / "deep" / "results"
        arguments = ["export_results", str(exported.pk), "--format", "strategy", "--output", str(target)]
        call_command(*arguments)
        [directory] = target.iterdir()
        size = sum(file.stat().st_size for file in directory.iterdir())
        assert f"Wrote {directory}, {size:,} bytes." in capsys.readouterr().out
        (directory / "summary.csv").write_text("mine")
        for more in ([], ["--force"]):
            with pytest.raises(CommandError, match="exists already: choose another name, or remove it first"):
                call_command(*arguments, *more)
        assert (directory / "summary.csv").read_text() == "mine"
        assert os.listdir(target) == [directory.name]
        call_command(*arguments[:-1], str(tmp_path / "whole.zip"))
        assert zipfile.is_zipfile(tmp_path / "whole.zip")

    def test_a_file_is_no_place_for_a_directory(self, exported, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(CommandError, match="file cannot be created: File exists"):
            call_command("export_results", str(exported.pk), "--format", "strategy", "--output", str(tmp_path / "file"))
