"""The command import_collection."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from apps.collections.models import Collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "b.txt").write_text("B")
    (tmp_path / "c.pdf").write_text("")
    return tmp_path


def test_it_imports_a_folder_and_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("import_collection", folder, name="letters", uri_prefix="x:")
    out, err = capsys.readouterr()
    assert out == (
        'Collection "letters" holds 2 documents: 2 created, 0 updated, 0 unchanged, 0 removed, 0 duplicates.\n'
    )
    assert err == "Files of other kinds, left out: 1.\n"
    assert list(Collection.objects.get().documents.values_list("uri", flat=True)) == ["x:a.md", "x:b.txt"]


def test_it_brings_a_collection_up_to_date_and_reports_as_json(
    folder: Path, admin_user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("import_collection", folder, name="letters", owner="admin")
    (folder / "b.txt").unlink()
    call_command("import_collection", folder, name="letters", owner="admin", keep_missing=True)
    capsys.readouterr()
    call_command("import_collection", folder, name="letters", owner="admin", json=True)
    collection = Collection.objects.get()
    assert collection.owner == admin_user
    assert json.loads(capsys.readouterr().out) == {
        "collection": str(collection.id),
        "documents": 1,
        "created": 0,
        "updated": 0,
        "unchanged": 1,
        "removed": 1,
        "duplicates": 0,
        "empty": 0,
    }


def test_its_errors_are_sentences(folder: Path) -> None:
    with pytest.raises(CommandError, match=r"^No user is called 'nobody': make one with"):
        call_command("import_collection", folder, name="letters", owner="nobody")
    with pytest.raises(CommandError, match="absent does not exist"):
        call_command("import_collection", folder / "absent", name="letters")
    assert not Collection.objects.exists()
