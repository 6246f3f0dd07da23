"""Writing datasets by the documents of a mapping, the command that does, and looking references up."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.collections.importing import import_collection
from apps.collections.sources import Source, open_source, read_corpus
from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.mappings.checking import Dangling, check_version
from apps.mappings.creating import create_mapping
from apps.mappings.exporting import export_dataset
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from apps.mappings.truth import TruthError
from tests.datasets.valid import DOCUMENT, TRUTH
from tests.drafts import set_judgment
from tests.factories import make_collection, make_dataset
from tests.files.samples import write_dataset, write_file

pytestmark = pytest.mark.django_db

CORPUS = """{"_id": "a", "text": "red\\nfruit", "title": "Apple", "uri": "u:a", "metadata": {"n": [1]}}
{"_id": "b b", "text": "", "uri": "u:b"}
{"_id": "3", "text": "\\u00fc"}
"""


@pytest.fixture
def mapping(tmp_path: Path) -> Mapping:
    (tmp_path / "corpus.jsonl").write_text(CORPUS)
    collection, _ = import_collection(Source(read_corpus(tmp_path / "corpus.jsonl")), name="shop")
    judged = {
        "q1": [({"uri": "u:a"}, 1), ({"document_id": "a"}, 2), ({"document_id": "gone"}, 1), ({"uri": "u:gone"}, 3)],
        "q2": [({"document_id": "b b"}, 0)],
    }
    return resolve_now(create_mapping(make_dataset(judged), collection))


def test_a_mapping_names_documents_and_brings_the_corpus(mapping, tmp_path):
    version = mapping.dataset_version
    assert version is not None
    export = export_dataset(version, "beir", mapping=mapping)
    path = export.save(tmp_path / "beir")
    read = read_dataset(path)
    assert {query.key: {j.doc_ref["document_id"]: j.grade for j in query.judgments} for query in read.queries} == {
        "q1": {"a": 2, "gone": 1, "unresolved:1": 3},
        "q2": {"b b": 0},
    }
    assert export.warnings[-2:] == (
        "Judgments without a document in the collection, with generated ids (unresolved:N): 1.",
        "Judgments of a document that another judgment of the query names, left out: 1.",
    )
    again, _ = import_collection(Source(read_corpus(path / "corpus.jsonl")), name="again")
    assert again.fingerprint == mapping.collection.fingerprint
    names = ("external_id", "title", "text", "uri", "metadata", "content_hash")
    assert list(again.documents.values(*names)) == list(mapping.collection.documents.values(*names))


def test_mapping_of_changed_documents_is_refused(mapping, tmp_path):
    """The judgment of "gone" would else find the document that has this id today, and no one resolved."""
    (tmp_path / "more.jsonl").write_text(CORPUS + '{"_id": "gone", "text": "back"}\n')
    import_collection(Source(read_corpus(tmp_path / "more.jsonl")), name="shop")
    assert mapping.dataset_version is not None
    for format in ("beir", "benchbench-json"):
        with pytest.raises(TruthError, match=r'"shop" have changed since .* was resolved: resolve it again'):
            export_dataset(mapping.dataset_version, format, mapping=mapping)
    assert export_dataset(mapping.dataset_version, "beir", mapping=resolve_now(mapping))


def test_version_newer_than_the_mapping_is_refused(mapping):
    dataset = mapping.dataset
    set_judgment(dataset, "q2", {"document_id": "3"}, 1)
    with pytest.raises(TruthError, match="is newer: resolve it again"):
        export_dataset(dataset.versions.get(number=2), "trec", mapping=mapping)


class TestCommand:
    def test_it_writes_the_newest_frozen_version_or_another(self, mapping, tmp_path, capsys):
        dataset = mapping.dataset
        set_judgment(dataset, "q2", {"document_id": "3"}, 1)
        out = tmp_path / "made.json.gz"
        call_command("export_dataset", dataset.name, "--format", "benchbench-json", "--output", str(out), "--json")
        facts = json.loads(capsys.readouterr().out)
        assert facts == {
            "path": str(out), "format": "benchbench-json", "version": 1, "queries": 2, "judgments": 5, "warnings": []
        }  # fmt: skip
        assert len(read_dataset(out).queries[1].judgments) == 1
        call_command(
            "export_dataset",
            str(dataset.pk),
            "--format",
            "benchbench-json",
            "--output",
            str(tmp_path),
            dataset_version=2,
        )
        assert "Wrote questions v2 (draft) to" in capsys.readouterr().out
        assert len(read_dataset(tmp_path / "questions-v2.json").queries[1].judgments) == 2

    def test_command_writes_directory_or_zip_with_warnings(self, mapping, tmp_path, capsys):
        for output in ("d", "d.zip"):
            path = tmp_path / output
            arguments = ["--format", "beir", "--mapping", mapping.name, "--output", str(path)]
            call_command("export_dataset", "questions", *arguments)
            assert "with generated ids" in capsys.readouterr().err
            assert len(read_dataset(path).queries) == 2
            with pytest.raises(CommandError, match="exists already"):
                call_command("export_dataset", "questions", *arguments)

    def test_its_errors_are_sentences(self, mapping, tmp_path):
        for arguments, sentence in (
            (["nothing", "--format", "trec"], "The dataset 'nothing' was not found; choose one of questions"),
            (["questions", "--format", "trec", "--dataset-version", "9"], "has no version 9; its versions: 1"),
            (["questions", "--format", "trec"], "which has no document_id, and TREC names documents by it"),
            (["questions", "--format", "trec", "--mapping", "none"], "The mapping 'none' was not found"),
        ):
            with pytest.raises(CommandError, match=sentence) as caught:
                call_command("export_dataset", *arguments, "--output", str(tmp_path / "out"))
            assert caught.value.returncode == 1
        Dataset.objects.create(name="bare")
        with pytest.raises(CommandError, match="has no version None; its versions: none"):
            call_command("export_dataset", "bare", "--format", "trec", "--output", str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()


def test_missing_collection_documents_are_named(tmp_path):
    some = make_collection("library", [{"external_id": f"doc{n}"} for n in (1, 2, 3, 5)])
    version = import_dataset(read_dataset(write_dataset(tmp_path / "golden"))).version
    references = check_version(version, some)
    assert references.checked == 5
    assert references.dangling == (Dangling("q2", "No document has the document_id 'doc4'."),)
    every = make_collection("all", [{"external_id": f"doc{n}"} for n in range(6)])
    assert (check_version(version, every).checked, check_version(version, every).dangling) == (5, ())


def test_sections_are_looked_up_in_their_documents(tmp_path):
    (tmp_path / "documents").mkdir()
    write_file(tmp_path / "documents/a.json", DOCUMENT)
    collection, _ = import_collection(open_source(tmp_path), name="library")
    (tmp_path / "documents/a.json").unlink()
    truth = read_dataset(write_file(tmp_path / "truth.json", TRUTH))
    references = check_version(import_dataset(truth, name="truth").version, collection)
    assert (references.checked, references.dangling) == (
        2,
        (
            Dangling("t1", "The document 'A' has no section 's9'."),
            Dangling("t2", "No document has the document_id 'Z'."),
        ),
    )
