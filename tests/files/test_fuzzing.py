"""Readers of files on damaged files, and on what our writers wrote. Datasets: tests/datasets/test_round_trips.py."""

import gzip
import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.files import beir, flowbaby, trec
from benchbench.files.flowbaby_results import (
    Provenance,
    QueryFigures,
    build_results,
    build_summary,
    compare_summaries,
    read_summary,
    render_json,
)
from benchbench.files.runs import read_run_file
from benchbench.ir.canonical import Run, RunEntry
from benchbench.ir.profiles import FLOWBABY_1_0, FLOWBABY_1_1
from benchbench.reading.strict_json import read_value
from tests.damages import EXAMPLES, damaged_bytes, damaged_value, drawn, fuzz
from tests.datasets.samples import FILLED
from tests.files.samples import (
    CLASSIC_TOPICS,
    FLOWBABY_SUMMARY,
    METADATA,
    QRELS,
    RUN,
    TOPICS,
    TREC_RUN,
    XML_TOPICS,
    write_dataset,
    write_file,
)

TREC_QRELS = b"q1 0 d1 1\nq1 0 d2 -1\nq2\t0\td1\t4\r\n\nq3 0 d9 0\n"
TREC_LINES = b"1\twhat is it\n2\twhere\tis it\n"
BEIR_QRELS = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n"
BEIR_QUERIES = b'{"_id": "q1", "text": "one", "metadata": {"split": "x"}}\n{"_id": 2, "text": "two"}\n'
QUERY_KEYS = {"q1", "q2"}


def read_ranked_trec(path):
    for of_query in trec.read_run(path).values():
        of_query.rank()


def read_ranked_flowbaby(path):
    run = flowbaby.read_run(path)
    for order_by in ("rank", "score", "agree"):
        flowbaby.list_rankings(run, order_by=order_by)


BYTES = {
    "TREC qrels": (trec.read_qrels, TREC_QRELS, "qrels.txt"),
    "TREC run": (read_ranked_trec, TREC_RUN, "run.txt"),
    "TREC topics, lines": (trec.read_topics, TREC_LINES, "topics.tsv"),
    "TREC topics, open tags": (trec.read_topics, CLASSIC_TOPICS.encode(), "topics.txt"),
    "TREC topics, XML": (trec.read_topics, XML_TOPICS.encode(), "topics.xml"),
    "BEIR qrels": (beir.read_qrels, BEIR_QRELS, "test.tsv"),
    "BEIR queries": (lambda path: list(beir.read_queries(path)), BEIR_QUERIES, "queries.jsonl"),
    "Flowbaby run, text": (read_ranked_flowbaby, json.dumps(RUN).encode(), "run.json"),
    "run, TREC": (lambda path: read_run_file(path, QUERY_KEYS), TREC_RUN, "run.txt"),
    "run, Flowbaby": (lambda path: read_run_file(path, QUERY_KEYS), json.dumps(RUN).encode(), "run.json"),
}


@pytest.mark.fuzz
@pytest.mark.parametrize("name", BYTES)
def test_a_reader_survives_damaged_bytes(name, tmp_path):
    read, content, file_name = BYTES[name]
    path = write_file(tmp_path / file_name, content)
    read(path)
    fuzz(read, lambda damages: write_file(path, damaged_bytes(content, damages)))


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("read", "value", "name"),
    [
        (read_ranked_flowbaby, RUN, "run.json"),
        (lambda path: read_run_file(path, QUERY_KEYS, order_by="score"), RUN, "run.json"),
        (flowbaby.read_qrels, QRELS, "qrels.json"),
        (read_summary, FLOWBABY_SUMMARY, "summary.json"),
    ],
    ids=["Flowbaby run", "run, Flowbaby", "Flowbaby qrels", "summary"],
)
def test_a_reader_survives_damaged_values(read, value, name, tmp_path):
    read(write_file(tmp_path / name, value))
    fuzz(read, lambda damages: write_file(tmp_path / name, damaged_value(value, damages)))


@pytest.mark.fuzz
def test_the_reader_of_a_flowbaby_dataset_survives_damaged_values(tmp_path):
    complete = {"metadata": METADATA, "topics": TOPICS, "qrels": QRELS}

    def write(damages):
        damaged = damaged_value(complete, damages)
        return write_dataset(tmp_path / "data", **{name: json.dumps(damaged.get(name)) for name in complete})

    fuzz(flowbaby.read_dataset, write)


@pytest.mark.fuzz
def test_a_damaged_archive_is_a_sentence(tmp_path):
    packed = gzip.compress(TREC_RUN)
    fuzz(trec.read_run, lambda damages: write_file(tmp_path / "run.gz", damaged_bytes(packed, damages), packed=True))


SCORES = st.floats(allow_nan=False, allow_infinity=False)
ENTRIES = st.lists(st.builds(RunEntry, FILLED, FILLED, st.integers(1, 2**70), SCORES), max_size=5)
DRAWN = drawn(max(EXAMPLES // 20, 40))
COLUMN = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=5)


@pytest.mark.fuzz
@DRAWN
@given(run_id=FILLED, entries=ENTRIES)
def test_a_flowbaby_run(run_id, entries, tmp_path):
    path = write_file(tmp_path / "run.json.gz", "".join(flowbaby.render_run(run_id, entries)))
    assert flowbaby.read_run(path) == Run(run_id, tuple(entries))


@pytest.mark.fuzz
@DRAWN
@given(truth=st.dictionaries(COLUMN, st.dictionaries(COLUMN, st.integers(-9, 9), min_size=1), min_size=1))
def test_trec_judgments(truth, tmp_path):
    rows = [(query, document, grade) for query, owner in truth.items() for document, grade in owner.items()]
    with TemporaryDirectory(dir=tmp_path) as folder:
        read = trec.read_qrels(write_file(Path(folder) / "qrels.txt", "".join(trec.write_qrels(rows))))
    assert {
        query: {name.decode(): grade for name, grade in subject.items()} for query, subject in read.items()
    } == truth


def test_flowbaby_results_and_summaries(tmp_path):
    queries = [
        QueryFigures("q1", ("a", "b"), 3, {"mrr": 1 / 3, "ndcg@5": 0.1}),
        QueryFigures("ü", ("b",), 1, {"mrr": 1.0, "ndcg@5": 1e-300}),
    ]
    about = {"run_id": "one", "timestamp": "2026-03-01T12:00:00Z", "dataset_id": "golden"}
    versions = {"dataset_version": "1.0", "canonicalization_version": "v1"}
    for profile in (FLOWBABY_1_0, FLOWBABY_1_1):
        content = build_results(queries, profile=profile, cutoffs=[5], judged=[0, 2])
        assert read_value(write_file(tmp_path / "results.json", render_json(content))) == content
        for remaining in (
            {},
            {"git_sha": "abc", "selection_split": "train", "evaluation_split": "test", "duration_ms": 7},
        ):
            short = build_summary(content, Provenance(**about, **versions, **remaining))
            read = read_summary(write_file(tmp_path / "summary.json", render_json(short)))
            recognised = {key: value for key, value in asdict(read).items() if value is not None}
            assert recognised.items() <= short.items()
            measures = compare_summaries(read, read)["measures"]
            assert measures.keys() == short["metrics"].keys()
            assert {owner["difference"] for owner in measures.values()} == {0}
