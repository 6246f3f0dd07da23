"""Documents without a title: by the beginning of their text, which no list loads in full."""

import pytest
from django.test import Client

from apps.collections.models import Document
from benchbench.site.panels import build_list_url
from tests.factories import make_collection

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
