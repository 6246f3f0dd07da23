"""Valid datasets, damaged: a reader gives a dataset or a sentence, and an import that fails leaves no rows."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.formats.registry import FORMATS, read_dataset
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import check
from tests.damages import damaged_bytes, fuzz, import_each, writer
from tests.datasets.test_readers import DOCUMENT, MODULES, QRELS_TXT, TABLE, TOPICS_TSV, TRUTH
from tests.datasets.test_schema1 import FULL
from tests.files.samples import METADATA, QRELS, TOPICS, write_file

pytestmark = pytest.mark.fuzz
JSON_LINES = [{"query_key": 1, "query_text": "red", "doc_ref": {"document_id": "d", "uri": "u"}, "grade": 2}] * 2
SOURCES: dict[str, dict[str, Any]] = {
    "benchbench-json": {"a.json": FULL},
    "beir": {
        "queries.jsonl": b'{"_id": "q1", "text": "red", "metadata": {"a": 1}}\n{"_id": 2, "text": "blue"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n2\td1\t0\n",
    },
    "trec": {"qrels.txt": QRELS_TXT.encode(), "topics.tsv": TOPICS_TSV.encode()},
    "flowbaby": {"metadata.json": METADATA, "topics.json": TOPICS, "qrels.json": QRELS},
    "sectioned": {"ground_truth.json": TRUTH, "documents/a.json": DOCUMENT},
    "module-queries": {"modules.json": MODULES},
    "table": {"judged.csv": TABLE.encode()},
    "table, JSON Lines": {"judged.jsonl": "\n".join(map(json.dumps, JSON_LINES)).encode()},
}


def test_every_format_is_fuzzed() -> None:
    assert {source.partition(",")[0] for source in SOURCES} == set(FORMATS)


@pytest.mark.parametrize("source", SOURCES)
def test_a_reader_gives_a_dataset_or_a_sentence(source: str, tmp_path: Path) -> None:
    write = writer(tmp_path / "data", SOURCES[source])
    format = source.partition(",")[0]
    assert read_dataset(write([])).source_format == format
    fuzz(lambda path: check(read_dataset(path, format=format)), write)


@pytest.mark.django_db
@pytest.mark.parametrize("source", SOURCES)
def test_an_import_keeps_all_or_nothing(source: str, tmp_path: Path) -> None:
    def use_case(path: Path) -> None:
        imported = import_dataset(read_dataset(path), name="damaged")
        assert imported.version.queries.count() == imported.report.queries
        assert imported.version.judgments.count() == imported.report.judgments

    write = writer(tmp_path / "data", SOURCES[source])
    import_each(use_case, write, models=(Dataset, DatasetVersion, Query, Judgment))


@pytest.mark.parametrize("source", SOURCES)
def test_a_format_is_told_or_refused_in_a_sentence(source: str, tmp_path: Path) -> None:
    fuzz(read_dataset, writer(tmp_path / "data", SOURCES[source]), examples=60)


def test_a_damaged_zip_is_a_sentence(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/qrels.txt", QRELS_TXT)
        archive.writestr("data/topics.tsv", TOPICS_TSV)
    content = (tmp_path / "a.zip").read_bytes()
    assert len(read_dataset(tmp_path / "a.zip").queries) == 2
    fuzz(read_dataset, lambda damages: write_file(tmp_path / "a.zip", damaged_bytes(content, damages)))
