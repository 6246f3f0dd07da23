"""Files as people have them: each gives the dataset that they mean, or a sentence with a remedy."""

import zipfile
from pathlib import Path

import pytest

from apps.datasets.formats.reading import read_dataset
from apps.datasets.formats.registry import FORMATS
from apps.datasets.records import DatasetRecord, check
from benchbench.errors import BenchbenchError
from tests.datasets.valid import refusal_of
from tests.files.samples import write_file

PEAR, APPLE = "What is a pear?", "Äpfel im Süden"
ROWS = [(PEAR, "d1", "3"), (PEAR, "d2", "0"), (APPLE, "d3", "1")]


def write_rows(path: Path, header: str, delimiter: str = ",", encoding: str = "utf-8") -> Path:
    lines = [header, *(delimiter.join(row) for row in ROWS)]
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode(encoding))
    return path


def grades(record: DatasetRecord) -> dict[str, dict[str, int]]:
    check(record)
    return {
        query.text: {next(iter(one.doc_ref.values())): one.grade for one in query.judgments} for query in record.queries
    }


MEANT = {PEAR: {"d1": 3, "d2": 0}, APPLE: {"d3": 1}}
TABLES = {
    "query,docid,rating": ",",
    "\ufeffquery;docid;rating": ";",
    "sep=;\r\nQuery;Document;Rating": ";",
    "query_text,document_id,grade": ",",
    "Frage\tDokument\tBewertung": "\t",
    "question;doc;label;;": ";",
    "Search Query,URL,Relevance": ",",
    "keyword,file,score": ",",
}


@pytest.mark.parametrize("header", TABLES)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("name", ["judged.csv", "judged.txt"])
def test_tables_with_common_names_of_columns(header, encoding, name, tmp_path):
    if "\ufeff" in header and encoding != "utf-8":
        pytest.skip("The mark is that of UTF-8.")
    record = read_dataset(write_rows(tmp_path / name, header, TABLES[header], encoding), is_upload=True)
    assert grades(record) == MEANT
    assert [query.key for query in record.queries] == [PEAR, APPLE], "a text is its key"
    assert [("Windows-1252" in note, "UTF-16" in note) for note in record.warnings] == (
        [] if encoding == "utf-8" else [(encoding == "cp1252", encoding != "cp1252")]
    )


