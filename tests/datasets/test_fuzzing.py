"""Files damaged, or with a key more or less: a reader gives a dataset or a sentence, and no import leaves rows."""

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.collections.sources import read_corpus
from apps.datasets.formats.module_queries import read_module_queries
from apps.datasets.formats.reading import read_dataset
from apps.datasets.formats.registry import FORMATS
from apps.datasets.formats.sectioned import read_ground_truth
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import check
from benchbench.errors import BenchbenchError
from benchbench.files import beir, flowbaby, sectioned
from benchbench.files.experiment import read_experiment
from tests.damages import damaged_bytes, fuzz, import_each, writer
from tests.datasets import tool_samples
from tests.datasets.schema1 import FULL
from tests.datasets.valid import DOCUMENT, KEYED, MODULES, QRELS_TXT, TABLE, TOPICS_TSV, TRUTH
from tests.files.samples import FULL_EXPERIMENT as EXPERIMENT
from tests.files.samples import METADATA, QRELS, RUN, TOPICS, write_dataset, write_file

BEIR_LINE = {"_id": "a", "text": "red", "metadata": {}}
JsonPath = tuple[str | int, ...]


def whole_dataset(path: Path) -> Any:
    """Read the Flowbaby dataset of which one file is at `path`, next to valid ones."""
    files = {"metadata": METADATA, "topics": TOPICS, "qrels": QRELS}
    remaining = {name: value for name, value in files.items() if f"{name}.json" != path.name}
    write_dataset(path.parent, **{name: remaining.get(name) for name in files})
    return flowbaby.read_dataset(path.parent)


FILES: dict[str, tuple[Any, Callable[[Path], Any]]] = {
    "a.json": (FULL, read_dataset),
    "queries.jsonl": (BEIR_LINE, lambda path: list(beir.read_queries(path))),
    "corpus.jsonl": (BEIR_LINE, lambda path: list(read_corpus(path))),
    "metadata.json": (METADATA, whole_dataset),
    "topics.json": (TOPICS, whole_dataset),
    "qrels.json": (QRELS, whole_dataset),
    "run.json": (RUN, flowbaby.read_run),
    "document.json": (DOCUMENT, sectioned.read_document),
    "ground_truth.json": (TRUTH, read_ground_truth),
    "modules.json": (MODULES, read_module_queries),
    "experiment.yaml": (EXPERIMENT, read_experiment),
}
# Of each object: its file, where it is in that, how sentences call it, and the keys that it must have.
OBJECTS: list[tuple[str, JsonPath, str, str]] = [
    ("a.json", (), "The file", "queries"),
    ("a.json", ("queries", 0), "queries[0]", "query_key query_text"),
    ("a.json", ("queries", 0, "relevant_docs", 0), "queries[0].relevant_docs[0]", "doc_ref"),
    ("queries.jsonl", (), "queries.jsonl, line 1", "_id text"),
    ("corpus.jsonl", (), "corpus.jsonl, line 1", "_id text"),
    ("metadata.json", (), "metadata.json", ""),
    ("topics.json", (0,), "topics.json[0]", "query_id query_text slice_ids"),
    ("qrels.json", (0,), "qrels.json[0]", "query_id canonical_item_id"),
    ("run.json", (), "run.json", "run_id entries"),
    ("run.json", ("entries", 0), "run.json, entries[0]", "query_id canonical_item_id rank score"),
    ("document.json", (), "document.json", "id title"),
    ("document.json", ("sections", 0), "document.json, sections[0]", "id heading level content"),
    (
        *("document.json", ("sections", 0, "subsections", 0), "document.json, sections[0].subsections[0]"),
        "id heading level content",
    ),
    ("ground_truth.json", (0,), "ground_truth.json[0]", "id question answer document_id section_ids evidence"),
    ("modules.json", (), "modules.json", "benchmark_queries"),
    (
        *("modules.json", ("benchmark_queries", 0), "benchmark_queries[0]"),
        "id query version expected_modules category difficulty",
    ),
    ("experiment.yaml", (), "experiment.yaml", "id data embeddings backends strategies"),
    ("experiment.yaml", ("data",), "experiment.yaml, data", "documents_dir ground_truth_path"),
    ("experiment.yaml", ("benchmark",), "experiment.yaml, benchmark", ""),
    ("experiment.yaml", ("embeddings", 0), "experiment.yaml, embeddings[0]", "model"),
    ("experiment.yaml", ("llms", 0), "experiment.yaml, llms[0]", "model"),
    ("experiment.yaml", ("backends", 0), "experiment.yaml, backends[0]", "name"),
    ("experiment.yaml", ("strategies", 0), "experiment.yaml, strategies[0]", "name"),
]
MUST = [(file, path, position, key) for file, path, position, keys in OBJECTS for key in keys.split()]


def with_at(value: Any, path: JsonPath, put: Any) -> Any:
    """A copy of a JSON value with `put` at a place in it."""
    if not path:
        return put
    if isinstance(value, list):
        return [with_at(item, path[1:], put) if index == path[0] else item for index, item in enumerate(value)]
    return value | {path[0]: with_at(value[path[0]], path[1:], put)}


def at(value: Any, path: JsonPath) -> Any:
    for key in path:
        value = value[key]
    return value


def refusal_of(folder: Path, file: str, path: JsonPath, put: Any) -> str:
    value, read = FILES[file]
    with pytest.raises(BenchbenchError) as caught:
        read(write_file(folder / file, with_at(value, path, put)))
    assert caught.value.status == 400
    return caught.value.message


