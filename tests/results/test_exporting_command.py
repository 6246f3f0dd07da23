"""`export_results`: what it writes and says, also of values on another version of the dataset."""

import csv
import io
import json
import os
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils.html import escape

from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, Evaluation
from apps.results.exporters.outcomes import ExportError
from apps.results.exporting import EXPORTERS, export, export_to
from apps.results.leaderboard.versions import NoValuesError
from benchbench.site.panels import change_url
from tests.created import run_benchmark
from tests.drafts import freeze_and_resolve, turn
from tests.kept import made_once
from tests.library import make_library
from tests.pages import one_line
from tests.results.exported import export_text, subject_of


def test_it_writes_a_file_and_replaces_none(exported, tmp_path, capsys):
    path = tmp_path / "results.json"
    arguments = ["export_results", str(exported.pk), "--format", "json", "--output", str(path)]
    call_command(*arguments)
    assert json.loads(path.read_text())["summary"]["failed_runs"] == 1
    assert f"Wrote {path}" in capsys.readouterr().out
    path.write_text("mine")
    with pytest.raises(CommandError, match="exists already") as caught:
        call_command(*arguments)
    assert caught.value.returncode == 1
    assert path.read_text() == "mine"
    call_command(*arguments, "--force")
    assert path.read_text() != "mine"
    assert os.listdir(tmp_path) == ["results.json"]


def test_it_names_the_file_in_a_folder(exported, tmp_path, capsys):
    arguments = ["--run", "2", "--format", "trec-run", "--output", str(tmp_path), "--json"]
    call_command("export_results", str(exported.pk), *arguments)
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer["path"].endswith("run-2.run")
    assert answer["run"] == 2
    assert "1 query of the run failed and is missing from this file" in captured.err


def test_it_says_which_run_it_wrote(exported, tmp_path, capsys):
    arguments = ["--run", "2", "--format", "trec-run", "--output", str(tmp_path / "a.run")]
    call_command("export_results", str(exported.pk), *arguments)
    assert f": run 2, {exported.runs.get(run_order=2).label}, " in capsys.readouterr().out


def test_half_a_file_is_not_kept(exported, tmp_path):
    last = exported.dataset_version.queries.order_by("id").last()
    type(last).objects.filter(pk=last.pk).update(key="q 7")
    with pytest.raises(ExportError):
        export_to(exported.runs.get(run_order=1), "trec-run", tmp_path / "a.run")
    assert not os.listdir(tmp_path)


def test_its_help_lists_the_formats(capsys):
    with pytest.raises(SystemExit):
        call_command("export_results", "--help")
    displayed = capsys.readouterr().out
    assert all(one.title in displayed for one in EXPORTERS.values())


KNOWS_NO_VALUES = {"trec-run", "flowbaby-run"}  # rankings alone, which are those of any version


@pytest.fixture
def rescored(transactional_db: None) -> Benchmark:
    return make_rescored()


@made_once
def make_rescored() -> Benchmark:
    """A benchmark with values on versions 1 and 2, in which what a run has first for three queries is irrelevant."""
    matrix = {"search_modes": ["sparse", "dense"], "k_values_for_metrics": [5, 10]}
    benchmark = run_benchmark(make_library(), name="Which mode?", matrix=matrix)
    turn(benchmark, queries=3)
    freeze_and_resolve(benchmark.mapping)
    rescore(benchmark)
    benchmark.refresh_from_db()
    return benchmark


def text_of(benchmark: Benchmark, format: str, version: int | None = None) -> str:
    pieces = export(subject_of(benchmark, format), format, version=version)
    return "".join(piece if isinstance(piece, str) else piece.decode("latin-1") for piece in pieces)


def test_every_format_exports_values_of_the_requested_version(rescored):
    for format in EXPORTERS.keys() - KNOWS_NO_VALUES:
        assert text_of(rescored, format, 1) == text_of(rescored, format) != text_of(rescored, format, 2), format
    for format in KNOWS_NO_VALUES & EXPORTERS.keys():
        assert text_of(rescored, format, 1) == text_of(rescored, format, 2), format


