"""Documents as search engines and feeds write them: read as what they are, or refused with a sentence."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apps.collections.sources import open_source
from apps.datasets.formats.reading import read_dataset
from benchbench.errors import BenchbenchError
from tests.files.samples import write_file

PEAR, PLUM = ("1", "Pear", "A green fruit."), ("2", "Plum", "Blue & round.")
ITEM = "<item><guid>{}</guid><title>{}</title><description>{}</description></item>"
TREC = "<DOC>\n<DOCNO> {} </DOCNO>\n<HEADLINE><P>{}</P></HEADLINE>\n<TEXT>\n<P>{}</P>\n</TEXT>\n</DOC>\n"
HITS = [{"_id": id, "_source": {"title": title, "text": text}} for id, title, text in (PEAR, PLUM)]
ROWS = [{"id": id, "title_s": title, "text_t": [text]} for id, title, text in (PEAR, PLUM)]
ESCAPED = (*PLUM[:2], "Blue &amp; round.")
FILES: dict[str, tuple[str, str]] = {
    "TREC": ("la.trec", TREC.format(*PEAR) + TREC.format(*ESCAPED)),
    "TREC as a text on few lines": ("la.txt", (TREC.format(*PEAR) + TREC.format(*ESCAPED)).replace("\n", " ")),
    "TREC in small letters": ("la.sgml", (TREC.format(*PEAR) + TREC.format(*ESCAPED)).replace("DOC", "doc")),
    "TREC without a text tag": (
        "gov.trec",
        "".join(
            f"<DOC><DOCNO>{id}</DOCNO><DOCHDR>HTTP 200</DOCHDR><title>{title}</title><p>{text}</p></DOC>"
            for id, title, text in (PEAR, ESCAPED)
        ),
    ),
    "extracts of Wikipedia": (
        "wiki_00.txt",
        "".join(f'<doc id="{id}" title="{title}">\n{text}\n</doc>\n' for id, title, text in (PEAR, ESCAPED)),
    ),
    "Solr's XML": (
        "add.xml",
        '<?xml version="1.0"?>\n<!-- x --><add>'
        + "".join(
            f'<doc><field name="id">{id}</field><field name="title">{t}</field><field name="text">{x}</field></doc>'
            for id, t, x in (PEAR, ESCAPED)
        )
        + "</add>",
    ),
    "RSS": (
        "feed.rss",
        f'<rss version="2.0"><channel><title>All</title>{ITEM.format(*PEAR)}{ITEM.format(*ESCAPED)}</channel></rss>',
    ),
    "Elasticsearch's answer": ("es.json", json.dumps({"took": 1, "hits": {"total": {"value": 2}, "hits": HITS}})),
    "the same on lines": ("es.json", json.dumps({"took": 1, "hits": {"total": 2, "hits": HITS}}, indent=1)),
    "Solr's answer": ("solr.json", json.dumps({"responseHeader": {}, "response": {"numFound": 2, "docs": ROWS}})),
}


def read(path: Path) -> list[tuple[str, str, str]]:
    return [(each.external_id, each.title, each.text) for each in open_source(path).documents]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_documents_of_engines_and_feeds_are_read(name: str, packed: bool, tmp_path: Path) -> None:
    file_name, content = FILES[name]
    path = write_file(tmp_path / file_name, content)
    if packed:
        path = tmp_path / f"{file_name}.gz"
        path.write_bytes(gzip.compress(content.encode()))
    assert read(path) == [PEAR, PLUM]
    if not packed:
        assert read(tmp_path) == [PEAR, PLUM], "alone in a folder"
        with pytest.raises(BenchbenchError):
            read_dataset(path, is_upload=True)


def test_atom_is_read_in_the_encoding_of_its_bytes(tmp_path: Path) -> None:
    feed = (
        '<?xml version="1.0" encoding="{}"?><feed xmlns="http://www.w3.org/2005/Atom"><id>all</id>'
        '<entry><id>1</id><title>Käse</title><link rel="self" href="no"/><link href="https://example.org/1"/>'
        '<content type="xhtml"><div><p>One</p><p>two <b>é</b></p></div></content></entry>'
        "<entry><id>2</id><title>Brot</title></entry></feed>"
    )
    for declared, codec in (
        ("UTF-8", "utf-8"),
        ("UTF-16", "utf-16"),
        ("ISO-8859-1", "latin-1"),
        ("ISO-8859-1", "utf-8"),
    ):
        (tmp_path / "a.atom").write_bytes(feed.format(declared).encode(codec))
        first, second = open_source(tmp_path / "a.atom").documents
        assert (first.title, first.text.split(), first.uri) == ("Käse", ["One", "two", "é"], "https://example.org/1")
        assert (second.external_id, second.text) == ("2", "")


def test_partial_answers_are_warned_of(tmp_path: Path) -> None:
    answer = {"hits": {"total": {"value": 10_000}, "hits": HITS}}
    source = open_source(write_file(tmp_path / "es.json", answer))
    assert len(list(source.documents)) == 2
    assert source.reading.warnings == ["es.json has 2 of 10,000 documents: ask the engine for the others."]


REFUSED: dict[str, tuple[str, str, str]] = {
    "entities": (
        "a.xml",
        '<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss><item><guid>&b;</guid></item></rss>',
        "a.xml declares entities, which are not read: remove its <!DOCTYPE",
    ),
    "an unknown entity": ("a.xml", "<rss>\n<item>&nbsp;</item></rss>", "a.xml, line 2, is not XML: undefined entity."),
    "cut off": ("a.xml", "<rss><item><guid>1</guid>", "a.xml, line 1, is not XML: no element found."),
    "another XML": ("a.xml", "<html><p>x</p></html>", "In SGML and XML, <DOC> of TREC, <doc> in Solr's <add>, <item>"),
    "an open document": ("a.trec", "\n<DOC><DOCNO>1</DOCNO>", "a.trec, line 2, begins a document without an end"),
    "a document without a number": ("a.trec", "<DOC><TEXT>x</TEXT></DOC>", "has no column of the documents' ids"),
    "words between documents": (
        "a.trec",
        "<DOC><DOCNO>1</DOCNO>\n<TEXT>x</TEXT></DOC>\nhello\n<DOC></DOC>",
        "a.trec, line 3, has words outside of a document: begin each with <DOC>.",
    ),
    "a document within another": (
        "a.xml",
        '<add><doc><field name="id">1</field>\n<doc><field name="id">2</field></doc></doc></add>',
        "a.xml, line 2, begins a document within another",
    ),
    "a page": ("a.html", "<html><p>x</p></html>", "Put texts and pages into a folder, as a .zip to upload them"),
    "topics": ("a.xml", "<topics><topic number='1'><query>x</query></topic></topics>", "holds queries, not documents"),
    "an answer without sources": ("a.json", '{"hits": {"hits": [{"_id": "1", "_score": 1}]}}', "documents' texts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_markup_is_refused_with_a_remedy(name: str, tmp_path: Path) -> None:
    file_name, content, sentence = REFUSED[name]
    with pytest.raises(BenchbenchError) as refused:
        assert read(write_file(tmp_path / file_name, content)), "The source has no documents"
    assert sentence in refused.value.message


def test_entities_of_other_files_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret.dtd").write_text('<!ENTITY x "secret">')
    item = ITEM.format("1", "Pear", "A&nbsp;green &x; fruit.")
    path = write_file(tmp_path / "a.xml", f'<!DOCTYPE rss SYSTEM "secret.dtd"><rss>{item}</rss>')
    assert read(path) == [("1", "Pear", "A\xa0green &x; fruit.")]


def test_several_files_of_markup_are_refused(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write_file(tmp_path / name, TREC.format(*PEAR))
    with pytest.raises(BenchbenchError, match=r"holds several tables: a\.txt, b\.txt"):
        read(tmp_path)


JSON: dict[str, tuple[str, Any]] = {
    "one object on lines": ("a.json", json.dumps({"id": "1", "title": "Pear", "text": PEAR[2]}, indent=1)),
    "a document with hits": ("a.json", {"id": "1", "title": "Pear", "text": PEAR[2], "hits": {"hits": [{"_id": "9"}]}}),
    "a document with a list": (
        "a.jsonl",
        json.dumps({"id": "1", "title": "Pear", "body": PEAR[2], "images": [{"a": 1}]}),
    ),
    "objects by id": ("a.json", {"1": {"title": "Pear", "text": PEAR[2]}}),
    "objects with their id": ("a.json", {"1": {"_id": "1", "title": "Pear", "text": PEAR[2]}}),
    "objects by id on lines": ("a.json", json.dumps({"1": {"title": "Pear", "text": PEAR[2]}}, indent=1)),
    "MongoDB's list": ("a.json", [{"_id": {"$oid": "1"}, "title": "Pear", "text": PEAR[2]}]),
    "MongoDB's lines": ("a.jsonl", json.dumps({"_id": {"$oid": "1"}, "title": "Pear", "text": PEAR[2]}) + "\n"),
    "MongoDB's lines with more": ("a.json", json.dumps({"_id": {"$oid": "1"}, "name": "Pear", "body": PEAR[2]}) + "\n"),
    "rows without ids": ("a.csv", f'title,text\nPear,"{PEAR[2]}"\n'),
    "lines without ids": ("a.jsonl", json.dumps({"title": "Pear", "text": PEAR[2]}) + "\n"),
    "a list called documents": ("a.json", {"documents": [{"id": "1", "title": "Pear", "text": PEAR[2]}]}),
    "a first line with a list": (
        "a.jsonl",
        json.dumps({"nr": "0", "images": [{"id": "9", "text": "no"}]}) + "\n" + json.dumps({"nr": "1"}) + "\n",
    ),
}


@pytest.mark.parametrize("name", JSON)
def test_objects_are_told_from_lists_in_them(name: str, tmp_path: Path) -> None:
    path = write_file(tmp_path / JSON[name][0], JSON[name][1])
    if name != "a first line with a list":
        assert read(path) == [PEAR]
        return
    with pytest.raises(BenchbenchError, match="has no column of the documents' ids: it has nr, images"):
        read(path)


def test_later_keys_of_a_corpus_are_metadata(tmp_path: Path) -> None:
    lines = '{"_id": "1", "text": "x"}\n{"_id": "2", "text": "y", "year": 2020, "v": [0.5], "metadata": {"a": 1}}\n'
    source = open_source(write_file(tmp_path / "corpus.jsonl", lines))
    assert [document.metadata for document in source.documents] == [{}, {"year": 2020, "a": 1}]
    assert source.reading.notes == ["Further keys, which are not searched: year, v."]
