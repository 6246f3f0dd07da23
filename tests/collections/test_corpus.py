"""Reading a BEIR corpus."""

import gzip
from pathlib import Path

import pytest

from apps.collections.sources import read_corpus
from benchbench.errors import BenchbenchError


def corpus(folder: Path, content: str | bytes, name: str = "corpus.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_it_reads_documents_in_file_order(tmp_path: Path) -> None:
    path = corpus(
        tmp_path,
        '{"_id": "b", "title": "Pears", "text": "Green.", "uri": "shop:b", "metadata": {"year": 1999}}\n'
        "\n"
        '{"_id": 7, "text": ""}\n',
    )
    pears, seven = read_corpus(path)
    assert (pears.external_id, pears.title, pears.text, pears.uri) == ("b", "Pears", "Green.", "shop:b")
    assert pears.metadata == {"year": 1999}
    assert (seven.external_id, seven.title, seven.text, seven.place) == ("7", "", "", "corpus.jsonl, line 3")


def test_it_reads_a_gzipped_corpus(tmp_path: Path) -> None:
    path = corpus(tmp_path, gzip.compress(b'{"_id": "a", "text": "x"}\n'), "corpus.jsonl.gz")
    assert [record.external_id for record in read_corpus(path)] == ["a"]


def test_it_says_when_a_gzipped_corpus_is_cut_off(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"_id": "a", "text": "x"}\n' * 100)
    with pytest.raises(BenchbenchError, match=r"corpus\.jsonl\.gz cannot be unpacked past line \d+"):
        list(read_corpus(corpus(tmp_path, whole[:-12], "corpus.jsonl.gz")))


def test_it_says_when_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(BenchbenchError, match=r"corpus\.jsonl cannot be read: No such file"):
        list(read_corpus(tmp_path / "corpus.jsonl"))


FAULTS = {
    "broken JSON": ('{"_id": "a", "text": }', "is not JSON: Expecting value"),
    "not an object": ('["a"]', "holds a list: each line must be an object"),
    "no id": ('{"text": "x"}', "lacks the key _id"),
    "blank id": ('{"_id": " ", "text": "x"}', "_id is blank"),
    "id true": ('{"_id": true, "text": "x"}', "_id must be a string, not true"),
    "id null": ('{"_id": null, "text": "x"}', "_id must be a string, not null"),
    "no text": ('{"_id": "a"}', "lacks the key text"),
    "text a number": ('{"_id": "a", "text": 1}', "text must be a string, not a number"),
    "title null": ('{"_id": "a", "text": "x", "title": null}', "title must be a string, not null"),
    "uri a list": ('{"_id": "a", "text": "x", "uri": []}', "uri must be a string, not a list"),
    "metadata a string": ('{"_id": "a", "text": "x", "metadata": "m"}', "metadata must be an object, not a string"),
    "unknown key": ('{"_id": "a", "txet": "x"}', "unknown key 'txet'"),
    "key twice": ('{"_id": "a", "text": "x", "text": "y"}', "has the key 'text' twice in one object"),
    "NaN": ('{"_id": "a", "text": "x", "metadata": {"n": NaN}}', "holds NaN"),
    "number out of range": (
        '{"_id": "a", "text": "x", "metadata": {"n": 1e999}}',
        "number 1e999, which is out of range",
    ),
    "endless integer": ('{"_id": ' + "9" * 5000 + "}", "integer of 5000 digits"),
    "NUL": ('{"_id": "a", "text": "x\\u0000y"}', r"cannot be stored \(NUL or half of a surrogate pair\): 'x\\x00y'"),
    "half a surrogate pair": ('{"_id": "a", "text": "\\ud800"}', "cannot be stored"),
    "too deep": (
        '{"_id": "a", "text": "x", "metadata": {"m": ' + "[" * 200 + "]" * 200 + "}}",
        "nested deeper than 100",
    ),
    "far too deep": ("[" * 100_000, "nested deeper than 100"),
    "not UTF-8": (b'{"_id": "\xff", "text": "x"}', r"is not UTF-8: byte 9 \(invalid start byte\)"),
}


@pytest.mark.parametrize(("line", "sentence"), FAULTS.values(), ids=FAULTS)
def test_it_names_file_and_line_of_a_fault(tmp_path: Path, line: str | bytes, sentence: str) -> None:
    good = b'{"_id": "first", "text": "x"}\n'
    path = corpus(tmp_path, good + (line if isinstance(line, bytes) else line.encode()))
    with pytest.raises(BenchbenchError, match=rf"^corpus\.jsonl, line 2,? .*{sentence}") as caught:
        list(read_corpus(path))
    assert caught.value.status == 400
    assert caught.value.message.endswith(".")
