"""Reading tables of judgments, and module queries (SPEC-001)."""

import json
from typing import Any

import pytest

from apps.datasets.formats.reading import detect, read_dataset
from apps.datasets.records import JudgmentRecord, QueryRecord
from benchbench.files.tables import read_table
from tests.datasets.valid import MODULES, TABLE, refusal_of
from tests.files.samples import write_file


class TestTable:
    def test_it_reads_a_row_for_each_judgment(self, tmp_path):
        record = read_dataset(write_file(tmp_path / "judged.csv", TABLE))
        assert record.queries == [
            QueryRecord("q1", "red", [JudgmentRecord({"uri": "u1"}, 1), JudgmentRecord({"uri": "u2"}, 0)]),
            QueryRecord("q2", "blue", []),
        ]
        assert (record.name, record.duplicates) == ("judged", 1)

    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_it_reads_quoted_cells_between_any_delimiter(self, delimiter, tmp_path):
        rows = [["query_key", "query_text", "doc_ref", "grade"], ["q1", '"a\nb"', '"{""document_id"": ""d""}"', "2"]]
        text = "".join(delimiter.join(row) + "\r\n" for row in rows)
        record = read_dataset(write_file(tmp_path / "t.csv", text))
        assert record.queries == [QueryRecord("q1", "a\nb", [JudgmentRecord({"document_id": "d"}, 2)])]

    def test_columns_are_mapped(self, tmp_path):
        path = write_file(tmp_path / "t.csv", "q,question,page,stars,category\n1,red,u,3,colour\n")
        columns = {"query_key": "q", "query_text": "question", "uri": "page", "grade": "stars"}
        assert read_dataset(path, columns=columns).queries == [
            QueryRecord("1", "red", [JudgmentRecord({"uri": "u"}, 3)], category="colour")
        ]
        assert refusal_of(path, columns={"query": "q"}).startswith(
            "'query' is not a field of a table: choose one of query_key,"
        )
        assert refusal_of(path, columns={"grade": "points"}).startswith(
            "t.csv has no column 'points': it has q, question"
        )
        assert refusal_of(path, columns={"query_key": "q"}).startswith(
            "t.csv has no column doc_ref (nor one of document_id, uri, "
        )

    def test_json_lines_keep_their_types(self, tmp_path):
        lines = [
            {"query_key": 1, "query_text": "red", "doc_ref": {"document_id": "d", "uri": "u"}, "grade": 2},
            {"query_key": 1, "doc_ref": "v", "grade": "0"},
        ]
        path = write_file(tmp_path / "t.txt", "\n".join(map(json.dumps, lines)))
        assert read_dataset(path).queries == [
            QueryRecord(
                "1", "red", [JudgmentRecord({"document_id": "d", "uri": "u"}, 2), JudgmentRecord({"uri": "v"}, 0)]
            )
        ]

    @pytest.mark.parametrize(
        ("rows", "sentence"),
        [
            (
                "q1,red,u,1\nq1,red,u,2\n",
                "t.csv, line 3, gives the grade 2, but the document had 1 before: keep",
            ),
            ("q1,red,u,1\nq1,blue,v,2\n", "t.csv, line 3, has another query_text than t.csv, line 2"),
            ("q1,red,u,high\n", 't.csv, line 2, has the grade "high", which is not an integer.'),
            ("q1,red,,1\n", "t.csv, line 2, doc_ref is empty"),
            ("q1,red,u\n", "t.csv, line 2, has 3 cells, but the header has 4."),
            (",red,u,1\n", "t.csv, line 2, has no query_key."),
            ("q1,,u,1\n", "t.csv, line 2, has no query_text for the query 'q1', nor has a later line."),
            ('q1,"re"d,u,1\n', "t.csv, line 2, is not CSV"),
        ],
    )
    def test_its_errors_name_file_and_line(self, tmp_path, rows, sentence):
        assert refusal_of(write_file(tmp_path / "t.csv", "query_key,query_text,uri,grade\n" + rows)).startswith(
            sentence
        )

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("query_key,query_text,uri,uri,grade\n", "t.csv has the column 'uri' more than once: rename one."),
            (
                "query_key,query_text,uri,how\nq1,red,u,1\n",
                "t.csv has no column grade: it has query_key, query_text, uri, how. Say which column holds it, "
                "under Columns. If no column does, add it to the file.",
            ),
            ("query_key,query_text,grade\nq1,red,1\n", "t.csv has no column doc_ref (nor one of document_id, uri, "),
            ("query_key,query_text,doc_ref,grade\nq1,red,{,1\n", "t.csv, line 2, doc_ref is not JSON"),
            (
                'query_key,query_text,doc_ref,grade\nq1,red,"{""url"": ""u""}",1\n',
                "t.csv, line 2, doc_ref has the unknown key 'url'",
            ),
            (b"query_key,query_text,uri,grade\nq1,\x81,u,1\n", "t.csv, line 2, is not UTF-8"),
            ('{"query_key": 1, "query_text": "x", "uri": "u", "grade": 1}\n7\n', "t.csv, line 2, holds a number"),
            ('{"query_key": true, "query_text": "x", "uri": "u", "grade": 1}\n', "t.csv, line 1, query_key must be a"),
            ('{"query_key": 1, "query_text": "x", "uri": "u", "grade": 1.5}\n', "t.csv, line 1, has the grade 1.5, "),
            ("", "t.csv is empty: its first line must be a header with the column names."),
        ],
    )
    def test_its_errors_name_file_and_column(self, tmp_path, content, sentence):
        assert refusal_of(write_file(tmp_path / "t.csv", content), format="table").startswith(sentence)

    def test_unknown_column_is_an_error_unless_ignored(self, tmp_path):
        path = write_file(tmp_path / "t.csv", "query_key,query_text,uri,grade,mood,tone\nq1,red,u,1,x,y\n")
        assert refusal_of(path).startswith(
            "t.csv has a column that holds no field: 'mood', 'tone'. Say under Columns what it holds (FIELD=COLUMN)"
        )
        assert refusal_of(path, ignore=["mood"]).startswith("t.csv has a column that holds no field: 'tone'.")
        assert len(read_dataset(path, columns={"notes": "tone"}, ignore=["mood"]).queries) == 1
        stars = write_file(tmp_path / "s.csv", "query_key,query_text,uri,grade,stars\nq1,red,u,1,2\n")
        assert refusal_of(stars, columns={"grade": "stars"}).startswith(
            "s.csv has a column that holds no field: 'grade'."
        )

    def test_later_lines_may_add_known_fields_only(self, tmp_path):
        lines = [
            {"query_key": "q1", "query_text": "red", "uri": "u", "grade": 1},
            {"query_key": "q1", "uri": "v", "grade": 0, "category": "colour"},
        ]
        path = write_file(tmp_path / "t.jsonl", "\n".join(map(json.dumps, lines)))
        assert read_dataset(path).queries[0].category == "colour"
        write_file(path, "\n".join(map(json.dumps, [lines[0], lines[1] | {"mood": 1}])))
        assert refusal_of(path).startswith("t.jsonl, line 2 has a column that holds no field: 'mood'.")

    @pytest.mark.parametrize("text", ["\n=1", "＝1", "'＋1", "－", "＠SUM"])
    def test_an_exported_cell_is_read_as_it_was(self, tmp_path, text):
        path = write_file(tmp_path / "t.csv", f'text,n\n"\'{text}",1\n')
        assert [row["text"] for _, row in read_table(path)[1]] == [text]

    def test_apostrophe_before_a_formula_is_stripped(self, tmp_path):
        path = write_file(tmp_path / "t.csv", "query_key,query_text,uri,grade\nq1,'=1+1,'u,-1\n")
        assert read_dataset(path).queries == [QueryRecord("q1", "=1+1", [JudgmentRecord({"uri": "'u"}, -1)])]


