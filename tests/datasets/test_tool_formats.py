"""Judgments of other tools, read as the tools state them: by hand what each file gives, and its errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.formats.reading import detect, read_dataset
from apps.datasets.records import JudgmentRecord, QueryRecord
from benchbench.errors import BenchbenchError
from benchbench.files.runs import read_run_file
from tests.datasets import tool_samples
from tests.datasets.tool_samples import JUDGMENTS, QUEPID_CSV, QUERY_LINES, QUERY_SET, RANK_EVAL, SNAPSHOT
from tests.datasets.valid import judgments, refusal_of
from tests.files.samples import write_file


def graded(**grades: int) -> list[JudgmentRecord]:
    return [JudgmentRecord({"document_id": document}, grade) for document, grade in grades.items()]


def changed(value: Any, path: tuple[Any, ...], put: Any) -> Any:
    """Return a copy of a JSON value with another part."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = put
    return copy


class TestQuepid:
    def test_ratings_keep_their_scale_and_name_the_unrated(self, tmp_path):
        record = read_dataset(write_file(tmp_path / "case.csv", QUEPID_CSV))
        assert record.queries == [
            QueryRecord("star wars", "star wars", graded(**{"11": 3, "12": 0})),
            QueryRecord("-r disc", "-r disc", graded(**{"13": 10})),
            QueryRecord("star trek", "star trek", []),
        ]
        assert (record.name, record.warnings) == ("case", ["Left out: 1 document without a rating."])

    def test_the_detailed_export_gives_the_same(self, tmp_path):
        lines = [
            "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,price",
            'T,C,1,5"" pipe,7,1,"Red, ""big""",4,2',
            'T,C,1,"5"" pipe, red",7,1,x,1,2',
            "T,C,1,nothing found",
        ]
        record = read_dataset(write_file(tmp_path / "d.csv", "\r\n".join(lines)))
        assert judgments(record) == {
            '5" pipe': {"{'document_id': '7'}": 4},
            '5" pipe, red': {"{'document_id': '7'}": 1},
            "nothing found": {},
        }

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("case.json", tool_samples.QUEPID_JSON),
            ("rre.json", tool_samples.RRE),
            ("case.txt", tool_samples.LTR),
            ("old.txt", tool_samples.LTR_OLD),
            ("titled.txt", tool_samples.LTR_TITLED),
        ],
    )
    def test_other_exports_give_the_same_ratings(self, tmp_path, name, content):
        record = read_dataset(write_file(tmp_path / name, content))
        assert record.source_format == "quepid-ratings"
        grades = judgments(record)
        assert grades["star wars"] == {"{'document_id': '11'}": 3, "{'document_id': '12'}": 0}
        assert grades.keys() <= {"star wars", "star trek"}

    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            (
                "a.txt",
                "2 qid:10 1:0.03 #docid = GX029\n",
                "a.txt, line 1, has no text of its query: write the lines as",
            ),
            ("a.txt", "2 qid:10 1:0.03\n", "a.txt, line 1, has no text of its query"),
            ("a.txt", "2 qid:1 # 7 Rambo\n1 qid:1 # 8 First Blood\n", "a.txt, line 2, has another text than before"),
            ("a.json", {"queries": [{"ratings": {"a": 1}}]}, "a.json, queries[0] has no text of a query: write it as"),
            ("a.json", {"queries": [{"query": "a", "ratings": [1]}]}, "a.json, queries[0] must have an object of"),
            ("a.json", {"queries": [7], "ratings": {}}, "a.json, queries[0] must be an object, not a number."),
            (
                "a.json",
                {"queries": [{"query": "a", "relevant_documents": {"3": [{"id": 1}]}}]},
                "a.json, queries[0], '3', must hold ids of documents, not an object.",
            ),
        ],
    )
    def test_exports_without_texts_are_refused(self, tmp_path, name, content, sentence):
        assert refusal_of(write_file(tmp_path / name, content)).startswith(sentence)

    def test_a_snapshot_gives_ratings_and_needs(self, tmp_path):
        record = read_dataset(write_file(tmp_path / "s.json", SNAPSHOT))
        need = {"quepid_query_id": 205277, "information_need": "A screen for my project."}
        assert record.queries == [
            QueryRecord("projector screen", "projector screen", graded(a=3, z=1), metadata=need),
            QueryRecord("notebook", "notebook", graded(b=0), notes="A laptop.", metadata={"quepid_query_id": 205278}),
        ]
        assert record.name == "no-vector"

    def test_a_snapshot_is_a_run_without_rated_only(self, tmp_path):
        path = write_file(tmp_path / "s.json", SNAPSHOT)
        run = read_run_file(path, {"projector screen", "notebook"})
        ranked = run.rankings["projector screen"]
        assert (list(ranked.documents), ranked.scores.tolist(), ranked.tied) == (["b", "a"], [2.0, 1.0], False)
        assert (list(run.rankings), run.tags, run.format) == (["projector screen"], ("no-vector",), "quepid")
        with pytest.raises(BenchbenchError, match="a Quepid snapshot, which is always in its own order"):
            read_run_file(path, {"notebook"}, order_by="rank")

    def test_a_document_found_twice_is_refused(self, tmp_path):
        twice = changed(SNAPSHOT, ("docs", "205278"), [{"id": "a"}, {"id": "a"}])
        with pytest.raises(BenchbenchError, match=r"s\.json, docs\.205278, has the document 'a' more than once\."):
            read_run_file(write_file(tmp_path / "s.json", twice), {"notebook"})

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (
                "query,docid,rating\na,1,x\n",
                "q.csv, line 2, has the rating 'x', which is not a number: write whole numbers, a higher one where "
                "more is relevant.",
            ),
            ("query,docid,rating\n\na,,1\n", "q.csv, line 3, has no docid for its rating."),
            ("query,docid,rating\n,1,1\n", "q.csv, line 2, has no query."),
            (
                "query,docid,rating\na,1,1\na,1,2\n",
                "q.csv, line 3, rates the document '1' of the query 'a' with 2, but its grade was 1 before: keep one "
                "of the two.",
            ),
            ("query,docid,score\na,1,1\n", "q.csv has no column rating: it has query, docid, score."),
            ("query,docid,rating\na,1,1,7\n", "q.csv, line 2, has 4 cells, but the header has 3."),
        ],
    )
    def test_errors_of_the_csv_name_the_line(self, tmp_path, content, sentence):
        assert refusal_of(write_file(tmp_path / "q.csv", content), format="quepid-ratings") == sentence

    @pytest.mark.parametrize(
        ("path", "put", "sentence"),
        [
            (("queries", 0, "ratings"), {"a": "x"}, 'q.json, queries[0].ratings.a must be a number, not "x".'),
            (("queries", 0, "ratings"), [1], "q.json, queries[0].ratings must be an object, not a list."),
            (("docs",), None, "q.json is missing the key docs."),
            (("queries", 1, "query_text"), " ", "q.json, queries[1].query_text must not be blank."),
            (("queries", 1, "query_text"), "projector screen", "q.json, queries[1].query_text, is that of queries[0]"),
            (("docs", "205277", 0), {"id": ""}, "q.json, docs.205277[0].id must not be blank."),
        ],
    )
    def test_errors_of_the_snapshot_name_the_key(self, tmp_path, path, put, sentence):
        assert refusal_of(write_file(tmp_path / "q.json", changed(SNAPSHOT, path, put))).startswith(sentence)


