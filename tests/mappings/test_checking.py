"""The command check_ground_truth, and looking references up before anything is imported."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.importing import import_collection
from apps.collections.sources import open_source
from apps.datasets.models import Dataset
from tests.datasets.test_readers import DOCUMENT, TRUTH
from tests.factories import make_collection
from tests.files.samples import TOPICS, write_dataset, write_file

pytestmark = pytest.mark.django_db


def checked(capsys: pytest.CaptureFixture[str], *args: Any, status: int | None = None, **options: Any) -> str:
    if status is None:
        call_command("check_ground_truth", *args, **options)
    else:
        with pytest.raises(CommandError) as caught:
            call_command("check_ground_truth", *args, **options)
        assert caught.value.returncode == status
    assert not Dataset.objects.exists()
    return capsys.readouterr().out


def test_it_counts_and_imports_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topics = [topic | {"slice_ids": ["a"]} for topic in TOPICS]
    out = checked(capsys, write_dataset(tmp_path / "golden", topics=topics))
    assert out == (
        "golden (flowbaby): 3 queries, 5 judgments, 0 duplicates.\nJudgments by grade: 1 of grade 2, 4 of grade 1.\n"
    )


def test_metadata_that_contradicts_the_data_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topics = [TOPICS[0] | {"expected_positive_count": 9}, *TOPICS[1:]]
    out = checked(capsys, write_dataset(tmp_path / "golden", topics=topics), status=1)
    assert "The topic 'q1' expects 9 relevant items, and qrels.json has 2." in out


def test_it_names_what_a_collection_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_collection("library", [{"external_id": f"doc{n}"} for n in (1, 2, 3, 5)])
    path = write_dataset(tmp_path / "golden")
    facts = json.loads(checked(capsys, path, collection="library", json=True, status=1))
    assert facts["references"] == {
        "checked": 5,
        "dangling": [{"query_key": "q2", "reason": "No document has the document_id 'doc4'."}],
    }
    assert (facts["queries"], facts["judgments"], facts["grades"]) == (3, 5, {"2": 1, "1": 4})
    assert "5 judgments looked up in the collection, 1 dangling reference.\n  q2: No document" in checked(
        capsys, path, collection="library", status=1
    )
    make_collection("all", [{"external_id": f"doc{n}"} for n in range(6)])
    assert "5 judgments looked up in the collection, 0 dangling references." in checked(capsys, path, collection="all")


def test_sections_are_looked_up_in_their_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "documents").mkdir()
    write_file(tmp_path / "documents/a.json", DOCUMENT)
    import_collection(open_source(tmp_path), name="library")
    (tmp_path / "documents/a.json").unlink()
    out = checked(capsys, write_file(tmp_path / "truth.json", TRUTH), collection="library", status=1)
    assert "2 judgments looked up in the collection, 2 dangling references." in out
    assert "  t1: The document 'A' has no section 's9'.\n  t2: No document has the document_id 'Z'." in out


def test_what_cannot_be_read_is_another_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked(capsys, write_file(tmp_path / "a.json", "{"), status=2)
    checked(capsys, tmp_path / "absent", status=2)
    checked(capsys, write_dataset(tmp_path / "golden"), collection="absent", status=2)
