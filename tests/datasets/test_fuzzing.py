"""Valid datasets, damaged: a reader gives a dataset or a sentence, and an import that fails leaves no rows.

As tests/files/test_fuzzing.py, whose damages these are; `make fuzz` goes on for longer.
"""

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.previewing import preview
from apps.datasets.readers import read_dataset
from benchbench.errors import BenchbenchError
from tests.datasets.test_readers import DOCUMENT, MODULES, QRELS_TXT, TABLE, TOPICS_TSV, TRUTH
from tests.datasets.test_schema1 import FULL
from tests.files.samples import METADATA, QRELS, TOPICS, write_file
from tests.files.test_fuzzing import Damage, damaged_bytes, damaged_value, damages_of, fuzz

IMPORTS = 100
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


def writer(folder: Path, files: dict[str, Any]) -> Callable[[list[Damage]], Path]:
    """Return what writes the files, one of them damaged, and gives the path to read."""
    names = list(files)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)

    def write(damages: list[Damage]) -> Path:
        chosen = names[damages[0][1] % len(names)] if damages else ""
        for name, content in files.items():
            if name == chosen:
                damage = damaged_bytes if isinstance(content, bytes) else damaged_value
                content = damage(content, damages)
            write_file(folder / name, content)
        return folder if len(names) > 1 else folder / names[0]

    return write


@pytest.mark.parametrize("source", SOURCES)
def test_a_reader_gives_a_dataset_or_a_sentence(source: str, tmp_path: Path) -> None:
    write = writer(tmp_path / "data", SOURCES[source])
    format = source.partition(",")[0]
    assert preview(read_dataset(write([]))).format == format
    fuzz(lambda path: preview(read_dataset(path, format=format)), write)


@pytest.mark.django_db
@pytest.mark.parametrize("source", SOURCES)
def test_an_import_keeps_all_or_nothing(source: str, tmp_path: Path) -> None:
    write = writer(tmp_path / "data", SOURCES[source])
    seeds = random.Random(source)
    refused = 0
    for _ in range(IMPORTS // 10):
        for damages in damages_of(seeds.randrange(2**32)):
            try:
                imported = import_dataset(read_dataset(write(damages)), name="damaged")
                assert imported.version.queries.count() == imported.report.queries
                assert imported.version.judgments.count() == imported.report.judgments
                Dataset.objects.all().delete()
            except BenchbenchError:
                refused += 1
                assert not any(model.objects.exists() for model in (Dataset, DatasetVersion, Query, Judgment))
    assert refused


@pytest.mark.parametrize("source", SOURCES)
def test_a_format_is_told_or_refused_in_a_sentence(source: str, tmp_path: Path) -> None:
    fuzz(read_dataset, writer(tmp_path / "data", SOURCES[source]), examples=200)


def test_a_damaged_zip_is_a_sentence(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/qrels.txt", QRELS_TXT)
        archive.writestr("data/topics.tsv", TOPICS_TSV)
    content = (tmp_path / "a.zip").read_bytes()
    assert len(read_dataset(tmp_path / "a.zip").queries) == 2
    fuzz(read_dataset, lambda damages: write_file(tmp_path / "a.zip", damaged_bytes(content, damages)))
