"""The script that made the demo's collection, run on the Python at hand."""

import gzip
import json

import pytest

from tests.demo import snapshot


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    path = tmp_path_factory.mktemp("snapshot") / "docs.jsonl.gz"
    snapshot.main([str(path)])
    return path.read_bytes()


@pytest.fixture(scope="module")
def documents(collected):
    return {each["_id"]: each for each in map(json.loads, gzip.decompress(collected).splitlines())}


def test_it_writes_unique_documents_in_the_order_of_their_ids(collected, documents):
    lines = gzip.decompress(collected).splitlines()
    ids = [json.loads(line)["_id"] for line in lines]
    assert ids == sorted(set(ids)) == list(documents)


def test_it_writes_the_same_bytes_twice(collected, tmp_path):
    again = tmp_path / "another-name.gz"
    snapshot.main([str(again)])
    assert again.read_bytes() == collected


def test_it_gives_a_function_its_signature_and_a_class_its_methods(documents):
    assert documents["python:csv.DictReader"]["text"].startswith("DictReader(f, fieldnames=None")
    assert "\n\nMethods:\n" in documents["python:collections.Counter"]["text"]
    assert documents["python:str.join"]["metadata"] == {"kind": "function", "module": "builtins"}


def test_a_thing_with_two_names_is_one_document(documents):
    assert "python:bisect.bisect_right" in documents
    assert "python:bisect.bisect" not in documents
    assert "python:topic.if" in documents
    assert "python:topic.else" not in documents


def test_short_documents_are_kept_where_they_were_asked_for(documents):
    assert documents["python:KeyError"]["text"] == "Mapping key not found."
    assert "python:os.getcwd" in documents
