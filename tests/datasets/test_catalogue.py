"""Collections of ir_datasets by their ids: the real library, with one small collection of ours registered in it."""

import builtins
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection
from apps.datasets.formats.catalogue import read_catalogue
from apps.datasets.models import Dataset
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping
from benchbench.catalogue import CatalogueError
from benchbench.errors import BenchbenchError

QRELS = "q1 0 d1 1\nq1 0 d2 -1\nq3 0 d9 4\nq1 0 d1 1\n"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for name in ("IR_DATASETS_HOME", "IR_DATASETS_TMP"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return pytest.importorskip(
        "ir_datasets", reason="The optional ir_datasets is not installed: pip install 'benchbench[ir-datasets]'."
    )


def register(library: Any, folder: Path, qrels: str = QRELS) -> str:
    """Register a collection that lies in `folder` under an id of its own, as the library's own documentation does."""
    for name, content in {
        "docs.tsv": "d1\tred apple\nd2\tblue plum\nd9\tgreen pear\n",
        "queries.tsv": "q1\tred\nq2\tblue\nq3\tgreen\n",
        "qrels.txt": qrels,
    }.items():
        (folder / name).write_text(content)
    dataset = library.create_dataset(str(folder / "docs.tsv"), str(folder / "queries.tsv"), str(folder / "qrels.txt"))
    id = f"fruit-{uuid.uuid4().hex}/test"
    library.registry.register(id, dataset)
    return id


def test_it_reads_judged_queries(library: Any, tmp_path: Path) -> None:
    id = register(library, tmp_path)
    record = read_catalogue(id)
    assert record.queries == [
        QueryRecord(
            "q1",
            "red",
            [JudgmentRecord({"document_id": "d1"}, 1), JudgmentRecord({"document_id": "d2"}, -1)],
            split="test",
        ),
        QueryRecord("q3", "green", [JudgmentRecord({"document_id": "d9"}, 4)], split="test"),
    ]
    assert (record.name, record.source_format, record.duplicates) == (id, "ir_datasets", 1)
    assert record.warnings == ["Topics without a judgment, left out: q2."]


@pytest.mark.django_db
def test_commands_take_an_id(library: Any, tmp_path: Path) -> None:
    id = f"ir_datasets:{register(library, tmp_path)}"
    call_command("import_dataset", id, name="fruit")
    call_command("import_collection", id, name="fruit")
    assert (Dataset.objects.get().source_format, Collection.objects.get().document_count) == ("ir_datasets", 3)
    with pytest.raises(CommandError, match="has no split: leave --split out"):
        call_command("import_dataset", id, split="test")
    with pytest.raises(CommandError, match="names its split: leave --split out"):
        call_command("import_beir", id, name="whole", split="test")


@pytest.mark.django_db
def test_a_collection_is_imported_whole(library: Any, tmp_path: Path) -> None:
    from apps.mappings.beir import import_beir

    id = register(library, tmp_path)
    done = import_beir(Path(f"ir_datasets:{id}"), name="fruit", lexical_only=True)
    assert (done.collection.document_count, done.queries.queries) == (3, 2)
    assert Mapping.objects.get().status == "resolved"


def test_what_is_not_there_is_a_sentence(library: Any, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"ir_datasets knows no 'fruit-salad'\."):
        read_catalogue("fruit-salad")
    with pytest.raises(
        CatalogueError, match="beir/scifact of ir_datasets has no judgments; there is beir/scifact/test"
    ):
        read_catalogue("beir/scifact")
    id = register(library, tmp_path, "q1 0 d1 1\nq1 0 d1 2\n")
    with pytest.raises(BenchbenchError, match="gives the document 'd1' the grades 1 and 2 for the query 'q1'"):
        read_catalogue(id)
    id = register(library, tmp_path, "q7 0 d1 1\n")
    with pytest.raises(BenchbenchError, match="judges the query 'q7', which it does not have"):
        read_catalogue(id)


def test_a_download_that_fails_is_a_sentence(library: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A proxy that is not there stands for a network that is not: nothing leaves this machine."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    with pytest.raises(CatalogueError, match=r"ir_datasets cannot give vaswani: .* needs the network"):
        read_catalogue("vaswani")


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "ir_datasets":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        CatalogueError, match=r"needs the library ir_datasets: install it with pip install 'benchbench\["
    ):
        read_catalogue("cranfield")


@pytest.mark.django_db
def test_a_file_of_that_name_is_no_id_for_the_browser(admin_client: Any) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.urls import reverse

    file = SimpleUploadedFile("ir_datasets:cranfield", b"x")
    page = admin_client.post(reverse("admin:dataset_preview"), {"file": file}).content.decode()
    assert "has no known format" in page
