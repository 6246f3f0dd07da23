"""`export_results`: what it writes, and what it says."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.benchmarks.models import Benchmark
from apps.results.exporters.outcomes import ExportError
from apps.results.exporting import EXPORTERS, export_to
from tests.results.exported import make_exported


@pytest.fixture
def exported(db: None) -> Benchmark:
    return make_exported()


def test_it_writes_a_file_and_replaces_none(exported: Benchmark, tmp_path: Path, capsys: Any) -> None:
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


def test_it_names_the_file_in_a_folder_and_tells_what_the_format_cannot(
    exported: Benchmark, tmp_path: Path, capsys: Any
) -> None:
    arguments = ["--run", "2", "--format", "trec-run", "--output", str(tmp_path), "--json"]
    call_command("export_results", str(exported.pk), *arguments)
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["path"].endswith("run-2.run")
    assert told["run"] == 2
    assert "1 query of the run failed and is not in this file" in captured.err


def test_it_says_which_run_it_wrote(exported: Benchmark, tmp_path: Path, capsys: Any) -> None:
    arguments = ["--run", "2", "--format", "trec-run", "--output", str(tmp_path / "a.run")]
    call_command("export_results", str(exported.pk), *arguments)
    assert f": run 2, {exported.runs.get(run_order=2).label}, " in capsys.readouterr().out


def test_half_a_file_is_not_kept(exported: Benchmark, tmp_path: Path) -> None:
    last = exported.dataset_version.queries.order_by("id").last()
    assert last is not None
    type(last).objects.filter(pk=last.pk).update(key="q 7")
    with pytest.raises(ExportError):
        export_to(exported.runs.get(run_order=1), "trec-run", tmp_path / "a.run")
    assert not os.listdir(tmp_path)


def test_its_help_lists_the_formats(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        call_command("export_results", "--help")
    shown = capsys.readouterr().out
    assert all(one.title in shown for one in EXPORTERS.values())