def test_exported_values_match_the_evaluation_and_name_its_version(rescored):
    run = rescored.runs.get(run_order=2)
    evaluation = Evaluation.objects.get(run=run, dataset_version__number=2)
    content = json.loads(text_of(rescored, "json", 2))
    assert content["dataset_version"] == 2
    assert content["runs"][1]["metrics_flat"]["ndcg@10"] == evaluation.means["nDCG@10"]
    rows = list(csv.DictReader(io.StringIO(text_of(rescored, "csv", 2))))
    assert (rows[1]["dataset_version"], float(rows[1]["nDCG@10"])) == ("2", evaluation.means["nDCG@10"])
    rows = list(csv.DictReader(io.StringIO(text_of(rescored, "csv-run", 2))))
    assert {row["dataset_version"] for row in rows} == {"2"}
    assert [float(row["RR"]) for row in rows] == evaluation.values[evaluation.measures.index("RR")]
    for format in ("markdown", "latex", "html"):
        assert "questions v2, measured from the rankings for questions v1" in text_of(rescored, format, 2), format
        assert "questions v2" not in text_of(rescored, format), format
    assert json.loads(text_of(rescored, "flowbaby-summary-1.1", 2))["dataset_version"] == "2"
    assert json.loads(text_of(rescored, "spec-002", 2))["metadata"]["dataset_version"] == 2
    assert "dataset_version" not in json.loads(export_text(run, "spec-002"))["metadata"]


def test_a_version_without_values_is_refused(rescored, tmp_path):
    with pytest.raises(NoValuesError, match=r"has no values on version 7 of its dataset; versions with values: 1, 2"):
        export(rescored, "csv", version=7)
    with pytest.raises(CommandError, match="no values on version 7"):
        call_command(
            *("export_results", str(rescored.pk), "--format", "csv", "--output", str(tmp_path)),
            *("--dataset-version", "7"),
        )


def test_the_file_is_called_after_the_version(rescored, tmp_path):
    run = rescored.runs.get(run_order=1)
    assert export_to(rescored, "csv", tmp_path, version=2).name == "which-mode.v2.csv"
    assert export_to(run, "csv-run", tmp_path, version=2).name == "which-mode.run-1.v2.csv"
    assert export_to(run, "csv-run", tmp_path, version=1).name == "which-mode.run-1.csv"


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_page_of_a_version_links_to_its_exports(rescored, admin_client):
    run = rescored.runs.get(run_order=2)
    pages: dict[str, Any] = {reverse("admin:benchmark_results", args=[rescored.pk]): rescored, change_url(run): run}
    for page, subject in pages.items():
        kind, format = ("benchmark", "csv") if subject == rescored else ("run", "csv-run")
        url = reverse(f"admin:{kind}_export", args=[subject.pk, format])
        assert f'href="{url}"' in admin_client.get(page).content.decode()
        displayed = one_line(admin_client.get(page, {"version": "2"}).content.decode())
        assert f'href="{url}?version=2"' in displayed
        assert f"--format {'json' if kind == 'benchmark' else 'csv-run'} --dataset-version 2" in displayed
        answer = admin_client.get(f"{url}?version=2")
        assert b"".join(answer).decode() == text_of(rescored, format, 2)
        assert ".v2." in answer["Content-Disposition"]
        assert admin_client.get(f"{url}?version=x").status_code == 404
        assert "has no values on version 9" in admin_client.get(f"{url}?version=9", follow=True).content.decode()


def test_reports_have_the_warnings_of_the_page(rescored, admin_client):
    """The judged shares, and each sentence that the page prints as a warning."""
    Evaluation.objects.update(unsearched_queries=2)
    rescored.runs.filter(run_order=1).update(warnings=["3 of 30 queries have no word that BM25 reads: check them."])
    for number, evaluation in enumerate(
        Evaluation.objects.filter(dataset_version__number=2).order_by("run__run_order")
    ):
        evaluation.means["Judged@10"] = 0.3 + number / 10
        evaluation.save()
    board = admin_client.get(reverse("admin:benchmark_results", args=[rescored.pk]), {"version": 2})
    page, report = (" ".join(text.split()) for text in (board.text, text_of(rescored, "html", 2)))
    assert "judged <span>30.0 %" in page
    assert "A percentage under a value: the share of its retrieved documents that are judged." in page
    run = board.context["rows"][0]["run"]
    assert f'<small class="bb-full-name">{run.label}</small>' in page
    unread = "3 of 30 queries have no word that BM25 reads"
    assert any(unread in sentence for sentence in board.context["run_warnings"])
    for sentence in (board.context["uneven"], *board.context["run_warnings"]):
        assert escape(sentence) in report
    for format in ("markdown", "latex", "json"):
        assert unread in text_of(rescored, format, 2)
    assert "2 queries of" in report
    assert "judged 30.0 %" in report


def test_reports_have_the_ranges_of_ranks_of_the_page(rescored, admin_client):
    verdict = admin_client.get(reverse("admin:benchmark_verdict", args=[rescored.pk]), {"version": 2})
    ranges = [ranks for _, ranks in verdict.context["ranks"]]
    assert ranges == ["1–2", "1–2"]
    assert re.findall(r'<td class="number">(\d–\d)</td>', text_of(rescored, "html", 2)) == ranges
    assert re.findall(r"\n\| (\d–\d) \|", text_of(rescored, "markdown", 2)) == ranges
