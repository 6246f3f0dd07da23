"""Valid documents, damaged: a reader gives documents or a sentence, and an import that fails leaves no rows."""

from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import import_collection
from apps.collections.models import Collection, Document, Section
from apps.collections.sources import open_source
from tests.collections.test_sectioned import DOCUMENT
from tests.damages import fuzz, import_each, writer

pytestmark = pytest.mark.fuzz
SOURCES: dict[str, dict[str, Any]] = {
    "corpus": {
        "corpus.jsonl": b'{"_id": "a", "title": "Pears", "text": "Green.", "uri": "shop:a", "metadata": {"n": 1}}\n'
        b'\n{"_id": 7, "text": ""}\n{"_id": "c", "text": "\\u00e9"}\n'
    },
    "sectioned": {"a.json": DOCUMENT, "a.md": b"# About\n\n## One\n\nfirst\n", "b.json": DOCUMENT | {"id": "B"}},
    "texts": {"a.md": b"# About\n\nfirst\n", "b/c.html": b"<html><title>C</title><p>An &amp; other</p></html>"},
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_reader_gives_documents_or_a_sentence(source: str, tmp_path: Path) -> None:
    write = writer(tmp_path / "data", SOURCES[source])
    assert len(list(open_source(write([])).documents)) == {"corpus": 3}.get(source, 2)
    fuzz(lambda path: list(open_source(path).documents), write)


@pytest.mark.django_db
@pytest.mark.parametrize("source", SOURCES)
def test_an_import_keeps_all_or_nothing(source: str, tmp_path: Path) -> None:
    def use_case(path: Path) -> None:
        collection, report = import_collection(open_source(path), name="damaged")
        assert collection.documents.count() == collection.document_count == report.created

    import_each(use_case, writer(tmp_path / "data", SOURCES[source]), models=(Collection, Document, Section))
