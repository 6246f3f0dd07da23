"""Flowbaby's datasets and runs, and comparing summaries."""

import json

import pytest

from benchbench.errors import BenchbenchError
from benchbench.files.flowbaby import list_rankings, read_dataset, read_qrels, read_run
from benchbench.files.flowbaby_results import IncomparableSummariesError, Summary, compare_summaries, read_summary
from benchbench.reading.objects import read_as
from tests.files.samples import FLOWBABY_SUMMARY, METADATA, QRELS, TOPICS


def entries(*scored):
    return {
        "run_id": "r",
        "entries": [
            {"query_id": "q1", "canonical_item_id": item, "rank": rank, "score": score} for item, rank, score in scored
        ],
    }


class TestDataset:
    def test_topics_judgments_and_metadata_are_read(self, flowbaby):
        dataset = read_dataset(flowbaby())
        assert dataset.metadata.dataset_id == "golden"
        assert dataset.metadata.canonicalization_version == "v1"
        assert [topic.key for topic in dataset.topics] == ["q1", "q2", "q3"]
        assert [topic.slices for topic in dataset.topics] == [("a", "b"), ("b",), ("default",)]
        assert dataset.qrels == {"q1": {"doc1": 1, "doc2": 1}, "q2": {"doc3": 2, "doc4": 1}, "q3": {"doc5": 1}}
        assert dataset.warnings == ()

    def test_missing_metadata_gets_defaults(self, flowbaby):
        dataset = read_dataset(flowbaby(metadata=None, topics=TOPICS[2:], qrels=[]))
        assert (dataset.metadata.dataset_id, dataset.metadata.version) == ("golden-v1", "1.0")

    def test_it_keeps_the_part_of_a_split(self, flowbaby):
        dataset = read_dataset(flowbaby())
        assert [topic.key for topic in dataset.select_split("train").topics] == ["q3"]
        assert list(dataset.select_split("test").qrels) == ["q1", "q2"]
        with pytest.raises(BenchbenchError, match="golden has no topic in the split 'validation'; its topics are in: "):
            dataset.select_split("validation")

    def test_metadata_contradicting_the_data_gives_warnings(self, flowbaby):
        metadata = METADATA | {"slice_definitions": {"b": ""}}
        topics = [TOPICS[0] | {"expected_positive_count": 3}, *TOPICS[1:]]
        assert read_dataset(flowbaby(metadata=metadata, topics=topics)).warnings == (
            "The slice 'a' is not among the slice_definitions of metadata.json.",
            "The topic 'q1' expects 3 relevant items, and qrels.json has 2.",
        )

    def test_it_counts_judgments_that_are_stated_twice(self, flowbaby):
        assert read_dataset(flowbaby(qrels=[*QRELS, QRELS[0]])).duplicates == 1

    @pytest.mark.parametrize(
        ("remaining", "sentence"),
        [
            ({"topics": None}, r"must contain topics\.json to be a Flowbaby dataset"),
            ({"qrels": None}, r"must contain qrels\.json"),
            ({"topics": []}, r"topics\.json contains no topics"),
            ({"topics": {}}, r"topics\.json must be a list, not an object"),
            ({"topics": [*TOPICS, TOPICS[0]]}, r"topics\.json has the query_id 'q1' more than once"),
            ({"topics": [TOPICS[0] | {"split": "dev"}]}, r"topics\.json\[0\]\.split must be train, validation or tes"),
            ({"topics": [TOPICS[0] | {"slice_ids": "a"}]}, r"topics\.json\[0\]\.slice_ids must be a list"),
            ({"topics": [TOPICS[0] | {"expected_positive_count": -1}]}, "must be an integer from 0"),
            (
                {"topics": [TOPICS[0] | {"expected_positive_count": True}]},
                r"topics\.json\[0\]\.expected_positive_count",
            ),
            ({"topics": [TOPICS[0] | {"query_text": " "}]}, r"topics\.json\[0\]\.query_text must not be blank"),
            ({"qrels": [QRELS[0] | {"relevance": 3}]}, r"qrels\.json\[0\]\.relevance must be 0, 1 or 2"),
            ({"qrels": [QRELS[0] | {"relevance": True}]}, r"relevance must be 0, 1 or 2"),
            ({"qrels": [QRELS[0] | {"query_id": "q9"}]}, r"query_id is 'q9', which topics\.json does not have"),
            (
                {"qrels": [*QRELS, QRELS[0] | {"relevance": 0}]},
                r"qrels\.json\[5\]\.relevance is 0, but item 'doc1' was graded 1 before",
            ),
            (
                {"metadata": {"canonicalization_version": "v2"}},
                "canonicalization version 'v2' is not known; choose one of v1",
            ),
            ({"metadata": {"version": 1.0}}, r"metadata\.json, version must be a string, not a number"),
            ({"metadata": {"slice_definitions": []}}, r"metadata\.json, slice_definitions must be an object"),
            ({"metadata": "{"}, r"metadata\.json is not JSON"),
        ],
    )
    def test_damaged_files_are_refused(self, flowbaby, remaining, sentence):
        with pytest.raises(BenchbenchError, match=sentence):
            read_dataset(flowbaby(**remaining))

    def test_it_reads_judgments_alone(self, written):
        assert read_qrels(written(QRELS, "qrels.json.gz"))["q2"] == {"doc3": 2, "doc4": 1}


