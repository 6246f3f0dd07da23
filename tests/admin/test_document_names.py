"""Documents without a title: on every page by the beginning of their text, which no list loads in full."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.collections.models import Document
from benchbench.site.panels import build_list_url, change_url
from tests.admin.addresses import make_world, paths
from tests.factories import make_collection

UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
NAMES = re.compile(r"<a [^>]*href=\"([^\"]*)\"[^>]*>(.*?)</a>|<h[1-4][^>]*>(.*?)</h[1-4]>", re.S)
WORDS = "Of pears, and of when they ripen in a garden that lies to the north of a wall as high as a house is."


@pytest.mark.parametrize(
    ("title", "text", "name"),
    [
        ("Pears", WORDS, "Pears"),
        ("", "\n  Ripe\t pears. ", "Ripe pears."),
        ("", WORDS, f"{WORDS[:90]} …"),
        ("", "梨" * 91, "梨" * 90 + " …"),
        ("", " \n ", "p1"),
    ],
)
@pytest.mark.django_db
def test_a_document_is_named_by_its_title_or_opening(title: str, text: str, name: str) -> None:
    make_collection(documents=[{"external_id": "p1", "title": title, "text": text}])
    assert str(Document.objects.defer("text").get()) == name


@pytest.mark.django_db
def test_a_list_is_searched_by_openings_without_texts(admin_client: Client, django_assert_max_num_queries) -> None:
    make_collection(documents=[{"text": f"Pear {number}. " + "Long. " * 1000} for number in range(30)])
    with django_assert_max_num_queries(26) as captured:
        answer = admin_client.get(build_list_url(Document, q="pear 7"))
    assert "Pear 7. Long." in answer.content.decode()
    assert "Pear 8. Long." not in answer.content.decode()
    assert not [one for one in captured.captured_queries if '"collections_document"."text"' in one["sql"]]


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_no_page_shows_an_id_for_a_name(client: Client) -> None:
    ada = User.objects.create_superuser("ada")
    make_world(ada)
    Document.objects.exclude(text="").update(title="")
    ids = {*Document.objects.exclude(text="").values_list("external_id", flat=True)}
    of_documents = {change_url(document) for document in Document.objects.all()}
    client.force_login(ada)
    count, wrong = 0, []
    for page, path in paths(ada).items():
        if page.startswith("django_rq"):
            continue
        body = client.get(path).content.decode(errors="replace")
        for href, *contents in NAMES.findall(body):
            text = unescape(" ".join(re.sub(r"<[^>]+>", " ", "".join(contents)).split()))
            count += href.partition("?")[0] in of_documents
            if UUID.match(text) or (text in ids and (not href or href.partition("?")[0] in of_documents)):
                wrong.append((page, href, text))
    assert count > 20
    assert wrong == []
