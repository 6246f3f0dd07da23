"""Lists of queries, judgments and documents: pages without counting, columns and filters for an engineer of search."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.collections.models import Document
from apps.datasets import searching
from apps.datasets.models import Judgment, Query
from apps.mappings.models import Resolution
from apps.mappings.resolving import resolve
from benchbench.site import lists
from benchbench.site.panels import build_list_url
from tests.factories import make_collection, make_dataset, make_mapping


def read_pages(client: Client, address: str) -> tuple[list[str], str]:
    """Return the links between pages, and what the list says of its rows."""
    page = client.get(address).text
    pager = page.partition('aria-label="Pages"')[2].partition("</nav>")[0]
    extent = re.search(r'bb-extent">([^<]*)</p>', page)
    return re.findall(r">(First|Previous|Next|Page \d+)<", pager), extent[1].strip() if extent else ""


def test_small_lists_have_exact_numbers(admin_client: Client) -> None:
    make_dataset({f"q{number}": [({"document_id": "a"}, 1)] for number in range(81)})
    for model, noun in ((Query, "queries"), (Judgment, "judgments")):
        assert read_pages(admin_client, build_list_url(model)) == (["Page 1", "Next"], f"81 {noun}")


@pytest.mark.parametrize(("few", "queries"), [(10_000, 1000), (1, 1000), (1, 0), (0, 0)])
def test_judgments_are_searched_by_query_and_document(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, few: int, queries: int
) -> None:
    monkeypatch.setattr(searching, "FEW", few)
    monkeypatch.setattr(searching, "MOST_QUERIES", queries)
    judged = {"q1": [({"document_id": "MED-17"}, 2)], "q2": [({"uri": "https://a.example/red.html"}, 1)]}
    dataset = make_dataset(judged, name="F")
    resolve(make_mapping(dataset, make_collection(documents=[{"external_id": "MED-17"}])))
    Query.objects.filter(key="q1").update(text="does tea help sleep")
    Query.objects.filter(key="q2").update(text="what colour are apples")
    hits = {"tea": ["q1"], "Q2": ["q2"], "med-17": ["q1"], "red.html": ["q2"], "apples red": ["q2"], "tea red": []}
    hits |= {
        "document_id": [],
        "uri": [],
        "example": ["q2"],
        '"colour are"': ["q2"],
        '"are colour"': [],
        '"': ["q1", "q2"],
    }
    assert {words: [row[3] for row in listed(admin_client, Judgment, q=words)] for words in hits} == hits
    assert {
        words: [row[1].rpartition(" · ")[2] for row in listed(admin_client, Resolution, q=words)] for words in hits
    } == hits
    assert "document" in admin_client.get(build_list_url(Judgment)).text.partition('placeholder="Words of')[2][:80]


def test_documents_show_their_words_and_length(admin_client: Client) -> None:
    titled = {"external_id": "a", "title": "Tea", "text": "Green tea\n  keeps " + "awake " * 100}
    untitled = {"external_id": "b", "title": "", "text": "Statins and survival " * 20}
    make_collection("Shelf", [titled, untitled])
    with CaptureQueriesContext(connection) as captured:
        first, second = listed(admin_client, Document)
    assert [first[0], first[1][:21], *first[2:4]] == ["Tea", "Green tea keeps awake", "618", "a"]
    assert len(second[0]) <= 92
    assert [second[0][:28], second[1][:7], second[2]] == ["Statins and survival Statins", "Statins", "420"]
    assert not [query for query in captured.captured_queries if '"collections_document"."text",' in query["sql"]]
    assert [row[2] for row in listed(admin_client, Document, o="-3")] == ["420", "618"]


def test_large_list_has_pages_and_about_how_many(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "CHEAP", 0)
    make_collection("Shelf", [{"title": f"row {number}"} for number in range(75)])
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Document._meta.db_table}")
    rows = build_list_url(Document)
    with CaptureQueriesContext(connection) as captured:
        assert read_pages(admin_client, rows) == (["Page 1", "Next"], "about 75 documents")
    assert "9999" not in admin_client.get(rows).text
    assert not [query for query in captured.captured_queries if "COUNT(" in query["sql"].upper()]
    assert read_pages(admin_client, f"{rows}?p=2")[0] == ["First", "Previous", "Page 2", "Next"]
    assert read_pages(admin_client, f"{rows}?p=3") == (["First", "Previous", "Page 3"], "75 documents")
    assert read_pages(admin_client, f"{rows}?q=74") == ([], "1 document")
    assert read_pages(admin_client, f"{rows}?p=9")[1] == ""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE pg_class SET reltuples = 0 WHERE relname = '{Document._meta.db_table}'")
    assert read_pages(admin_client, rows)[1] in ("more than 25 documents", "about 75 documents")


def listed(client: Client, model: type[Query | Judgment | Resolution], **filters: object) -> list[list[str]]:
    pieces = client.get(build_list_url(model, **filters)).text.split("<tbody")[1:]
    rows = [re.findall(r"field-\w+[^>]*>(.*?)</t[dh]>", piece, re.DOTALL) for piece in pieces]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in rows if row]


def test_queries_show_judged_and_relevant_documents(admin_client: Client) -> None:
    judged = {"q1": [({"document_id": "a"}, 2), ({"document_id": "b"}, 0)], "q2": [({"document_id": "a"}, 0)]}
    dataset = make_dataset(judged, name="Fruit")
    dataset.queries.filter(key="q1").update(category="how-to", text="red fruit")
    of_it = {"dataset__id__exact": dataset.pk}
    first, second = listed(admin_client, Query)
    assert first[:5] == ["red fruit", "q1", "2", "1", "how-to"]
    assert second[1:4] == ["q2", "1", "0"]
    assert [row[1] for row in listed(admin_client, Query, relevant="none")] == ["q2"]
    assert [row[1] for row in listed(admin_client, Query, category="how-to", **of_it)] == ["q1"]
    assert "category" in dict(admin_client.get(build_list_url(Query, category="x", **of_it)).context["chips"])
    assert admin_client.get(build_list_url(Query, dataset__id__exact="x")).status_code == 400
    assert [row[:4] for row in listed(admin_client, Judgment, graded="relevant")] == [["a", "2", "red fruit", "q1"]]
    dataset.queries.filter(key="q2").update(until=2)
    assert [len(listed(admin_client, Query, **filters)) for filters in ({}, {"of": "all"})] == [1, 2]
