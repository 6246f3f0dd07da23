"""Keys and ids with white space, as every reader gives them: as they are written, or not at all."""

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from rest_framework.exceptions import ValidationError

import apps.api.urls  # noqa: F401  # which loads every request
from apps.api.fields import Key, StrictSerializer
from apps.collections.folders import build_sections, read_html
from apps.collections.models import Collection
from apps.collections.sources import read_corpus
from apps.datasets.formats.reading import read_dataset
from apps.datasets.formats.registry import FORMATS
from apps.datasets.importing import import_dataset
from apps.judging.views.single import ReferenceForm
from apps.mappings.creating import ensure_mapping
from apps.mappings.models import Resolution
from apps.retrieval.importing_vectors import read_vector_file
from benchbench.errors import BenchbenchError
from tests.files.samples import write_file

IDS = [" 7 ", "7", "7 ", "a b", "\u00a07\u00a0", "\u20037", "7\t", "e\u0301", "\u00e9"]
KEYS = [" q ", "q", "\u00a0q"]


def beir(folder: Path, key: str, id: str) -> Path:
    (folder / "qrels").mkdir()
    write_file(folder / "queries.jsonl", json.dumps({"_id": key, "text": "red"}))
    write_file(folder / "qrels/test.tsv", f"query-id\tcorpus-id\tscore\n{key}\t{id}\t1\n")
    return folder


def trec(folder: Path, key: str, id: str) -> Path:
    write_file(folder / "qrels.txt", f"{key} 0 {id} 1\n")
    write_file(folder / "topics.xml", f"<top><num>{key}</num><title>red</title></top>\n")
    return folder


def flowbaby(folder: Path, key: str, id: str) -> Path:
    write_file(folder / "topics.json", [{"query_id": key, "query_text": "red", "slice_ids": []}])
    write_file(folder / "qrels.json", [{"query_id": key, "canonical_item_id": id}])
    return folder


def question(key: str, id: str) -> dict[str, Any]:
    return {"id": key, "question": "red", "answer": "", "document_id": id, "section_ids": [id], "evidence": []}


def snapshot(key: str, id: str) -> dict[str, Any]:
    query = {"query_id": 1, "query_text": key, "ratings": {id: 1}}
    return {"has_snapshot_file": False, "queries": [query], "docs": {"1": []}}


def modules(id: str) -> dict[str, Any]:
    query = {"id": 1, "query": "red", "version": "1", "expected_modules": [id], "category": "x", "difficulty": "easy"}
    return {"benchmark_queries": [query]}


def rank_eval(key: str, id: str) -> dict[str, Any]:
    return {"requests": [{"id": key, "params": {"q": "red"}, "ratings": [{"_index": "i", "_id": id, "rating": 1}]}]}


def table(key: str, id: str) -> str:
    return json.dumps({"query_key": key, "query_text": "red", "document_id": id, "grade": 1}) + "\n"


Write = Callable[[Path, str, str], Path]
WRITTEN: dict[str, list[Write]] = {
    "benchbench-json": [
        lambda folder, key, id: write_file(
            folder / "a.json",
            {"queries": [{"query_key": key, "query_text": "red", "relevant_docs": [{"doc_ref": {"document_id": id}}]}]},
        )
    ],
    "beir": [beir],
    "trec": [trec],
    "flowbaby": [flowbaby],
    "sectioned": [lambda folder, key, id: write_file(folder / "ground_truth.json", [question(key, id)])],
    "module-queries": [lambda folder, key, id: write_file(folder / "a.json", modules(id))],
    "table": [
        lambda folder, key, id: write_file(
            folder / "a.csv", f'query_key,query_text,document_id,grade\n"{key}",red,"{id}",1\n'
        ),
        lambda folder, key, id: write_file(folder / "a.jsonl", table(key, id)),
    ],
    "two-files": [
        lambda folder, key, id: (
            write_file(
                write_file(folder / "asked.jsonl", json.dumps({"_id": key, "text": "red"}) + "\n").with_name(
                    "judged.jsonl"
                ),
                json.dumps({"query_key": key, "document_id": id, "grade": 1}) + "\n",
            ).parent
        )
    ],
    "quepid-ratings": [
        lambda folder, key, id: write_file(folder / "a.csv", f'query,docid,rating\n"{key}","{id}",1\n'),
        lambda folder, key, id: write_file(folder / "a.json", {"queries": [{"query": key, "ratings": {id: 1}}]}),
    ],
    "quepid-snapshot": [lambda folder, key, id: write_file(folder / "a.json", snapshot(key, id))],
    "keyed": [
        lambda folder, key, id: write_file(
            folder / "a.json", {"queries": {key: "red"}, "corpus": {}, "relevant_docs": {key: [id]}}
        ),
        lambda folder, key, id: write_file(folder / "a.json", {key: {id: 1}}),
    ],
    "rank-eval": [lambda folder, key, id: write_file(folder / "a.json", rank_eval(key, id))],
    "opensearch-judgments": [
        lambda folder, key, id: write_file(
            folder / "a.json", {"judgmentRatings": [{"query": key, "ratings": [{"docId": id, "rating": 1}]}]}
        )
    ],
    "opensearch-queries": [
        lambda folder, key, id: write_file(folder / "a.json", {"querySetQueries": [{"queryText": key}]})
    ],
}
WITHOUT_KEYS = {"module-queries"}  # whose keys are integers
WITHOUT_IDS = {"opensearch-queries", "query-log"}
SEPARATED = {"beir": "\t", "trec": " \t"}  # what a column of these cannot hold


