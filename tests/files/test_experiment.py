"""Reading experiments: one test for what a file gives, one for each way in which it can be wrong."""

import json

import pytest
import yaml

from benchbench.errors import BenchbenchError
from benchbench.files.experiment import PRESETS, parse_experiment, read_experiment, select_documents
from benchbench.ir.planning.ann import STORES
from tests.damages import damaged_bytes, damaged_value, fuzz
from tests.files.samples import COMPACT_EXPERIMENT, FULL_EXPERIMENT, write_file

MINIMAL = """
id: small
data: {documents_dir: documents, ground_truth_path: ground_truth.json}
embeddings: [{model: all-MiniLM-L6-v2}]
backends: [{name: memory}]
strategies: [{name: flat}]
"""


def read(tmp_path, declared):
    return read_experiment(write_file(tmp_path / "e.yaml", declared))


def changed(**remaining):
    minimal = yaml.safe_load(MINIMAL)
    return {**minimal, **remaining}


def test_it_fills_in_every_default(tmp_path):
    sizes = {"chunk_size": 500, "chunk_overlap": 50, "doc_top_k": 5, "section_top_k": 10}
    assert read(tmp_path, MINIMAL).as_dict() == {
        "id": "small",
        "description": "",
        "data": yaml.safe_load(MINIMAL)["data"] | {"max_documents": None, "max_queries": None},
        "benchmark": {"runs_per_query": 3, "top_k_values": [1, 3, 5, 10], "random_seed": 42},
        "embeddings": [{"model": "all-MiniLM-L6-v2", "provider": "sbert"}],
        "llms": [],
        "backends": [{"name": "memory", "path": None}],
        "strategies": [{"name": "flat", **sizes, "max_layers": 3, "cluster_threshold": 0.1}],
    }


def test_written_experiments_read_back_equal(tmp_path):
    for declared in (MINIMAL, yaml.safe_dump(FULL_EXPERIMENT)):
        experiment = read(tmp_path, declared)
        assert read(tmp_path, experiment.as_yaml()) == experiment
        assert parse_experiment(json.loads(json.dumps(experiment.as_dict())), location="config") == experiment
    assert experiment.as_dict() == FULL_EXPERIMENT
    assert list(yaml.safe_load(experiment.as_yaml())) == list(FULL_EXPERIMENT)


def test_texts_resembling_other_types_are_quoted(tmp_path):
    for text in ("1e5", "1.0e+5", "12e45", "no", "017", "2026-11-22", "null", "~", "0x1F"):
        declared = FULL_EXPERIMENT | {"description": text}
        assert read(tmp_path, parse_experiment(declared, location="config").as_yaml()).description == text


@pytest.mark.parametrize(("name", "documents", "runs"), [("quick_test", 5, 1), ("baseline", 10, 3), ("full", None, 5)])
def test_a_preset_sets_documents_and_repetitions(tmp_path, name, documents, runs):
    experiment = read(tmp_path, yaml.safe_dump(FULL_EXPERIMENT)).apply_preset(name)
    assert name in PRESETS
    assert (experiment.data.max_documents, experiment.benchmark.runs_per_query) == (documents, runs)
    assert (experiment.data.max_queries, experiment.benchmark.top_k_values) == (7, (10, 1))


@pytest.mark.parametrize("name", STORES)
def test_it_may_name_every_store(tmp_path, name):
    assert [backend.name for backend in read(tmp_path, changed(backends=[{"name": name}])).backends] == [name]


@pytest.mark.parametrize(("limit", "expected"), [(1, "bd"), (2, "bd"), (3, "abd"), (4, "abcd"), (9, "abcde")])
def test_expected_documents_are_kept_and_then_the_first_ones(limit, expected):
    assert select_documents("abcde", {"d", "b", "gone"}, limit) == list(expected)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("", "e.yaml must be an object, not null"),
        ("[]", "e.yaml must be an object, not a list"),
        ("id: [", "e.yaml, line 1 cannot be read as YAML"),
        ("id: a\n---\nid: b", "e.yaml, line 2 cannot be read as YAML"),
        (MINIMAL + "id: again", "e.yaml, id occurs twice, the second time in line 7"),
        (
            MINIMAL.replace("{name: flat}", "{name: flat}, {name: flat, chunk_size: 9, chunk_size: 9}"),
            r"e.yaml, strategies\[1\].chunk_size occurs twice",
        ),
        ("a: &x [1]\nb: *x", "e.yaml, b is an alias"),
        ("a: !!python/object:os.system x", "e.yaml, a has a tag: tags are not allowed"),
        ("a: !!int x", "e.yaml, a cannot be read as a value of its type"),
        ("1: x", "e.yaml has a key that is not a text"),
        ("? [a]\n: x", "e.yaml has a key that is not a text"),
        ('a: "\\ud800"', "e.yaml holds a character that cannot be stored"),
        ("[" * 5000, "e.yaml, line 1 cannot be read as YAML: nested deeper than 100"),
        ("- " * 5000, "e.yaml, line 1 cannot be read as YAML: nested deeper than 100"),
        ("a: " + "x" * 100_001, "e.yaml has 100,004 characters; at most 100,000"),
        (b"\xff", "e.yaml is not UTF-8"),
        (b"a: \x01", "e.yaml cannot be read as YAML"),
    ],
)
def test_invalid_or_unsafe_yaml_is_refused(tmp_path, declared, message):
    with pytest.raises(BenchbenchError, match=message):
        read(tmp_path, declared)


