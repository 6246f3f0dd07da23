"""Each reader of files, on valid files that are damaged: see tests/damages.py."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbench.files import beir, flowbaby, trec
from benchbench.files.flowbaby_results import read_summary
from benchbench.files.runs import read_run_file
from tests.damages import Damage, damaged_bytes, damaged_value, fuzz
from tests.files.samples import METADATA, QRELS, RUN, TOPICS, write_dataset, write_file
from tests.files.test_flowbaby import SUMMARY
from tests.files.test_trec import CLASSIC, XML

TREC_QRELS = b"q1 0 d1 1\nq1 0 d2 -1\nq2\t0\td1\t4\r\n\nq3 0 d9 0\n"
TREC_RUN = b"q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 1e-3 tag\nq2 Q0 d1 1 -7 tag more\n\nq1 Q0 d3 3 inf tag\n"
TREC_LINES = b"1\twhat is it\n2\twhere\tis it\n"
BEIR_QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n"
BEIR_QUERIES = b'{"_id": "q1", "text": "one", "metadata": {"split": "x"}}\n{"_id": 2, "text": "two"}\n'
ASKED = {"q1", "q2"}
pytestmark = pytest.mark.fuzz


def read_ranked_trec(path: Path) -> None:
    for of_query in trec.read_run(path).values():
        of_query.ranking()


def read_ranked_flowbaby(path: Path) -> None:
    run = flowbaby.read_run(path)
    for order_by in ("rank", "score", "agree"):
        flowbaby.rankings(run, order_by=order_by)


BYTES: dict[str, tuple[Callable[[Path], Any], bytes, str]] = {
    "TREC qrels": (trec.read_qrels, TREC_QRELS, "qrels.txt"),
    "TREC run": (read_ranked_trec, TREC_RUN, "run.txt"),
    "TREC topics, lines": (trec.read_topics, TREC_LINES, "topics.tsv"),
    "TREC topics, open tags": (trec.read_topics, CLASSIC.encode(), "topics.txt"),
    "TREC topics, XML": (trec.read_topics, XML.encode(), "topics.xml"),
    "BEIR qrels": (beir.read_qrels, BEIR_QRELS, "test.tsv"),
    "BEIR queries": (lambda path: list(beir.read_queries(path)), BEIR_QUERIES, "queries.jsonl"),
    "Flowbaby run, text": (read_ranked_flowbaby, json.dumps(RUN).encode(), "run.json"),
    "run, TREC": (lambda path: read_run_file(path, ASKED), TREC_RUN, "run.txt"),
    "run, Flowbaby": (lambda path: read_run_file(path, ASKED), json.dumps(RUN).encode(), "run.json"),
}


@pytest.mark.parametrize("name", BYTES)
def test_a_reader_survives_damaged_bytes(name: str, tmp_path: Path) -> None:
    read, content, file_name = BYTES[name]
    path = write_file(tmp_path / file_name, content)
    read(path)
    fuzz(read, lambda damages: write_file(path, damaged_bytes(content, damages)))


@pytest.mark.parametrize(
    ("read", "value", "name"),
    [
        (read_ranked_flowbaby, RUN, "run.json"),
        (lambda path: read_run_file(path, ASKED, order_by="score"), RUN, "run.json"),
        (flowbaby.read_qrels, QRELS, "qrels.json"),
        (read_summary, SUMMARY, "summary.json"),
    ],
    ids=["Flowbaby run", "run, Flowbaby", "Flowbaby qrels", "summary"],
)
def test_a_reader_survives_damaged_values(read: Callable[[Path], Any], value: Any, name: str, tmp_path: Path) -> None:
    read(write_file(tmp_path / name, value))
    fuzz(read, lambda damages: write_file(tmp_path / name, damaged_value(value, damages)))


def test_the_reader_of_a_flowbaby_dataset_survives_damaged_values(tmp_path: Path) -> None:
    whole = {"metadata": METADATA, "topics": TOPICS, "qrels": QRELS}

    def write(damages: list[Damage]) -> Path:
        damaged = damaged_value(whole, damages)
        return write_dataset(tmp_path / "data", **{name: json.dumps(damaged.get(name)) for name in whole})

    fuzz(flowbaby.read_dataset, write)


def test_a_damaged_archive_is_a_sentence(tmp_path: Path) -> None:
    packed = gzip.compress(TREC_RUN)
    fuzz(trec.read_run, lambda damages: write_file(tmp_path / "run.gz", damaged_bytes(packed, damages), packed=True))
