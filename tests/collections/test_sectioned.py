"""Reading sectioned documents."""

import json
from pathlib import Path

import pytest

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Section
from apps.collections.records import DocumentRecord
from apps.collections.sources import open_source
from benchbench.errors import BenchbenchError

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


def test_sections_are_flattened_depth_first_and_are_the_text_where_there_is_no_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DOCUMENT))
    (record,) = read(tmp_path)
    assert (record.external_id, record.title, record.metadata) == ("A", "About", {"source": "wiki"})
    assert record.text == "One\n\nfirst\n\nTwo\n\nsecond\n\nThree\n\nthird"
    assert spans(record) == {"s1": "One\n\nfirst", "s2": "Two\n\nsecond", "s3": "Three\n\nthird"}
    assert [section.level for section in record.sections] == [1, 2, 1]


def test_the_markdown_beside_it_is_the_text_and_sections_are_found_in_it(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/a.json").write_text(json.dumps(DOCUMENT))
    text = "# About\n\nThree\n\n## One\n\nfirst\n\n### Two ###\nsecond\n\nand third\n"
    (tmp_path / "documents/a.md").write_text(text)
    (record,) = read(tmp_path)
    assert record.text == text
    assert spans(record) == {"s1": "## One\n\nfirst\n\n", "s2": "### Two ###\nsecond\n\nand ", "s3": "third\n"}


def test_a_section_that_the_markdown_lacks_has_no_span(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "a.md").write_text("## One\n\n## Three\n")
    assert spans(read(tmp_path)[0]) == {"s1": "## One\n\n", "s2": "", "s3": "## Three\n"}


def test_a_document_without_sections_has_those_of_its_headings(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"id": "A", "title": "About"}))
    (tmp_path / "a.md").write_text("# About\n")
    (record,) = read(tmp_path)
    assert (record.text, spans(record)) == ("# About\n", {"about": "# About\n"})


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (DOCUMENT | {"title": 1}, "a.json, title must be a string, not a number."),
        (DOCUMENT | {"sections": [{"id": "s"}]}, "a.json, sections[0] lacks the key level."),
        (DOCUMENT | {"sections": DOCUMENT["sections"] * 2}, "a.json, sections has the id 's1' more than once."),  # type: ignore[operator]
        (DOCUMENT | {"tags": []}, "a.json has the unknown key 'tags'"),
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
