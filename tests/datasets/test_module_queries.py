"""Reading module queries (SPEC-001)."""

from pathlib import Path
from typing import Any

import pytest

from apps.datasets.formats.registry import detect, read_dataset
from apps.datasets.records import JudgmentRecord, QueryRecord
from tests.datasets.test_readers import MODULES, said
from tests.files.samples import write_file

QUERY: dict[str, Any] = MODULES["benchmark_queries"][0]  # type: ignore[index]


def test_it_reads_queries_with_the_version_as_filter(tmp_path: Path) -> None:
    record = read_dataset(write_file(tmp_path / "modules.json", MODULES))
    assert record.queries == [
        QueryRecord(
            "7",
            "how to log",
            [JudgmentRecord({"document_id": "log"}, 1), JudgmentRecord({"document_id": "trace"}, 1)],
            category="ops",
            difficulty="easy",
            filters={"version": "2.0"},
        )
    ]


def test_a_query_may_be_about_any_of_several_versions(tmp_path: Path) -> None:
    stated = {"queries": [QUERY | {"version": ["16.0", "17.0"]}], "metadata": {"versions": {"16.0": 1, "18.0": 1}}}
    record = read_dataset(write_file(tmp_path / "modules.json", stated))
    assert record.queries[0].filters == {"version": ["16.0", "17.0"]}
    assert record.warnings == (
        "metadata.versions says 1 of '18.0', and there are 0 queries of it.",
        "metadata.versions says nothing of '17.0', and there is 1 query of it.",
    )


def test_counts_that_the_queries_contradict_are_warnings(tmp_path: Path) -> None:
    assert read_dataset(write_file(tmp_path / "modules.json", MODULES)).warnings == (
        "metadata.total_queries says 2, and there is 1 query.",
        "metadata.difficulty_distribution says 1 of 'hard', and there are 0 queries of it.",
        "metadata.difficulty_distribution says nothing of 'easy', and there is 1 query of it.",
    )


def test_it_knows_the_alias_queries(tmp_path: Path) -> None:
    path = write_file(tmp_path / "modules.json", {"queries": [QUERY]})
    assert detect(path) == "module-queries"
    assert read_dataset(path).warnings == ()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "7"}, "benchmark_queries[0].id must be a whole number, not a string."),
        ({"difficulty": "harder"}, 'benchmark_queries[0].difficulty must be easy, medium or hard, not "harder".'),
        ({"expected_modules": []}, "benchmark_queries[0].expected_modules must be a list of one to five modules"),
        ({"expected_modules": list("abcdef")}, "benchmark_queries[0].expected_modules must be a list of one to"),
        ({"expected_modules": ["a", "a"]}, "benchmark_queries[0].expected_modules must be a list of one to five"),
        ({"expected_modules": ["a", " "]}, "benchmark_queries[0].expected_modules must be a list of strings that are"),
        ({"id": True}, "benchmark_queries[0].id must be a whole number, not true."),
        ({"version": []}, "benchmark_queries[0].version must be a version, or a list of versions, each of them once."),
        ({"version": ["1", "1"]}, "benchmark_queries[0].version must be a version, or a list of versions, each of"),
        ({"version": [2.0]}, "benchmark_queries[0].version must be a list of strings that are"),
        ({"version": 2.0}, "benchmark_queries[0].version must be a string, not a number."),
        ({"version": None}, "benchmark_queries[0] lacks the key version."),
    ],
)
def test_its_errors_name_the_key(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = write_file(tmp_path / "m.json", {"benchmark_queries": [QUERY | change]})
    assert said(path, format="module-queries").startswith(sentence)


@pytest.mark.parametrize(
    ("stated", "sentence"),
    [
        ({"benchmark_queries": []}, "m.json, benchmark_queries is empty: a dataset needs at least one query."),
        ({"benchmark_queries": {}}, "m.json, benchmark_queries must be a list, not an object."),
        ({"benchmark_queries": [QUERY], "queries": []}, "m.json has benchmark_queries and its alias queries with diff"),
        ({"benchmark_queries": [QUERY], "metadata": []}, "m.json, metadata must be an object, not a list."),
    ],
)
def test_its_errors_name_the_file(tmp_path: Path, stated: Any, sentence: str) -> None:
    assert said(write_file(tmp_path / "m.json", stated), format="module-queries").startswith(sentence)


def test_a_bare_list_is_refused_by_what_mends_it(tmp_path: Path) -> None:
    """SPEC-002 reads its queries as a list; the file of SPEC-001 has them in an object."""
    path = write_file(tmp_path / "benchmark_queries.json", [QUERY])
    assert said(path) == 'benchmark_queries.json is a list: put it into an object, {"benchmark_queries": […]}.'


def test_an_id_names_one_query(tmp_path: Path) -> None:
    path = write_file(tmp_path / "m.json", {"benchmark_queries": [QUERY] * 2})
    assert said(path) == "m.json has the id 7 more than once: it names one query."
