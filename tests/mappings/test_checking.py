"""Looking up references before a mapping is resolved."""

from pathlib import Path

import pytest

from apps.collections.importing import import_collection
from apps.collections.sources import open_source
from apps.datasets.formats.registry import read_dataset
from apps.datasets.importing import import_dataset
from apps.mappings.checking import Dangling, check_version
from tests.datasets.test_readers import DOCUMENT, TRUTH
from tests.factories import make_collection
from tests.files.samples import write_dataset, write_file

pytestmark = pytest.mark.django_db


def test_it_names_what_a_collection_lacks(tmp_path: Path) -> None:
    some = make_collection("library", [{"external_id": f"doc{n}"} for n in (1, 2, 3, 5)])
    version = import_dataset(read_dataset(write_dataset(tmp_path / "golden"))).version
    references = check_version(version, some)
    assert references.checked == 5
    assert references.dangling == (Dangling("q2", "No document has the document_id 'doc4'."),)
    every = make_collection("all", [{"external_id": f"doc{n}"} for n in range(6)])
    assert (check_version(version, every).checked, check_version(version, every).dangling) == (5, ())


def test_sections_are_looked_up_in_their_documents(tmp_path: Path) -> None:
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
