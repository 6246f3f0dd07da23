"""Judgments in lists: the title of the document with each reference, where a mapping that the user sees has it."""

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.models import Judgment
from apps.mappings.resolving import resolve
from benchbench.site.panels import build_list_url, change_url
from tests.drafts import set_judgment
from tests.factories import make_collection, make_dataset, make_mapping
from tests.staff import MakeStaff

OPENING = "Statins and survival after a stroke"
pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    """A superuser, signed in, who has a dataset and its mapped collection; the dataset is everybody's."""
    owner = User.objects.create_superuser("ada")
    dataset = make_dataset({"q1": [({"document_id": name}, 1) for name in ("a", "b", "tea/Oolong", "x")]})
    documents = [{"external_id": "a", "title": "Green tea"}, {"external_id": "b", "title": "", "text": OPENING}]
    documents.append({"external_id": "tea/Oolong", "title": "Oolong"})
    resolve(make_mapping(dataset, make_collection(documents=documents, owner=owner), owner=owner))
    client.force_login(owner)
    return owner


def test_judgments_are_listed_with_their_documents_titles(owner: User, client: Client, django_assert_max_num_queries):
    with django_assert_max_num_queries(26) as captured:
        page = client.get(build_list_url(Judgment)).text
    assert "a · Green tea" in page
    assert f"b · {OPENING}" in page
    assert "x ·" not in page
    assert "tea/Oolong ·" not in page, "the reference has the title"
    assert not [one for one in captured.captured_queries if '"collections_document"."text"' in one["sql"]]


def test_changed_judgments_show_their_documents_titles(owner: User, client: Client) -> None:
    dataset = Judgment.objects.first().query.dataset
    for name in ("a", "tea/Oolong"):
        set_judgment(dataset, "q1", {"document_id": name}, 0)
    draft = dataset.versions.get(number=2)
    for address in (change_url(draft), reverse("admin:dataset_freeze", args=[dataset.pk])):
        answer = client.get(address).text
        assert "Green tea" in answer, address
        assert "Oolong</small>" not in answer, "the reference has the title"


def test_titles_of_hidden_collections_are_not_shown(owner: User, client: Client, make_staff: MakeStaff) -> None:
    client.force_login(make_staff("ben"))
    page = client.get(build_list_url(Judgment)).text
    assert "What is q1?" in page
    assert "Green tea" not in page


def test_judgments_show_their_documents_titles_on_their_pages(
    owner: User, client: Client, make_staff: MakeStaff
) -> None:
    pages = [change_url(judgment) for judgment in Judgment.objects.order_by("pk")]
    for page, words in zip(pages, ("a · Green tea", f"b · {OPENING}", "tea/Oolong", "x"), strict=True):
        answer = client.get(page).text
        assert words in answer
        assert "What is q1?" in answer
    assert "tea/Oolong ·" not in client.get(pages[2]).text, "the reference has the title"
    client.force_login(make_staff("ben"))
    page = client.get(pages[0]).text
    assert "q1" in page
    assert "Green tea" not in page


def test_previews_show_titles_of_the_chosen_collection(owner: User, client: Client, make_staff: MakeStaff) -> None:
    table = b"query,document,grade\nleaves,a,1\nstroke,b,1\nshop,tea/Oolong,1\nlost,x,1\n"
    collection = Collection.objects.get()

    def preview(chosen: Collection | str) -> str:
        files = {"queries": SimpleUploadedFile("judged.csv", table)}
        return " ".join(client.post(reverse("admin:evaluation_preview"), files | {"collection": chosen}).text.split())

    page = preview(collection.pk)
    assert ": a, “Green tea”, grade 1" in page
    assert f": b, “{OPENING}”, grade 1" in page
    assert ": tea/Oolong, grade 1" in page
    assert ": x, grade 1" in page
    assert "Green tea" not in preview("")
    ben = make_staff("ben")
    Collection.objects.update(owner=ben)
    client.force_login(ben)
    assert ": a, “Green tea”, grade 1" in preview(collection.pk)
    ben.user_permissions.remove(Permission.objects.get(codename="view_document"))
    assert ": a, grade 1" in preview(collection.pk)
