"""Logs of queries: grouped, sampled by demand, reported, and imported as a draft."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.formats.query_log import STRATA, read_log
from apps.datasets.formats.reading import detect, read_dataset
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.records import QueryRecord, check
from apps.datasets.versions import hash_content
from tests.commands import json_of, output_of
from tests.datasets.tool_samples import LOG
from tests.datasets.valid import refusal_of
from tests.files.samples import write_file


def test_texts_are_grouped_by_their_normal_form(tmp_path):
    record = read_dataset(write_file(tmp_path / "log.csv", LOG))
    assert record.queries == [
        QueryRecord("shoes", "Shoes", slices=["head"], weight=17.0, metadata={"count": 17, "clicks": 4}),
        QueryRecord("red hat", "red hat", slices=["tail"], weight=3.0, metadata={"count": 3, "clicks": 0}),
        QueryRecord("scarf", "scarf", slices=["tail"], weight=1.0, metadata={"count": 1, "clicks": 0}),
    ]
    assert (record.name, set(record.slice_definitions)) == ("log", set(STRATA))
    assert record.warnings == [
        "Read 6 lines with 25 searches of 4 distinct queries, grouped after Unicode NFKC, case folding and joining "
        "white space.",
        "Left out: 1 query empty (4 searches, 16.0 % of the demand).",
        "The sample (100, seed 0) has 1 of 1 in the head, 0 of 0 in the torso, 2 of 2 in the tail, which were "
        "84.0 % of the demand. Their weights sum to 21 searches.",
        "Clicks are summed in the metadata of each query. They are not turned into grades.",
    ]


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("log.tsv", "term\tn\nred\t2\nblue\t1\n", {"columns": {"text": "term", "count": "n"}}),
        ("log.jsonl", '{"query": "red", "count": 2}\n{"query": "blue", "count": "1", "user": 7}\n', {}),
        ("log.txt", "red\nblue\n\nRED \n", {"format": "query-log"}),
    ],
)
def test_every_kind_of_log_gives_the_same(tmp_path, name, content, options):
    path = write_file(tmp_path / name, content)
    record = read_dataset(path, **{"format": "query-log"} | options)
    assert [(query.key, query.weight) for query in record.queries] == [("red", 2.0), ("blue", 1.0)]
    if not options:
        assert detect(path) == "query-log"


def test_what_must_be_is_left_out_with_numbers(tmp_path):
    lines = ["query,count", f"{'long ' * 50},3", "zero,0", "a\0b,2", "kept,5"]
    record = read_dataset(write_file(tmp_path / "log.csv", "\n".join(lines)))
    facts: Any = record.metadata["query_log"]
    assert facts["left_out"] == {
        "longer than 200 characters": {"queries": 1, "demand": 3},
        "with characters that cannot be stored": {"queries": 1, "demand": 2},
        "with a count of 0": {"queries": 1, "demand": 0},
    }
    assert (facts["lines"], facts["demand"], facts["distinct_queries"]) == (4, 10, 4)
    nothing = write_file(tmp_path / "log.csv", "query,count\n,3\n")
    left_out = "1 query empty (3 searches, 100.0 % of the demand)"
    assert refusal_of(nothing) == f"log.csv has no query to keep. Left out: {left_out}."


@given(st.lists(st.integers(1, 500), min_size=1, max_size=80), st.integers(1, 30), st.integers(0, 50))
def test_weights_sum_to_the_demand_kept(tmp_path_factory, counts, size, seed):
    lines = "".join(f"query {number},{count}\n" for number, count in enumerate(counts))
    path = write_file(tmp_path_factory.mktemp("logs") / "log.csv", f"query,count\n{lines}")
    record = read_log(path, sample=str(size), seed=seed)
    check(record)
    assert sum(query.weight for query in record.queries) == pytest.approx(sum(counts), rel=1e-12)
    facts: Any = record.metadata["query_log"]
    for name, stratum in facts["strata"].items():
        weights = [query.weight for query in record.queries if query.slices == [name]]
        assert sum(weights) == pytest.approx(stratum["demand"], rel=1e-12)
        assert len(weights) == stratum["sampled"] == min(size, stratum["queries"])


def test_a_whole_log_keeps_its_counts(tmp_path):
    path = write_file(tmp_path / "log.csv", "query,count\na,1\nb,5\nc,3\nd,2\n")
    weights = [(query.key, query.weight) for query in read_log(path, sample="all").queries]
    assert weights == [("b", 5.0), ("c", 3.0), ("d", 2.0), ("a", 1.0)]
    assert len(read_log(path, sample="1,1,2").queries) == 4
    seeds = [[query.key for query in read_log(path, sample="1", seed=seed).queries] for seed in range(20)]
    assert len(set(map(tuple, seeds))) > 1
    assert read_log(path, sample="1", seed=3) == read_log(path, sample="1", seed=3)


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("query,count\na,1\nb,many\n", {}, 'log.csv, line 3, has the count "many", which is not a whole number.'),
        ("query,count\na,-1\n", {}, 'log.csv, line 2, has the count "-1", which is not a whole number.'),
        ('{"query": "a", "count": 1}\n{"query": "b"}\n', {}, "log.csv, line 2, has the count null, which is not a"),
        ('{"query": ["a"], "count": 1}\n', {}, 'log.csv, line 1, has the query ["a"]: it must be a text.'),
        ("query,n\na,1\n", {}, "log.csv has no column 'count' for the field 'count': it has query, n. Name the"),
        ("term,n\na,1\n", {}, "log.csv has no column 'text' for the field 'text': it has term, n. Name the"),
        (
            "query,count\na,1\n",
            {"columns": {"count": "n"}},
            "log.csv has no column 'n' for the field 'count': it has query,",
        ),
        (
            "query,count\na,1\n",
            {"columns": {"grade": "n"}},
            "log.csv has no column 'n' for the field 'grade': it has query,",
        ),
        ("query,count\na,1\n", {"sample": "top ten"}, "The sample 'top ten' is unknown: give a number of queries"),
    ],
)
def test_errors_name_line_and_column(tmp_path, content, options, sentence):
    assert refusal_of(write_file(tmp_path / "log.csv", content), format="query-log", **options).startswith(sentence)


@pytest.mark.django_db
class TestImport:
    def test_the_command_imports_and_reports(self, tmp_path):
        path = write_file(tmp_path / "log.csv", LOG)
        facts = json_of("import_dataset", path, "--name", "shop")
        assert facts["queries"] == 3
        assert any(warning.endswith("They are not turned into grades.") for warning in facts["warnings"])
        dataset = Dataset.objects.get(name="shop")
        version = dataset.versions.get()
        assert (version.query_count, version.judgment_count) == (3, 0)
        assert list(Query.objects.values_list("key", "weight", "slices")) == [
            ("shoes", 17.0, ["head"]),
            ("red hat", 3.0, ["tail"]),
            ("scarf", 1.0, ["tail"]),
        ]
        assert (dataset.metadata["query_log"]["demand"], dataset.metadata["query_log"]["seed"]) == (25, 0)
        assert not Judgment.objects.exists()
        text = output_of("import_dataset", path, "--name", "again", "--sample", "1", "--seed", 3)
        assert text.splitlines()[-1].startswith("again v1 (created): 2 queries, 0 judgments")

    def test_a_later_log_is_the_next_version(self, tmp_path):
        first = import_dataset(read_log(write_file(tmp_path / "log.csv", LOG))).version
        record = read_log(write_file(tmp_path / "log.csv", LOG.replace("Shoes,10", "Shoes,20")))
        second = import_dataset(record, next_of=first.dataset).version
        assert (second.number, second.content_hash) == (2, hash_content(record.queries))
        assert [sum(version.queries.values_list("weight", flat=True)) for version in (first, second)] == [21, 31]


@pytest.mark.django_db
def test_the_upload_previews_and_imports(admin_client, tmp_path):
    path = write_file(tmp_path / "log.csv", LOG)
    with path.open("rb") as file:
        page = admin_client.post("/admin/datasets/dataset/preview/", {"file": file, "sample": "1", "seed": "4"})
    text = page.content.decode()
    assert "The sample (1, seed 4) has" in text
    with path.open("rb") as file:
        page = admin_client.post("/admin/datasets/dataset/add/", {"file": file, "sample": "all"}, follow=True)
    assert "as log v1. Next: map the dataset" in page.content.decode()
    assert json.dumps(Dataset.objects.get().metadata["query_log"]["sample"]) == '"all"'