class TestRun:
    def test_ranks_and_scores_that_disagree_need_a_word(self, written):
        run = read_run(written(entries(("a", 1, 0.1), ("b", 2, 0.5)), "run.json"))
        with pytest.raises(
            BenchbenchError, match=r"query 'q1', has ranks and scores that disagree.* Order it by rank or"
        ):
            list_rankings(run)
        assert list_rankings(run, order_by="rank") == {"q1": ["a", "b"]}
        assert list_rankings(run, order_by="score") == {"q1": ["b", "a"]}

    def test_a_rank_twice_needs_the_scores(self, written):
        run = read_run(written(entries(("a", 1, 0.1), ("b", 1, 0.5)), "run.json"))
        for order_by in ("agree", "rank"):
            with pytest.raises(BenchbenchError, match="has the rank 1 twice: order it by score"):
                list_rankings(run, order_by=order_by)
        assert list_rankings(run, order_by="score") == {"q1": ["b", "a"]}

    def test_an_item_twice_is_refused(self, written):
        run = read_run(written(entries(("a", 1, 0.5), ("a", 2, 0.1)), "run.json"))
        for order_by in ("agree", "rank", "score"):
            with pytest.raises(BenchbenchError, match="ranks the document 'a' more than once"):
                list_rankings(run, order_by=order_by)

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (json.dumps(entries(("a", 1, float("nan")))), r"run\.json holds NaN, which is not JSON"),
            (entries(("a", 0, 1)), r"run\.json, entries\[0\]\.rank must be an integer from 1"),
            (entries(("a", 1.0, 1)), "rank must be an integer from 1"),
            (entries(("a", 1, "high")), r"entries\[0\]\.score must be a number, not a string"),
            (entries((" ", 1, 1)), r"entries\[0\]\.canonical_item_id must not be blank"),
        ],
    )
    def test_damaged_files_are_refused(self, written, content, sentence):
        with pytest.raises(BenchbenchError, match=sentence):
            read_run(written(content, "run.json"))


def compare(*changes):
    """Compare two summaries, each with what is changed of it."""
    return compare_summaries(*(read_as(Summary, FLOWBABY_SUMMARY | change) for change in changes))


def test_comparison_reports_changed_values():
    later = {"run_id": "two", "git_sha": "def", "metrics": {"mrr": 0.75, "ndcg@5": 0.25}, "duration_ms": 1000}
    comparison = compare({}, later)
    assert {name: owner["difference"] for name, owner in comparison["measures"].items()} == {"mrr": 0.25, "ndcg@5": 0.0}
    assert [(run["id"], run["git_sha"]) for run in comparison["runs"]] == [("one", "abc"), ("two", "def")]
    assert comparison["duration_ms"]["difference"] == -500
    assert comparison["warnings"] == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"dataset_id": "other"}, "different datasets: 'topics' and 'other'"),
        ({}, {"dataset_version": "other"}, "different versions of the dataset: '1.0' and 'other'"),
        ({}, {"canonicalization_version": "other"}, "different versions of the canonical ids: 'v1' and 'other'"),
        ({}, {"evaluation_split": "other"}, "different splits: None and 'other'"),
        ({"profile": "a"}, {"profile": "b"}, "different aggregation profiles: 'a' and 'b'"),
    ],
)
def test_incomparable_summaries_are_refused(before, after, message):
    with pytest.raises(IncomparableSummariesError, match=message):
        compare(before, after)


def test_comparison_warns_of_other_causes_of_change():
    warnings = compare({}, {"query_count": 9, "metrics": {"mrr": 0.5, "map@5": 1}})["warnings"]
    assert "The files count 10 and 9 queries" in warnings[0]
    assert warnings[1] == "Only one of the files has ndcg@5, map@5."
    lost = {"run_id": "nightly", "query_count": 6, "failed_queries": 29}
    (warning,) = compare({"query_count": 6, "failed_queries": 0}, lost)["warnings"]
    assert warning.startswith("nightly: Not ranked: 29 of 35 queries have no value, more than 5 %")
    assert compare({}, {"profile": "flowbaby-1.1"})["measures"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "must be an object, not a list"),
        (FLOWBABY_SUMMARY | {"dataset_id": None}, "is missing the key dataset_id"),
        (FLOWBABY_SUMMARY | {"canonicalization_version": 1}, "canonicalization_version must be a string, not a number"),
        (FLOWBABY_SUMMARY | {"metrics": {"mrr": "high"}}, 'metrics.mrr must be a number, not "high"'),
        (FLOWBABY_SUMMARY | {"metrics": {"mrr": True}}, "metrics.mrr must be a number, not true"),
        (FLOWBABY_SUMMARY | {"duration_ms": "long"}, 'duration_ms must be a number, not "long"'),
    ],
)
def test_invalid_summary_error_names_the_problem(written, content, message):
    with pytest.raises(BenchbenchError, match=rf"^summary\.json,? {message}"):
        read_summary(written(content, "summary.json"))