@pytest.mark.parametrize(
    ("remaining", "message"),
    [
        ({"id": None}, "e.yaml is missing the key id"),
        ({"id": "../up"}, "e.yaml, id must be up to 100 letters"),
        ({"description": 3}, "e.yaml, description must be a text, not 3"),
        ({"data": {"documents_dir": " ", "ground_truth_path": "g"}}, "e.yaml, data.documents_dir must be a text of 1"),
        (
            {"data": {"documents_dir": "d", "ground_truth_path": "g", "max_documents": 0}},
            "e.yaml, data.max_documents must be a whole number from 1 to 1000000000, not 0",
        ),
        ({"benchmark": {"runs_per_query": True}}, "e.yaml, benchmark.runs_per_query must be a whole number from 1 to"),
        (
            {"benchmark": {"runs_per_query": 2.5}},
            "benchmark.runs_per_query must be a whole number from 1 to 100, not 2",
        ),
        ({"benchmark": {"random_seed": -1}}, "e.yaml, benchmark.random_seed must be a whole number from 0"),
        ({"benchmark": {"top_k_values": []}}, r"e.yaml, benchmark.top_k_values must be a list of diff.*, not \[\]"),
        ({"benchmark": {"top_k_values": [1, 1]}}, "e.yaml, benchmark.top_k_values must be a list of different"),
        ({"benchmark": {"top_k_values": [0]}}, "e.yaml, benchmark.top_k_values must be a list of different"),
        ({"benchmark": {"top_k_values": [1001]}}, "e.yaml, benchmark.top_k_values must be a list of different"),
        ({"embeddings": []}, "e.yaml, embeddings must not be an empty list"),
        ({"embeddings": {"model": "m"}}, "e.yaml, embeddings must be a list"),
        ({"embeddings": [{"model": ""}]}, r"e.yaml, embeddings\[0\].model must be a text of 1 to 500"),
        ({"embeddings": [{"model": "m"}, {"model": "m"}]}, r"e.yaml, embeddings\[1\] repeats embeddings\[0\]"),
        ({"llms": [{"model": "m", "temperature": -1}]}, r"e.yaml, llms\[0\].temperature must be a number from 0 to 10"),
        ({"llms": [{"model": "m", "max_tokens": 0}]}, r"e.yaml, llms\[0\].max_tokens must be a whole number"),
        ({"backends": [{"name": "annoy"}]}, r"e.yaml, backends\[0\].name must be one of memory, .*, not \"annoy\""),
        ({"backends": [{"name": "memory", "path": 3}]}, r"e.yaml, backends\[0\].path must be a text"),
        (
            {"strategies": [{"name": "flat"}, {"name": "flat", "chunk_size": 0}]},
            r"e.yaml, strategies\[1\].chunk_size must be a whole number from 1 to 1000000, not 0",
        ),
        (
            {"strategies": [{"name": "flat", "chunk_size": 100}]},
            r"e.yaml, strategies\[0\].chunk_overlap: The chunk overlap 50 must be at least 0 and less than half",
        ),
        (
            {"strategies": [{"name": "flat", "cluster_threshold": 2}]},
            r"strategies\[0\].cluster_threshold must be a num",
        ),
        ({"strategies": [{"name": "flat", "doc_top_k": 0}]}, r"e.yaml, strategies\[0\].doc_top_k must be a whole"),
        ({"strategies": [{"name": "flat", "section_top_k": 0}]}, r"e.yaml, strategies\[0\].section_top_k must be a wh"),
        (
            {"strategies": [{"name": "flat"}, {"name": "lod_llm"}]},
            r"e.yaml, strategies\[1\] \(lod_llm\) needs a language model: name one in llms",
        ),
        ({"strategies": [{"name": "flat", "max_layers": "3"}]}, r"e.yaml, strategies\[0\].max_layers must be a whole"),
    ],
    ids=str,
)
def test_invalid_values_are_named(tmp_path, remaining, message):
    with pytest.raises(BenchbenchError, match=message):
        read(tmp_path, json.dumps(changed(**remaining)))


def require_same_again(experiment):
    assert parse_experiment(experiment.as_dict(), location="again") == experiment


@pytest.mark.fuzz
def test_it_survives_damaged_bytes(tmp_path):
    content = COMPACT_EXPERIMENT.encode()
    require_same_again(read(tmp_path, content))
    fuzz(
        lambda path: require_same_again(read_experiment(path)),
        lambda damages: write_file(tmp_path / "e.yaml", damaged_bytes(content, damages)),
    )


@pytest.mark.fuzz
def test_it_survives_damaged_values():
    fuzz(
        lambda value: require_same_again(parse_experiment(value, location="e.yaml")),
        lambda damages: damaged_value(FULL_EXPERIMENT, damages),
    )