class TestFractions:
    def test_they_need_a_grade_factor(self, tmp_path):
        path = write_file(tmp_path / "q.csv", "query,docid,rating\na,1,0.75\na,2,1.0\n")
        assert refusal_of(path).startswith(
            "q.csv, line 2, rates the document '1' of the query 'a' with 0.75, and a grade is a whole number: round "
            "the ratings, or import them with a factor, such as 10, under Grade factor."
        )
        assert refusal_of(path, grade_factor=10).startswith(
            "q.csv, line 2, rates the document '1' of the query 'a' with 0.7"
        )
        record = read_dataset(path, grade_factor=100)
        assert record.queries == [QueryRecord("a", "a", graded(**{"1": 75, "2": 100}))]
        assert record.metadata == {"grade_factor": 100}
        assert refusal_of(path, grade_factor=10_001).startswith(
            "The grade factor 10001 is not a number from 1 to 10,000"
        )


class TestRankEval:
    def test_it_reads_requests_and_templates(self, tmp_path):
        record = read_dataset(write_file(tmp_path / "body.json", RANK_EVAL))
        assert record.queries == [
            QueryRecord("amsterdam_query", "amsterdam", graded(doc1=0, doc2=3)),
            QueryRecord("berlin_query", "berlin", graded(doc1=1)),
        ]
        assert (record.warnings, record.source_format) == ([], "rank-eval")

    def test_documents_of_several_indexes_carry_the_index(self, tmp_path):
        body = changed(RANK_EVAL, ("requests", 0, "ratings", 1), {"_index": "other", "_id": "doc1", "rating": 2})
        path = write_file(tmp_path / "body.json", body)
        record = read_dataset(path)
        assert [query.judgments for query in record.queries] == [
            graded(**{"my_index/doc1": 0, "other/doc1": 2}),
            graded(**{"my_index/doc1": 1}),
        ]
        assert record.warnings[0].startswith("Two indexes have documents with one id, so document_id is INDEX/ID")
        unique = changed(body, ("requests", 0, "ratings", 1, "_id"), "doc9")
        record = read_dataset(write_file(tmp_path / "body.json", unique))
        assert (record.queries[0].judgments, record.warnings) == (graded(doc1=0, doc9=2), [])

    @pytest.mark.parametrize(
        ("request_body", "text"),
        [
            ({"query": {"match": {"title": {"query": "red", "operator": "and"}}}}, "red"),
            ({"query": {"multi_match": {"query": " red ", "fields": ["a"]}}}, "red"),
            (
                {
                    "query": {"bool": {"must": [{"match": {"a": "red"}}], "filter": [{"term": {"b": "x"}}]}},
                    "knn": {"query_vector_builder": {"text_embedding": {"model_id": "m", "model_text": "red"}}},
                },
                "red",
            ),
            (
                {"retriever": {"rrf": {"retrievers": [{"standard": {"query": {"query_string": {"query": "red"}}}}]}}},
                "red",
            ),
        ],
    )
    def test_the_only_text_is_the_query(self, tmp_path, request_body, text):
        body = changed(RANK_EVAL, ("requests", 0, "request"), request_body)
        assert read_dataset(write_file(tmp_path / "body.json", body)).queries[0].text == text

    def test_a_choice_of_texts_needs_a_parameter(self, tmp_path):
        several = changed(RANK_EVAL, ("requests", 1, "params"), {"q": "berlin", "field": "text"})
        path = write_file(tmp_path / "b.json", several)
        assert refusal_of(path).startswith(
            "b.json, requests[1], has several texts (berlin, text), with q, field: name the parameter that holds it by "
            "text=PARAMETER, or take the ids for texts by text=id"
        )
        assert [query.text for query in read_dataset(path, columns={"text": "q"}).queries] == ["amsterdam", "berlin"]
        all_ids = read_dataset(path, columns={"text": "id"})
        assert [query.text for query in all_ids.queries] == ["amsterdam_query", "berlin_query"]
        none = changed(RANK_EVAL, ("requests", 0, "request"), {"query": {"match_all": {}}})
        assert refusal_of(write_file(path, none)).startswith(
            "b.json, requests[0], has no text of a query, with no parameter"
        )

    @pytest.mark.parametrize(
        ("path", "put", "sentence"),
        [
            (
                ("requests", 0, "ratings", 0),
                {"_id": "a", "rating": 1},
                "requests[0].ratings[0] is missing the key _index",
            ),
            (("requests", 0, "ratings", 0, "rating"), "x", 'requests[0].ratings[0].rating must be a number, not "x".'),
            (
                ("requests", 1, "id"),
                "amsterdam_query",
                "requests[1], describes the query 'amsterdam_query' differently than before.",
            ),
        ],
    )
    def test_its_errors_name_the_key(self, tmp_path, path, put, sentence):
        message = refusal_of(write_file(tmp_path / "b.json", changed(RANK_EVAL, path, put)))
        assert message.removeprefix("b.json, ").startswith(sentence)


