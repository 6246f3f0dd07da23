"""Reading a BEIR directory, and collections of ir_datasets."""

import builtins
import gzip
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection
from apps.datasets.formats.beir import read_beir
from apps.datasets.formats.catalogue import read_catalogue
from apps.datasets.models import Dataset
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping
from benchbench.catalogue import CatalogueError
from benchbench.errors import BenchbenchError

QUERIES = '{"_id": "q1", "text": "red"}\n{"_id": 2, "text": "blue", "metadata": {"n": 1}}\n{"_id": "q3", "text": "?"}\n'
HEADER = "query-id\tcorpus-id\tscore\n"


def beir(directory: Path, *, queries: str = QUERIES, header: str = HEADER, rows: str = "q1\tapple\t1\n") -> Path:
    (directory / "queries.jsonl").write_text(queries)
    (directory / "qrels").mkdir(exist_ok=True)
    (directory / "qrels/test.tsv").write_text(header + rows)
    return directory


def test_queries_of_a_split_are_read_in_file_order(tmp_path):
    record = read_beir(beir(tmp_path, rows="2\tplum tree\t-1\nq1\tapple\t4\n2\tberry\t2\nq1\tapple\t4\n"))
    assert record.queries == [
        QueryRecord("q1", "red", [JudgmentRecord({"document_id": "apple"}, 4)], split="test"),
        QueryRecord(
            "2",
            "blue",
            [JudgmentRecord({"document_id": "plum tree"}, -1), JudgmentRecord({"document_id": "berry"}, 2)],
            split="test",
            metadata={"n": 1},
        ),
    ]
    assert (record.name, record.source_format, record.duplicates) == (tmp_path.name, "beir", 1)
    assert record.metadata == {"split": "test"}


def test_it_reads_another_split_and_gzipped_files(tmp_path):
    beir(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(QUERIES.encode()))
    (tmp_path / "qrels/dev.tsv.gz").write_bytes(gzip.compress((HEADER + "q3\tpear\t1\r\n").encode()))
    record = read_beir(tmp_path, split="dev")
    assert [(query.key, query.split) for query in record.queries] == [("q3", "dev")]


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("rows", "q1\ta\t1\nq9\tb\t1\n", "test.tsv, line 3, judges the query 'q9', which queries.jsonl does not have"),
        (
            "rows",
            "q1\ta\t1\nq1\ta\t2\n",
            "test.tsv, line 3, gives document 'a' the grade 2 for query 'q1', but an earlier line",
        ),
        ("rows", "q1\ta\n", "test.tsv, line 2, must have three cells, query-id, corpus-id, score"),
        ("rows", "q1\t\t1\n", "test.tsv, line 2, must have three cells, query-id, corpus-id, score"),
        ("rows", "q1 0 a 1\n", "test.tsv, line 2, must have three cells, query-id, corpus-id, score"),
        ("rows", "q1\ta\t1.5\n", "test.tsv, line 2, has the score '1.5', which is not an integer"),
        ("rows", "q1\ta\thigh\n", "test.tsv, line 2, has the score 'high', which is not an integer"),
        ("rows", "", "test.tsv contains no judgments."),
        (
            "queries",
            '{"_id": "q1", "text": "a"}\n{"_id": "q1", "text": "b"}',
            "queries.jsonl, line 2, _id 'q1' repeats",
        ),
        ("queries", '{"_id": "q1", "text": " "}', "queries.jsonl, line 1, text must not be blank."),
        ("queries", '{"_id": "q1", "text": "a", "metadata": 1}', "queries.jsonl, line 1, metadata must be an object"),
        (
            "queries",
            '{"_id": "q1", "text": "a"}\n["q2"]',
            "queries.jsonl, line 2, holds a list: each line must be an object.",
        ),
        ("queries", '{"_id": "q1", "text": "a"}\n{"_id": ', "queries.jsonl, line 2, column 9, is not JSON"),
    ],
)
def test_it_names_file_and_line_of_a_fault(tmp_path, file, content, sentence):
    with pytest.raises(BenchbenchError) as caught:
        read_beir(beir(tmp_path, **{file: content}))
    assert caught.value.message.startswith(sentence)


