"""Importing BEIR directories, small ones made here and a real one. SciFact: tests/benchmarks/test_scifact.py."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset
from apps.mappings.beir import BeirError, import_beir
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.retrieval.models import Index
from apps.retrieval.search.open_indexes import open_index
from benchbench.errors import BenchbenchError
from tests.retrieval.opened import dense

pytestmark = pytest.mark.django_db(transaction=True)

FRUIT = {"d1": "an apple", "d2": "a pear", "d3": "a plum and a pear"}
ENCODER = "keyword:apple,pear,plum"


@pytest.fixture
def fruit(tmp_path) -> Path:
    """A BEIR directory of three documents and two queries; one judgment is of a document that is not there."""
    write(tmp_path / "corpus.jsonl", [{"_id": key, "title": "", "text": text} for key, text in FRUIT.items()])
    write(tmp_path / "queries.jsonl", [{"_id": "q1", "text": "apple"}, {"_id": "q2", "text": "pear"}])
    (tmp_path / "qrels").mkdir()
    judge(tmp_path, "q1 d1 1", "q2 d2 2", "q2 d3 1", "q2 d9 1")
    return tmp_path


def write(path: Path, lines: list[dict]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def judge(directory: Path, *rows: str) -> None:
    lines = ["query-id corpus-id score", *rows]
    (directory / "qrels" / "test.tsv").write_text("".join(line.replace(" ", "\t") + "\n" for line in lines))


def write_vectors(path: Path, documents=("d1", "d2", "d3")) -> Path:
    vectors = np.eye(4, dtype=np.float32)[: len(documents)]
    np.savez(path, document_ids=documents, document_vectors=vectors, query_ids=["q1"], query_vectors=vectors[:1])
    return path


def nothing_is_there() -> bool:
    return not any(model.objects.exists() for model in (Collection, Document, Dataset, Mapping, Index, Operation))


def run(capsys, directory: Path, *options: str) -> dict:
    capsys.readouterr()
    call_command("import_beir", str(directory), "--name", "fruit", "--json", *options)
    return json.loads(capsys.readouterr().out)


def test_import_creates_everything_under_one_name_and_indexes_it(fruit, capsys, admin_user):
    process = run(capsys, fruit, "--model", ENCODER, "--owner", "admin")
    mapping = Mapping.objects.get(name="fruit", owner=admin_user)
    assert (mapping.dataset.name, mapping.collection.name) == ("fruit", "fruit")
    assert (mapping.dataset.owner, mapping.collection.owner) == (admin_user, admin_user)
    assert (process["mapping"]["status"], process["mapping"]["mapped"], process["mapping"]["total"]) == (
        "partial",
        3,
        4,
    )
    assert (process["collection"]["documents"], process["collection"]["created"]) == (3, 3)
    assert (process["dataset"]["version"], process["dataset"]["queries"], process["dataset"]["judgments"]) == (1, 2, 4)
    index = Index.objects.get(name="fruit")
    assert process["index"]["id"] == str(index.pk)
    assert (index.status, index.encoder, index.stats["num_vectors"]) == ("ready", ENCODER, 3)
    opened = open_index(index)
    assert [opened.document_ids[hit.ids[0]] for hit in opened.search_words(["apple"], 1)] == [
        Document.objects.get(external_id="d1").pk
    ]


def test_importing_the_same_again_changes_nothing(fruit, capsys):
    first = run(capsys, fruit, "--model", ENCODER)
    again = run(capsys, fruit, "--model", ENCODER)
    assert again["index"].pop("reused")
    assert not first["index"].pop("reused")
    assert again["index"] == first["index"]
    assert again["mapping"] == first["mapping"]
    assert (again["collection"]["unchanged"], again["collection"]["created"]) == (3, 0)
    assert again["dataset"]["outcome"] == "unchanged"
    assert Operation.objects.count() == 1


def test_the_model_of_imported_vectors_can_be_named(fruit, capsys):
    vectors = str(write_vectors(fruit / "vectors.npz"))
    assert run(capsys, fruit, "--vectors", vectors)["index"]["encoder"] == ""
    labelled = [run(capsys, fruit, "--vectors", vectors, "--vectors-model", ENCODER)["index"] for _ in range(2)]
    assert [(one["encoder"], one["version"]) for one in labelled] == [(ENCODER, 2)] * 2
    assert [one["reused"] for one in labelled] == [False, True]
    opened = open_index(Index.objects.get(version=2))
    assert opened.encode(["pear"]).shape == (1, 4)  # a query that the file has no vector of
    with pytest.raises(CommandError, match=r"makes vectors of 2 dimensions, the index .* has 4"):
        run(capsys, fruit, "--vectors", vectors, "--vectors-model", "keyword:apple")
    assert Index.objects.count() == 2
    with pytest.raises(CommandError, match="--vectors-model goes with --vectors") as caught:
        run(capsys, fruit, "--vectors-model", ENCODER)
    assert caught.value.returncode == 2


def test_another_split_under_the_name_is_refused_with_remedies(fruit, capsys):
    run(capsys, fruit, "--no-vectors")
    (fruit / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    with pytest.raises(CommandError, match="other content than the split train of") as caught:
        run(capsys, fruit, "--no-vectors", "--split", "train")
    neighbour, next_version = re.findall(r"`manage\.py (.*?)`", str(caught.value))
    assert "--label" in next_version
    call_command(*shlex.split(neighbour))
    assert set(Dataset.objects.values_list("name", flat=True)) == {"fruit", "fruit-train"}
    judge(fruit, "q1 d1 1", "q2 d2 1")
    with pytest.raises(CommandError) as caught:
        run(capsys, fruit, "--no-vectors")
    call_command(*shlex.split(re.findall(r"`manage\.py (.*?)`", str(caught.value))[1]))
    assert run(capsys, fruit, "--no-vectors")["dataset"]["version"] == 2


def test_changed_corpus_creates_a_new_index_version(fruit, capsys):
    first = run(capsys, fruit, "--no-vectors")
    write(fruit / "corpus.jsonl", [{"_id": key, "text": text} for key, text in (FRUIT | {"d9": "a pear too"}).items()])
    again = run(capsys, fruit, "--no-vectors")
    assert (again["mapping"]["id"], again["mapping"]["status"]) == (first["mapping"]["id"], "resolved")
    assert (first["index"]["version"], again["index"]["version"]) == (1, 2)
    assert again["index"]["stats"]["num_chunks"] == 4
    assert not is_stale(Mapping.objects.get())


def test_each_vector_source_has_its_own_index(fruit, capsys):
    ways = (["--no-vectors"], ["--model", ENCODER], ["--vectors", str(write_vectors(fruit / "vectors.npz"))])
    assert [run(capsys, fruit, *way)["index"]["version"] for way in ways] == [1, 2, 3]
    assert [run(capsys, fruit, *way)["index"]["version"] for way in ways] == [1, 2, 3]
    assert Index.objects.filter(status="ready").count() == 3


@pytest.mark.django_db
def test_imported_vectors_need_no_operation(fruit):
    beir = import_beir(fruit, name="fruit", vectors=write_vectors(fruit / "vectors.npz"))
    assert beir.indexed.operation is None
    assert (beir.indexed.index.status, beir.indexed.index.stats["num_vectors"]) == ("ready", 3)
    assert (beir.indexed.vectors.queries, beir.indexed.vectors.missing_queries) == (1, 1)
    opened = open_index(beir.indexed.index)
    best = dense(opened, opened.encode(["apple"]), 1)[0]
    assert opened.document_ids[best.ids[0]] == Document.objects.get(external_id="d1").pk


def test_an_interrupted_build_is_taken_up_again(fruit):
    left = import_beir(fruit, name="fruit", model=ENCODER).indexed  # and no one works
    result = import_beir(fruit, name="fruit", model=ENCODER).indexed
    assert result.operation == left.operation
    cancel_operation(left.operation)
    again = import_beir(fruit, name="fruit", model=ENCODER).indexed
    assert again.index == left.index
    assert again.operation != left.operation
    wait(again.operation)
    assert Index.objects.get().status == "ready"


def test_failed_index_error_lists_the_imported_objects(fruit, capsys):
    with pytest.raises(
        CommandError, match=r"mapping are imported, but the index failed: .*must have distinct keywords"
    ):
        run(capsys, fruit, "--model", "keyword:pear,pear")
    assert Mapping.objects.get().status == "partial"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "corpus.jsonl").unlink(), "holds no corpus.jsonl"),
        (lambda folder: (folder / "queries.jsonl").unlink(), "must contain queries.jsonl"),
        (lambda folder: (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n{"_id": 2.5}\n'), "line 2"),
        (lambda folder: judge(folder, "q1 d1 1", "q7 d1 1"), "line 3, judges the query 'q7'"),
        (lambda folder: write_vectors(folder / "vectors.npz", ("d1", "d2")), "no vectors of"),
        (lambda folder: (folder / "vectors.npz").unlink(), "vectors.npz does not exist"),
    ],
    ids=["no corpus", "no queries", "a bad document", "a stray judgment", "a missing vector", "no vectors"],
)
def test_nothing_half_imported_is_kept(fruit, damage, sentence):
    write_vectors(fruit / "vectors.npz")
    damage(fruit)
    with pytest.raises(BenchbenchError, match=sentence):
        import_beir(fruit, name="fruit", vectors=fruit / "vectors.npz")
    assert nothing_is_there()


@pytest.mark.django_db
def test_it_wants_one_way_to_vectors(fruit):
    with pytest.raises(BeirError, match="Choose: a file"):
        import_beir(fruit, name="fruit", model=ENCODER, lexical_only=True)
    with pytest.raises(CommandError, match="not allowed with argument"):
        call_command("import_beir", str(fruit), "--name", "fruit", "--no-vectors", "--model", ENCODER)
    with pytest.raises(BeirError, match="is not a directory"):
        import_beir(fruit / "corpus.jsonl", name="fruit")


def test_adi_by_words(shared_data, capsys):
    call_command("import_beir", str(shared_data / "adi"), "--name", "adi", "--no-vectors")
    message = capsys.readouterr().out
    assert 'Collection "adi" holds 82 documents: 82 created' in message
    assert "Dataset adi v1 (created): 35 queries, 170 judgments." in message
    assert 'Mapping "adi" is resolved: 170 of 170 judgments.' in message
    assert 'Index "adi" is ready: 82 chunks, 0 vectors.' in message
    assert "manage.py run_benchmark adi --wait" in message


def test_vectors_of_another_split_join_the_index(fruit):
    """The file has vectors of the queries of both; the second import uses the index of the first."""
    names = {"document_ids": ["d1", "d2", "d3"], "document_vectors": np.eye(3), "query_ids": ["q1", "q2"]}
    np.savez(fruit / "vectors.npz", **names, query_vectors=np.eye(3)[:2])
    judge(fruit, "q1 d1 1")
    first = import_beir(fruit, name="fruit", vectors=fruit / "vectors.npz")
    (fruit / "qrels" / "test.tsv").rename(fruit / "qrels" / "dev.tsv")
    judge(fruit, "q2 d2 1")
    (fruit / "qrels" / "test.tsv").rename(fruit / "qrels" / "train.tsv")
    call_command("import_dataset", str(fruit), "--split", "train", "--name", "fruit", "--label", "2", verbosity=0)
    second = import_beir(fruit, name="fruit", split="train", vectors=fruit / "vectors.npz")
    assert (second.indexed.index, second.indexed.reused) == (first.indexed.index, True)
    opened = open_index(second.indexed.index)
    assert [hit.ids.tolist() for hit in dense(opened, opened.encode(["pear"]), 1)] == [[1]]


def test_two_vectors_for_one_text_are_refused(fruit):
    write(fruit / "queries.jsonl", [{"_id": "q1", "text": "apple"}, {"_id": "q2", "text": "apple"}])
    names = {"document_ids": ["d1", "d2", "d3"], "document_vectors": np.eye(3), "query_ids": ["q1", "q2"]}
    np.savez(fruit / "vectors.npz", **names, query_vectors=np.eye(3)[:2])
    with pytest.raises(BenchbenchError, match="'q2' and the query 'q1', which have the same text"):
        import_beir(fruit, name="fruit", vectors=fruit / "vectors.npz")
    assert nothing_is_there()
