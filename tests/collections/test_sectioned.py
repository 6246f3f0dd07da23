"""Reading sectioned documents and a BEIR corpus, also damaged ones."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import create_collection, import_collection, import_documents
from apps.collections.models import Collection, Document, Section
from apps.collections.records import DocumentRecord
from apps.collections.sources import open_source, read_corpus
from benchbench.errors import BenchbenchError
from tests.damages import fuzz, import_each, writer

DOCUMENT = {
    "id": "A",
    "title": "About",
    "source": "wiki",
    "summary": None,
    "sections": [
        {
            "id": "s1",
            "heading": "One",
            "level": 1,
            "content": "first",
            "subsections": [{"id": "s2", "heading": "Two", "level": 2, "content": "second", "subsections": []}],
        },
        {"id": "s3", "heading": "Three", "level": 1, "content": "third"},
    ],
}


def read(folder: Path) -> list[DocumentRecord]:
    return list(open_source(folder).documents)


def spans(record: DocumentRecord) -> dict[str, str]:
    return {section.section_id: record.text[section.start : section.end] for section in record.sections}


def test_without_markdown_sections_are_flattened_into_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DOCUMENT))
    (record,) = read(tmp_path)
    assert (record.external_id, record.title, record.metadata) == ("A", "About", {"source": "wiki"})
    assert record.text == "One\n\nfirst\n\nTwo\n\nsecond\n\nThree\n\nthird"
    assert spans(record) == {"s1": "One\n\nfirst", "s2": "Two\n\nsecond", "s3": "Three\n\nthird"}
    assert [section.level for section in record.sections] == [1, 2, 1]


def test_adjacent_markdown_is_the_text_and_locates_sections(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/a.json").write_text(json.dumps(DOCUMENT))
    text = "# About\n\nThree\n\n## One\n\nfirst\n\n### Two ###\nsecond\n\nand third\n"
    (tmp_path / "documents/a.md").write_text(text)
    (record,) = read(tmp_path)
    assert record.text == text
    assert spans(record) == {"s1": "## One\n\nfirst\n\n", "s2": "### Two ###\nsecond\n\nand ", "s3": "third\n"}


def test_a_document_without_sections_has_those_of_its_headings(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "a.md").write_text("## One\n\n## Three\n")
    assert spans(read(tmp_path)[0]) == {"s1": "## One\n\n", "s2": "", "s3": "## Three\n"}
    (tmp_path / "a.json").write_text(json.dumps({"id": "A", "title": "About"}))
    (tmp_path / "a.md").write_text("# About\n")
    (record,) = read(tmp_path)
    assert (record.text, spans(record)) == ("# About\n", {"about": "# About\n"})


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (DOCUMENT | {"title": 1}, "a.json, title must be a string, not a number."),
        (DOCUMENT | {"sections": DOCUMENT["sections"] * 2}, "a.json, sections has the id 's1' more than once."),  # type: ignore[operator]
    ],
)
def test_its_errors_name_file_and_key(tmp_path: Path, document: object, sentence: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(BenchbenchError) as caught:
        read(tmp_path)
    assert caught.value.message.startswith(sentence)


@pytest.mark.django_db
def test_they_become_documents_with_sections(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DOCUMENT))
    collection = create_collection("library")
    assert import_documents(collection, read(tmp_path)).created == 1
    assert list(Section.objects.values_list("section_id", "ordinal")) == [("s1", 0), ("s2", 1), ("s3", 2)]
    assert import_documents(collection, read(tmp_path)).unchanged == 1


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
    assert (seven.external_id, seven.title, seven.text, seven.location) == ("7", "", "", "corpus.jsonl, line 3")


def test_it_reads_a_gzipped_corpus_or_says_why_not(tmp_path: Path) -> None:
    path = corpus(tmp_path, gzip.compress(b'{"_id": "a", "text": "x"}\n'), "corpus.jsonl.gz")
    assert [record.external_id for record in read_corpus(path)] == ["a"]
    complete = gzip.compress(b'{"_id": "a", "text": "x"}\n' * 100)
    with pytest.raises(BenchbenchError, match=r"corpus\.jsonl\.gz cannot be unpacked past line \d+"):
        list(read_corpus(corpus(tmp_path, complete[:-12], "corpus.jsonl.gz")))
    with pytest.raises(BenchbenchError, match=r"corpus\.jsonl cannot be read: No such file"):
        list(read_corpus(tmp_path / "corpus.jsonl"))


FAULTS = {
    "broken JSON": ('{"_id": "a", "text": }', "is not JSON: Expecting value"),
    "not an object": ('["a"]', "holds a list: each line must be an object"),
    "blank id": ('{"_id": " ", "text": "x"}', "_id must not be blank"),
    "id true": ('{"_id": true, "text": "x"}', "_id must be a string, not true"),
    "id null": ('{"_id": null, "text": "x"}', "_id must be a string, not null"),
    "text a number": ('{"_id": "a", "text": 1}', "text must be a string, not a number"),
    "title null": ('{"_id": "a", "text": "x", "title": null}', "title must be a string, not null"),
    "uri a list": ('{"_id": "a", "text": "x", "uri": []}', "uri must be a string, not a list"),
    "metadata a string": ('{"_id": "a", "text": "x", "metadata": "m"}', "metadata must be an object, not a string"),
    "NaN": ('{"_id": "a", "text": "x", "metadata": {"n": NaN}}', "holds NaN"),
    "NUL": ('{"_id": "a", "text": "x\\u0000y"}', r"cannot be stored \(NUL or half of a surrogate pair\): 'x\\x00y'"),
    "far too deep": ("[" * 100_000, "nested deeper than 100"),
    "not UTF-8": (b'{"_id": "\xff", "text": "x"}', r"is not UTF-8: byte 9 is 0xFF"),
}


@pytest.mark.parametrize(("line", "sentence"), FAULTS.values(), ids=FAULTS)
def test_it_names_file_and_line_of_a_fault(tmp_path: Path, line: str | bytes, sentence: str) -> None:
    good = b'{"_id": "first", "text": "x"}\n'
    path = corpus(tmp_path, good + (line if isinstance(line, bytes) else line.encode()))
    with pytest.raises(BenchbenchError, match=rf"^corpus\.jsonl, line 2,? .*{sentence}") as caught:
        list(read_corpus(path))
    assert caught.value.status == 400
    assert caught.value.message.endswith(".")


SOURCES: dict[str, dict[str, Any]] = {
    "corpus": {
        "corpus.jsonl": b'{"_id": "a", "title": "Pears", "text": "Green.", "uri": "shop:a", "metadata": {"n": 1}}\n'
        b'\n{"_id": 7, "text": ""}\n{"_id": "c", "text": "\\u00e9"}\n'
    },
    "sectioned": {"a.json": DOCUMENT, "a.md": b"# About\n\n## One\n\nfirst\n", "b.json": DOCUMENT | {"id": "B"}},
    "texts": {"a.md": b"# About\n\nfirst\n", "b/c.html": b"<html><title>C</title><p>An &amp; other</p></html>"},
}


@pytest.mark.fuzz
@pytest.mark.parametrize("source", SOURCES)
def test_a_reader_gives_documents_or_a_sentence(source: str, tmp_path: Path) -> None:
    write = writer(tmp_path / "data", SOURCES[source])
    assert len(list(open_source(write([])).documents)) == {"corpus": 3}.get(source, 2)
    fuzz(lambda path: list(open_source(path).documents), write)


@pytest.mark.fuzz
@pytest.mark.django_db
@pytest.mark.parametrize("source", SOURCES)
def test_an_import_keeps_all_or_nothing(source: str, tmp_path: Path) -> None:
    def use_case(path: Path) -> None:
        collection, report = import_collection(open_source(path), name="damaged")
        assert collection.documents.count() == collection.document_count == report.created

    import_each(use_case, writer(tmp_path / "data", SOURCES[source]), models=(Collection, Document, Section))