def test_further_columns_are_left_out_with_a_note(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("Query;Document;Rating;Comment\npear;d1;1;good\npear;d2;0;bad\n")
    record = read_dataset(path, is_upload=True)
    assert record.warnings == ["Columns that are not read: Comment."]
    assert record.columns == {"Query": "query_text", "Document": "document_id", "Rating": "grade", "Comment": ""}
    assert "holds no field: 'Comment'. Say under Columns what it holds" in refusal_of(path)
    chosen = read_dataset(path, columns={"file_name": "Document"}, ignore=["Comment"])
    assert chosen.queries[0].judgments[0].doc_ref == {"file_name": "d1"}


def test_errors_of_rows_name_the_remedy(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("Query;Document;Rating\npear;d1;0,7\n")
    message = refusal_of(path)
    assert 'judged.csv, line 2, has the grade "0,7", which is not an integer.' in message
    assert "or multiply them, under Grade factor" in message
    assert read_dataset(path, grade_factor=10).queries[0].judgments[0].grade == 7
    path.write_text("Query;Doc name\npear;d1\n")
    assert "has no column grade, no doc_ref" in refusal_of(path)


def test_every_format_is_read_from_detailed_and_plain_quepid(tmp_path):
    path = tmp_path / "case.csv"
    path.write_text('Team Name,Case Name,Query Text,Doc ID,Rating\nShop,Case,"say ""pear""",d1,3\n')
    assert grades(read_dataset(path, is_upload=True)) == {'say "pear"': {"d1": 3}}
    assert {"table", "quepid-ratings"} <= FORMATS.keys()


QUERIES = {
    "queries.jsonl": '{"_id": "q1", "text": "pear"}\n{"_id": "q2", "text": "plum"}\n',
    "topics.tsv": "q1\tpear\nq2\tplum\n",
    "topics.xml": "<top><num>Number: q1<title>pear</top><top><num>q2<title>plum</top>",
    "queries.csv": "id;Frage\nq1;pear\nq2;plum\n",
    "fragen.csv": "query_id,query\nq1,pear\nq2,plum\n",
}
JUDGMENTS = {
    "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\n",
    "qrels.txt": "q1 0 d1 2\n",
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\n",
    "judged.csv": "query_id;Document;Rating\nq1;d1;2\n",
    "grades.tsv": "qid\tdocno\trel\nq1\td1\t2\n",
}


def pack(folder: Path, name: str, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return folder / name


@pytest.mark.parametrize("judgments", JUDGMENTS)
@pytest.mark.parametrize("queries", QUERIES)
def test_queries_and_judgments_come_in_two_files(queries, judgments, tmp_path):
    files = {queries: QUERIES[queries], judgments: JUDGMENTS[judgments]}
    paths = [write_file(tmp_path / Path(name).name, content) for name, content in files.items()]
    record = read_dataset(paths, is_upload=True)
    assert grades(record) == {"pear": {"d1": 2}}
    assert record.warnings == ["Queries without a judgment, left out: q2."]
    assert record.name == " and ".join(path.stem for path in paths)
    deep = pack(tmp_path, "deep.zip", {f"data/x/{name}": content for name, content in files.items()} | {"b": "x"})
    assert grades(read_dataset(deep, is_upload=True)) == {"pear": {"d1": 2}}
    corpus = write_file(tmp_path / "corpus.jsonl", '{"_id": "d1", "title": "Pear", "text": "x"}\n')
    if queries != "queries.csv":
        assert grades(read_dataset([*paths, corpus])) == {"pear": {"d1": 2}}
    one = "q1" if judgments != "queries.csv" else "pear"
    for path, remedy in zip(paths, ("Give the file of their judgments", "choose both files at once"), strict=True):
        if path.suffix != ".csv" and path.name != "grades.tsv":
            assert remedy in refusal_of(path), one


def test_documents_given_as_queries_are_named(tmp_path):
    documents = '{"_id": "d1", "title": "Pear", "text": "a"}\n{"_id": "q9", "title": "", "text": "b"}\n'
    corpus = write_file(tmp_path / "corpus.jsonl", documents)
    assert refusal_of(corpus) == "corpus.jsonl holds documents, not judged queries."
    assert "holds documents" in refusal_of(write_file(tmp_path / "a.jsonl", documents))
    pages = pack(tmp_path, "handbook.zip", {"h/a.md": "# A", "h/b.md": "# B"})
    assert refusal_of(pages) == "handbook holds documents, not judged queries."
    swapped = [corpus, write_file(tmp_path / "qrels.tsv", JUDGMENTS["qrels.tsv"])]
    assert refusal_of(swapped) == "corpus.jsonl holds documents, not judged queries."
    write_file(corpus, '{"_id": "d1", "text": "a"}\n')
    assert refusal_of(swapped).startswith("corpus.jsonl holds the documents that qrels.tsv, line 2 judges, not its")


def test_a_zip_may_hold_one_table_among_pages(tmp_path):
    files = {"docs/a.md": "# A", "docs/b.md": "# B", "judged.csv": "query,path,grade\npear,docs/a.md,1\n"}
    record = read_dataset(pack(tmp_path, "all.zip", files), is_upload=True)
    assert record.queries[0].judgments[0].doc_ref == {"path": "docs/a.md"}
    two = pack(tmp_path, "two.zip", {"a.csv": files["judged.csv"], "b.csv": files["judged.csv"]})
    assert refusal_of(two) == "two holds several datasets: a.csv, b.csv. Leave all but one out."
    assert "rename one" in refusal_of([two, two])


def test_several_splits_are_chosen_by_name(tmp_path):
    files = {"queries.jsonl": QUERIES["queries.jsonl"], "dev.tsv": JUDGMENTS["qrels.tsv"]}
    files["train.tsv"] = JUDGMENTS["qrels.tsv"].replace("q1", "q2")
    paths = [write_file(tmp_path / name, content) for name, content in files.items()]
    with pytest.raises(BenchbenchError, match=r"they are dev\.tsv, train\.tsv\. Choose a split") as refused:
        read_dataset(paths)
    assert refused.value.field == "split"
    assert grades(read_dataset(paths, split="train")) == {"plum": {"d1": 2}}