def read(format: str, write: Write, folder: Path, key: str, id: str) -> tuple[str, list[Any]]:
    [query] = read_dataset(write(folder, key, id), format=format).queries
    sections = [judgment.section_refs or () for judgment in query.judgments]
    return query.key, [
        *(judgment.doc_ref["document_id"] for judgment in query.judgments),
        *(s for owner in sections for s in owner),
    ]


def test_every_format_is_tried():
    assert {*WRITTEN, "query-log"} == {*FORMATS}


@pytest.mark.parametrize(("format", "write"), [(name, write) for name, writes in WRITTEN.items() for write in writes])
@pytest.mark.parametrize("key", KEYS)
def test_ids_stay_as_written_or_are_refused(format, write, key, tmp_path):
    for number, id in enumerate(IDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        if any(mark in key + id for mark in SEPARATED.get(format, "")):
            outside_of_a_column = key.strip(" \t"), [id.strip(" \t")]
            with suppress(BenchbenchError):
                assert read(format, write, folder, key, id) == outside_of_a_column
            continue
        found_key, result = read(format, write, folder, key, id)
        if format not in WITHOUT_KEYS:
            assert found_key == key
        if format not in WITHOUT_IDS:
            assert {*result} == {id}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["strip.csv", "strip.jsonl", "strip.json", "snapshot.json"])
def test_a_judgment_finds_the_document_with_its_id(name, tmp_path):
    (tmp_path / "corpus").mkdir()
    corpus = write_file(
        tmp_path / "corpus/corpus.jsonl",
        '{"_id": " 7 ", "text": "lemon cake"}\n{"_id": "7", "text": "plum jam"}\n',
    )
    assert [document.external_id for document in read_corpus(corpus)] == [" 7 ", "7"]
    call_command("import_collection", str(corpus), name="cakes")
    writes = {
        "strip.csv": WRITTEN["table"][0],
        "strip.jsonl": WRITTEN["table"][1],
        "strip.json": WRITTEN["benchbench-json"][0],
        "snapshot.json": WRITTEN["quepid-snapshot"][0],
    }
    record = read_dataset(writes[name](tmp_path, "q", " 7 "))
    imported = import_dataset(record, name="judged")
    mapping = ensure_mapping(imported.version.dataset, Collection.objects.get())
    [resolution] = Resolution.objects.filter(mapping=mapping).select_related("document")
    assert resolution.document is not None
    assert resolution.document.external_id == " 7 "
    assert "Ids that begin or end with white space, which is a part of them: ' 7 '." in imported.report.warnings


ID_FIELDS = ("query_key", "external_id", "section_id", "section_refs")


def list_serializers(owner: type = StrictSerializer) -> list[type]:
    return [owner, *chain.from_iterable(list_serializers(inner) for inner in owner.__subclasses__())]


def test_requests_keep_keys_and_ids():
    fields = [(one.__name__, name, field) for one in list_serializers() for name, field in one().fields.items()]
    keys = [(name, segment, getattr(field, "child", field)) for name, segment, field in fields if segment in ID_FIELDS]
    assert len(keys) > len(ID_FIELDS)
    assert [(name, piece) for name, piece, field in keys if not isinstance(field, Key)] == []


@pytest.mark.parametrize("id", [id for id in IDS if id.strip() != id])
def test_key_and_page_form_keep_white_space_around(id):
    assert Key().run_validation(id) == id
    form = ReferenceForm({"key": "document_id", "reference": id}, user=None)
    assert form.is_valid()
    assert form.doc_ref == {"document_id": id}
    with pytest.raises(ValidationError):
        Key().run_validation(" \u00a0")


def test_section_ids_of_pages_stay_as_written():
    _, text, headings = read_html("<h1 id=' a '>One</h1><h2 id=' '>Two</h2>")
    assert [section.section_id for section in build_sections(headings, len(text))] == [" a ", "two"]


@pytest.mark.parametrize("kind", ["U", "S"])
def test_vectors_keep_ids(tmp_path, kind):
    ids = np.array([id for id in IDS if kind == "U" or id.isascii()])
    arrays = {"document_vectors": np.ones((len(ids), 2)), "query_ids": np.array(KEYS), "query_vectors": np.ones((3, 2))}
    np.savez(tmp_path / "a.npz", document_ids=ids.astype(kind), **arrays)
    read = read_vector_file(tmp_path / "a.npz")
    assert (read.document_ids, read.query_ids) == (ids.tolist(), KEYS)
    np.savez(tmp_path / "b.npz", document_ids=np.array([b"\xff"] * len(ids)), **arrays)
    with pytest.raises(BenchbenchError, match=r"b\.npz: document_ids has an id that is not UTF-8"):
        read_vector_file(tmp_path / "b.npz")