QUERY: dict[str, Any] = MODULES["benchmark_queries"][0]  # type: ignore[index]


def test_it_reads_queries_with_the_version_as_filter(tmp_path):
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


def test_a_query_may_be_about_any_of_several_versions(tmp_path):
    fields = {"queries": [QUERY | {"version": ["16.0", "17.0"]}], "metadata": {"versions": {"16.0": 1, "18.0": 1}}}
    record = read_dataset(write_file(tmp_path / "modules.json", fields))
    assert record.queries[0].filters == {"version": ["16.0", "17.0"]}
    assert record.warnings == (
        "metadata.versions says 1 of '18.0', but there are 0 queries of it.",
        "metadata.versions says nothing of '17.0', but there is 1 query of it.",
    )


def test_counts_that_the_queries_contradict_are_warnings(tmp_path):
    assert read_dataset(write_file(tmp_path / "modules.json", MODULES)).warnings == (
        "metadata.total_queries says 2, but there is 1 query.",
        "metadata.difficulty_distribution says 1 of 'hard', but there are 0 queries of it.",
        "metadata.difficulty_distribution says nothing of 'easy', but there is 1 query of it.",
    )
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
        ({"version": None}, "benchmark_queries[0] is missing the key version."),
    ],
)
def test_its_errors_name_the_key(tmp_path, change, sentence):
    path = write_file(tmp_path / "m.json", {"benchmark_queries": [QUERY | change]})
    assert refusal_of(path, format="module-queries").startswith(sentence)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"benchmark_queries": []}, "m.json, benchmark_queries is empty: a dataset needs at least one query."),
        ({"benchmark_queries": {}}, "m.json, benchmark_queries must be a list, not an object."),
        ({"benchmark_queries": [QUERY], "queries": []}, "m.json has benchmark_queries and its alias queries with diff"),
        ({"benchmark_queries": [QUERY], "metadata": []}, "m.json, metadata must be an object, not a list."),
    ],
)
def test_its_errors_name_the_file(tmp_path, declared, sentence):
    assert refusal_of(write_file(tmp_path / "m.json", declared), format="module-queries").startswith(sentence)


def test_a_list_and_an_id_twice_are_refused(tmp_path):
    """SPEC-002 reads its queries as a list; the file of SPEC-001 has them in an object."""
    path = write_file(tmp_path / "benchmark_queries.json", [QUERY])
    assert refusal_of(path) == 'benchmark_queries.json is a list: put it into an object, {"benchmark_queries": […]}.'
    path = write_file(tmp_path / "m.json", {"benchmark_queries": [QUERY] * 2})
    assert refusal_of(path) == "m.json has the id 7 more than once: it names one query."