def answer(*sources: Any) -> dict[str, Any]:
    """Return what OpenSearch answers when it shows what it stores."""
    return {"took": 2, "hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": source} for source in sources]}}


class TestOpenSearch:
    def test_judgment_lists_merge_their_queries(self, tmp_path):
        record = read_dataset(write_file(tmp_path / "j.json", JUDGMENTS))
        assert record.queries == [
            QueryRecord("red dress", "red dress", graded(B1=3, B2=0, B3=2)),
            QueryRecord("blue jeans", "blue jeans", graded(B1=1)),
        ]
        assert (record.name, record.description, record.duplicates) == (
            "Imported Judgments",
            "Judgments generated outside SRW",
            1,
        )
        displayed = answer(JUDGMENTS | {"id": "1", "status": "COMPLETED", "type": "LLM_JUDGMENT", "metadata": {}})
        by_model = read_dataset(write_file(tmp_path / "a.json", displayed))
        assert {judgment.source for query in by_model.queries for judgment in query.judgments} == {"llm"}
        from_clicks = read_dataset(write_file(tmp_path / "a.json", JUDGMENTS | {"type": "UBI_JUDGMENT"}))
        assert from_clicks.warnings[0].startswith("These ratings were computed from clicks")

    def test_query_sets_give_queries_alone(self, tmp_path):
        record = read_dataset(write_file(tmp_path / "s.json", QUERY_SET))
        assert record.queries == [
            QueryRecord("tv", "tv", []),
            QueryRecord("led tv", "led tv", []),
        ]
        assert (record.name, list(record.warnings)) == ("TVs", [])
        assert read_dataset(write_file(tmp_path / "a.json", answer(QUERY_SET))).queries == record.queries

    def test_lines_of_queries_may_have_answers(self, tmp_path):
        path = write_file(tmp_path / "queries.ndjson", QUERY_LINES)
        assert detect(path) == "opensearch-queries"
        assert read_dataset(path).queries == [
            QueryRecord("capital of France?", "capital of France?", [], expected_answer="Paris"),
        ]

    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            (
                changed(JUDGMENTS, ("judgmentRatings", 0, "ratings", 1), {"docId": "B"}),
                "judgmentRatings[0].ratings[1] is",
            ),
            (changed(JUDGMENTS, ("judgmentRatings", 1, "query"), ""), "judgmentRatings[1].query must not be blank."),
            (
                changed(JUDGMENTS, ("judgmentRatings", 2, "ratings", 0, "rating"), "1"),
                "judgmentRatings[2].ratings[0], rates the document 'B1' of the query 'red dress' with 1, but "
                "its grade was 3 before: keep one of the two.",
            ),
            (
                answer(JUDGMENTS, JUDGMENTS),
                "x.json is an answer with 2 hits: ask for one by its id.",
            ),
            (
                changed(QUERY_SET, ("querySetQueries", 0), {"text": "tv"}),
                "querySetQueries[0] is missing the key queryT",
            ),
        ],
    )
    def test_errors_name_the_key(self, tmp_path, value, sentence):
        assert refusal_of(write_file(tmp_path / "x.json", value)).removeprefix("x.json, ").startswith(sentence)

    def test_errors_of_lines_name_the_line(self, tmp_path):
        lines = '{"queryText": "a", "referenceAnswer": "b"}\n{"queryText": "a"}\n'
        assert refusal_of(write_file(tmp_path / "q.ndjson", lines)).startswith(
            "q.ndjson, line 2, describes the query 'a' differently than before."
        )
        broken = '{"queryText": "a"}\n{"queryText":\n'
        assert refusal_of(write_file(tmp_path / "q.ndjson", broken)).startswith(
            "q.ndjson, line 2, column 14, is not JSON"
        )


def test_keys_of_long_texts_stay_distinct(tmp_path):
    long = "a" * 300
    record = read_dataset(write_file(Path(tmp_path) / "q.csv", f"query,docid,rating\n{long}b,1,1\n{long}c,1,1\n"))
    keys = [query.key for query in record.queries]
    assert [len(key) for key in keys] == [200, 200]
    assert len(set(keys)) == 2
