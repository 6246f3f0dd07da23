"""The command import_dataset."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.datasets.models import Dataset, DatasetVersion

pytestmark = pytest.mark.django_db


def write(path: Path, **changes: object) -> Path:
    query = {"query_key": "q1", "query_text": "red", "relevant_docs": ["u", "u"]} | changes
    path.write_text(json.dumps({"metadata": {"name": "fruit"}, "queries": [query, {"query_key": "q2", "query": "x"}]}))
    return path


def test_it_imports_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("import_dataset", write(tmp_path / "fruit.json"))
    out, err = capsys.readouterr()
    assert out == "fruit v1 (created): 2 queries, 1 judgment, 1 duplicate.\n"
    assert err == "Queries without a judgment: q2.\n"


def test_it_makes_a_new_version_under_a_label_and_reports_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "fruit.json")
    call_command("import_dataset", file, name="colours")
    write(file, query_text="crimson")
    with pytest.raises(CommandError, match="bump the version"):
        call_command("import_dataset", file, name="colours")
    capsys.readouterr()
    call_command("import_dataset", file, name="colours", label="2026-11", json=True)
    assert json.loads(capsys.readouterr().out) == {
        "dataset": str(Dataset.objects.get().pk),
        "version": 2,
        "outcome": "new version",
        "queries": 2,
        "judgments": 1,
        "duplicates": 1,
        "dangling": None,
        "warnings": ["Queries without a judgment: q2."],
    }
    assert DatasetVersion.objects.get(number=2).label == "2026-11"


def test_its_errors_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"queries\[0\]\.query_text \(query 'q1'\) is blank\."):
        call_command("import_dataset", write(tmp_path / "fruit.json", query_text=""))
    with pytest.raises(CommandError, match="absent does not exist"):
        call_command("import_dataset", tmp_path / "absent")
    assert not Dataset.objects.exists()
