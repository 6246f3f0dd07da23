"""Rereading of references: never another document than was meant, and nothing on weak evidence."""

from typing import Any

import pytest

from apps.mappings.rereading import UnmatchedError, find_reading
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


def refer(*values: str, key: str = "document_id") -> list[dict[str, str]]:
    return [{key: value} for value in values]


def reread(documents: list[dict[str, Any]], *references: str) -> dict[str, dict[str, str]]:
    reading = find_reading(refer(*references), make_collection(documents=documents))
    return dict(reading.meant) if reading else {}


def test_missing_documents_are_not_read_by_chance() -> None:
    documents = [{"title": f"{number + 1}"} if number == 9 else {} for number in range(10)]
    present = [f"d{number}" for number in range(1, 11)]
    assert reread(documents, *present, *(f"{number}" for number in range(10, 20))) == {}


def test_two_references_never_mean_one_document() -> None:
    files = [{"file_name": name} for name in ("guide.md", "b.md", "c.md", "d.md")]
    assert set(reread(files, "en/guide.md", "de/guide.md", "b", "c", "d")) == {"b", "c", "d"}


def test_spellings_of_one_reference_mean_one_document() -> None:
    assert set(reread([{"file_name": "a.md"}], "x/A.md", "X/a.md")) == {"x/A.md", "X/a.md"}


def test_numbers_of_sections_are_no_endings() -> None:
    assert reread([{"file_name": "2.pdf"}, {"file_name": "3.pdf"}], "2.1", "3.1") == {}


DISTINCT = {
    "hosts": (["https://y.com/about", "https://y.com/jobs"], ["https://x.com/about", "https://x.com/jobs"]),
    "folders": (["de/a.md", "de/b.md"], ["en/a.md", "en/b.md"]),
    "identifiers": (["10.1000/182", "10.1001/183"], ["10.2000/182", "10.2001/183"]),
    "domains": (["example.com", "other.com"], ["example.org", "other.org"]),
    "versions": (["spec.v1", "api.v1"], ["spec.v2", "api.v2"]),
    "modules": (["parse.js", "write.js"], ["parse.py", "write.py"]),
}


@pytest.mark.parametrize("name", DISTINCT)
def test_ids_with_other_folders_or_endings_stay_apart(name: str) -> None:
    ids, references = DISTINCT[name]
    assert reread([{"external_id": each} for each in ids], *references) == {}


def test_converted_files_of_one_folder_match() -> None:
    documents = [{"external_id": "de/a.md"}, {"external_id": "de/b.md"}]
    assert set(reread(documents, "corpus/de/a.pdf", "de/b")) == {"corpus/de/a.pdf", "de/b"}


def test_nearly_as_good_reading_asks() -> None:
    documents = [{"title": f"{number}", "file_name": f"{number + 1}"} for number in range(1, 11)]
    with pytest.raises(UnmatchedError, match="Read as titles or as file names"):
        reread(documents, *(f"{number}" for number in range(1, 11)))


def test_matching_id_stays_beside_an_equal_name() -> None:
    collection = make_collection(documents=[{"external_id": "7"}, {"title": "8"}, {"title": "9"}])
    reading = find_reading([*refer("7", "8", "9"), *refer("7", key="file_name")], collection)
    assert reading
    assert set(reading.meant) == {"8", "9"}