@pytest.mark.parametrize("file", FILES)
def test_the_whole_file_is_read(file, tmp_path):
    value, read = FILES[file]
    assert read(write_file(tmp_path / file, value))


@pytest.mark.parametrize(("file", "path", "position", "key"), MUST, ids=[f"{spot}.{key}" for _, _, spot, key in MUST])
def test_missing_required_key_is_named(file, path, position, key, tmp_path):
    declared = at(FILES[file][0], path)
    without = {name: value for name, value in declared.items() if name != key}
    message = refusal_of(tmp_path, file, path, without)
    assert re.fullmatch(rf"{re.escape(position)}( \(query 'q1'\))? is missing the key {key}\.", message)


@pytest.mark.parametrize(("file", "path", "position"), [one[:3] for one in OBJECTS], ids=[one[2] for one in OBJECTS])
def test_unknown_keys_and_non_objects_are_named(file, path, position, tmp_path):
    if file != "corpus.jsonl":  # of a document, it is metadata
        message = refusal_of(tmp_path, file, path, at(FILES[file][0], path) | {"colour": 1})
        assert re.match(
            rf"{re.escape(position)}( \(query 'q1'\))? has the unknown key 'colour': choose one of \w+, ", message
        )
    message = refusal_of(tmp_path, file, path, 7)
    assert re.match(rf"{re.escape(position)}( \(query 'q1'\))?,? (must be an object, not|holds) (a number|7)", message)


JSON_LINES = [{"query_key": 1, "query_text": "red", "doc_ref": {"document_id": "d", "uri": "u"}, "grade": 2}] * 2
SOURCES: dict[str, dict[str, Any]] = {
    "benchbench-json": {"a.json": FULL},
    "benchbench-json, bytes": {"a.json": json.dumps(FULL).encode()},
    "beir": {
        "queries.jsonl": b'{"_id": "q1", "text": "red", "metadata": {"a": 1}}\n{"_id": 2, "text": "blue"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n2\td1\t0\n",
    },
    "trec": {"qrels.txt": QRELS_TXT.encode(), "topics.tsv": TOPICS_TSV.encode()},
    "flowbaby": {"metadata.json": METADATA, "topics.json": TOPICS, "qrels.json": QRELS},
    "sectioned": {"ground_truth.json": TRUTH, "documents/a.json": DOCUMENT},
    "module-queries": {"modules.json": MODULES},
    "quepid-ratings": {"case.csv": tool_samples.QUEPID_CSV.encode()},
    "quepid-ratings, RRE": {"rre.json": tool_samples.RRE},
    "quepid-ratings, lines": {"case.txt": tool_samples.LTR.encode()},
    "quepid-snapshot": {"snapshot.json": tool_samples.SNAPSHOT},
    "rank-eval": {"body.json": tool_samples.RANK_EVAL},
    "opensearch-judgments": {"list.json": tool_samples.JUDGMENTS},
    "opensearch-queries": {"set.json": tool_samples.QUERY_SET},
    "opensearch-queries, lines": {"set.ndjson": tool_samples.QUERY_LINES.encode()},
    "keyed": {"keyed.json": KEYED},
    "query-log": {"log.csv": tool_samples.LOG.encode()},
    "table": {"judged.csv": TABLE.encode()},
    "two-files": {"topics.tsv": TOPICS_TSV.encode(), "judged.csv": b"query_id,doc,rating\nq1,d1,1\n"},
    "table, JSON Lines": {"judged.jsonl": "\n".join(map(json.dumps, JSON_LINES)).encode()},
}


@pytest.mark.fuzz
def test_every_format_is_fuzzed():
    assert {source.partition(",")[0] for source in SOURCES} == set(FORMATS)


@pytest.mark.fuzz
@pytest.mark.parametrize("source", SOURCES)
def test_a_reader_gives_a_dataset_or_a_sentence(source, tmp_path):
    write = writer(tmp_path / "data", SOURCES[source])
    format = source.partition(",")[0]
    assert read_dataset(write([])).source_format == format
    fuzz(lambda path: check(read_dataset(path, format=format)), write)


@pytest.mark.fuzz
@pytest.mark.django_db
@pytest.mark.parametrize("source", SOURCES)
def test_an_import_keeps_all_or_nothing(source, tmp_path):
    def use_case(path: Path) -> None:
        imported = import_dataset(read_dataset(path), name="damaged")
        assert imported.version.queries.count() == imported.report.queries
        assert imported.version.judgments.count() == imported.report.judgments

    write = writer(tmp_path / "data", SOURCES[source])
    import_each(use_case, write, models=(Dataset, DatasetVersion, Query, Judgment))


@pytest.mark.fuzz
@pytest.mark.parametrize("source", SOURCES)
def test_damaged_files_are_read_or_refused_with_a_message(source, tmp_path):
    fuzz(read_dataset, writer(tmp_path / "data", SOURCES[source]), examples=60)


@pytest.mark.fuzz
def test_a_damaged_zip_is_a_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/qrels.txt", QRELS_TXT)
        archive.writestr("data/topics.tsv", TOPICS_TSV)
    content = (tmp_path / "a.zip").read_bytes()
    assert len(read_dataset(tmp_path / "a.zip").queries) == 2
    fuzz(read_dataset, lambda damages: write_file(tmp_path / "a.zip", damaged_bytes(content, damages)))