@pytest.mark.parametrize("header", ["q1\tapple\n", "query-id corpus-id score\n", "query-id\tcorpus-id\tscore\tx\n"])
def test_it_requires_the_header(tmp_path, header):
    with pytest.raises(BenchbenchError, match="line 1, must be the header query-id<TAB>corpus-id<TAB>score"):
        read_beir(beir(tmp_path, header=header))


def test_unknown_split_error_lists_available_splits(tmp_path):
    beir(tmp_path)
    (tmp_path / "qrels/dev.tsv.gz").touch()
    with pytest.raises(BenchbenchError, match=r"has no split 'train': choose one of dev, test\."):
        read_beir(tmp_path, split="train")
    with pytest.raises(BenchbenchError, match=r"has no split '\.\./qrels/test'"):
        read_beir(tmp_path, split="../qrels/test")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BenchbenchError, match=r"has no split 'test': qrels/SPLIT\.tsv was not found"):
        read_beir(tmp_path / "empty")


def test_it_says_when_there_are_no_queries(tmp_path):
    (beir(tmp_path) / "queries.jsonl").unlink()
    with pytest.raises(
        BenchbenchError, match=r"must contain queries\.jsonl or queries\.jsonl\.gz to be a BEIR directory"
    ):
        read_beir(tmp_path)


@pytest.mark.parametrize(
    ("name", "split", "queries", "judgments"), [("adi", "test", 35, 170), ("scifact", "test", 300, 339)]
)
def test_it_reads_the_shared_collections(shared_data, name, split, queries, judgments):
    record = read_beir(shared_data / name, split=split)
    assert len(record.queries) == queries
    assert sum(len(query.judgments) for query in record.queries) == judgments


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


def test_it_reads_judged_queries(library, tmp_path):
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
    assert record.warnings == ["Queries without a judgment, left out: q2."]


@pytest.mark.django_db
def test_commands_take_an_id(library, tmp_path):
    id = f"ir_datasets:{register(library, tmp_path)}"
    call_command("import_dataset", id, name="fruit")
    call_command("import_collection", id, name="fruit")
    assert (Dataset.objects.get().source_format, Collection.objects.get().document_count) == ("ir_datasets", 3)
    with pytest.raises(CommandError, match="has no split: leave --split out"):
        call_command("import_dataset", id, split="test")
    with pytest.raises(CommandError, match="names its split: leave --split out"):
        call_command("import_beir", id, name="whole", split="test")


@pytest.mark.django_db
def test_a_collection_is_imported_whole(library, tmp_path):
    from apps.mappings.beir import import_beir

    id = register(library, tmp_path)
    finished = import_beir(Path(f"ir_datasets:{id}"), name="fruit", lexical_only=True)
    assert (finished.collection.document_count, finished.queries.queries) == (3, 2)
    assert Mapping.objects.get().status == "resolved"


def test_missing_or_invalid_datasets_give_clear_errors(library, tmp_path):
    with pytest.raises(CatalogueError, match=r"The dataset 'fruit-salad' was not found in ir_datasets\."):
        read_catalogue("fruit-salad")
    with pytest.raises(
        CatalogueError, match="beir/scifact of ir_datasets has no judgments; choose one of beir/scifact/test"
    ):
        read_catalogue("beir/scifact")
    id = register(library, tmp_path, "q1 0 d1 1\nq1 0 d1 2\n")
    with pytest.raises(BenchbenchError, match="gives the document 'd1' the grades 1 and 2 for the query 'q1'"):
        read_catalogue(id)
    id = register(library, tmp_path, "q7 0 d1 1\n")
    with pytest.raises(BenchbenchError, match="judges the query 'q7', which it does not have"):
        read_catalogue(id)


def test_a_download_that_fails_is_a_sentence(library, monkeypatch, tmp_path):
    """A proxy that is not there stands for a network that is not: nothing leaves this machine."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    with pytest.raises(CatalogueError, match=r"ir_datasets cannot load vaswani: .* need the network"):
        read_catalogue("vaswani")


def test_a_library_that_is_not_installed_is_named(monkeypatch):
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
def test_uploaded_file_name_is_not_a_catalogue_id(admin_client):
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.urls import reverse

    file = SimpleUploadedFile("ir_datasets:cranfield", b"x")
    page = admin_client.post(reverse("admin:dataset_preview"), {"file": file}).content.decode()
    assert "has no known format" in page
