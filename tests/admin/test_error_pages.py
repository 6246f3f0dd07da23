"""What pages say where there is nothing, where something is not allowed, and where the server failed."""

import re
import uuid
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse

from apps.api.errors import server_error
from apps.records.models import Benchmark
from benchbench.site.panels import build_list_url, change_url
from tests.factories import make_dataset
from tests.staff import MakeStaff

LEAKS = ("Traceback", "urlconf", "URLconf", "CSRF", "apps.")


def text_of(page: Any) -> str:
    text = page.content.decode()
    assert not [word for word in LEAKS if word in text]
    return re.sub(r"\s+", " ", text)


def test_unknown_address_shows_a_404_inside_the_shell(client_of_ada: Client) -> None:
    page = client_of_ada.get("/admin/nothing/")
    assert page.status_code == 404
    assert "This page does not exist." in text_of(page)
    assert build_list_url(Benchmark) in text_of(page), "the sidebar"
    page = client_of_ada.get(change_url(Benchmark, uuid.UUID(int=0)))
    assert page.status_code == 404
    assert f"The benchmark {uuid.UUID(int=0)} does not exist, or is hidden from you: ask its owner" in text_of(page)


@pytest.mark.django_db
def test_anonymous_visitor_sees_no_shell() -> None:
    page = Client().get("/nothing/<script>")
    assert page.status_code == 404
    assert "This page does not exist." in text_of(page)
    assert reverse("admin:index") in text_of(page)
    assert "_changelist" not in text_of(page)
    assert build_list_url(Benchmark) not in text_of(page)
    assert "nothing/<script>" not in text_of(page)


def test_forbidden_page_links_back(client: Client, make_staff: MakeStaff) -> None:
    client.force_login(make_staff("new", may=()))
    for referer, leads in (
        ("http://testserver/admin/", True),
        ("https://elsewhere.example/", False),
        (f"http://testserver{build_list_url(Benchmark)}", False),
        ("", False),
    ):
        page = client.get(build_list_url(Benchmark), headers={"Referer": referer})
        assert page.status_code == 403
        assert "You may not view benchmarks. Ask an administrator for the role viewer, editor or admin." in text_of(
            page
        )
        assert (">Back</a>" in text_of(page)) == leads, referer


def test_refusals_say_which_permission_is_missing(client: Client, make_staff: MakeStaff) -> None:
    viewer = make_staff("viewer", may=())
    viewer.groups.add(Group.objects.get(name="viewer"))
    client.force_login(viewer)
    dataset = make_dataset({"q": [("d1", 1)]})
    needs_editor = "Ask an administrator for the role editor or admin."
    for address, sentence in (
        (reverse("admin:benchmarks_benchmark_add"), f"You may not add benchmarks. {needs_editor}"),
        (reverse("admin:new_evaluation"), f"You may not add collections. {needs_editor}"),
        (reverse("admin:datasets_dataset_delete", args=[dataset.pk]), f"You may not delete datasets. {needs_editor}"),
        (
            reverse("admin:my_grades"),
            "You may not add grades. Ask an administrator for the role judge, editor or admin.",
        ),
        (build_list_url(LogEntry), "You may not view log entries. Only superusers may."),
    ):
        page = client.get(address)
        assert page.status_code == 403, address
        assert sentence in text_of(page)
    hidden = make_dataset({"q": [("d1", 1)]}, name="hidden", owner=User.objects.create_user("grace"))
    assert client.get(reverse("admin:datasets_dataset_delete", args=[hidden.pk])).status_code in (403, 404)
    assert client.get(change_url(hidden)).status_code == 404, "what is hidden does not exist"


def test_refusal_can_include_a_reason(client_of_ada: Client) -> None:
    page = client_of_ada.get("/admin/rq/")
    assert page.status_code == 403
    assert "Only superusers can open the queues" in text_of(page)


@pytest.mark.django_db
def test_form_without_a_csrf_token_is_explained() -> None:
    fields = {"username": "ada", "password": "secret"}
    page = Client(enforce_csrf_checks=True).post(reverse("admin:login"), fields)
    assert page.status_code == 403
    assert "Nothing was changed" in text_of(page)
    assert "secret" not in text_of(page)


@pytest.mark.django_db
def test_server_error_page_needs_no_database(
    rf: RequestFactory, caplog: pytest.LogCaptureFixture, django_assert_num_queries: Any
) -> None:
    request: HttpRequest = rf.get("/admin/")
    with django_assert_num_queries(0):
        page = server_error(request)
    assert page.status_code == 500
    reference = re.search(r"<code>(\w{32})</code>", text_of(page))
    assert reference is not None
    assert reference[1] in caplog.text
    assert "src=" not in text_of(page)


def test_oversized_form_is_explained(client_of_ada: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    page = client_of_ada.post(reverse("admin:accounts_accesstoken_add"), {"name": "x" * 2000})
    assert page.status_code == 413
    assert "the form is larger than the site accepts" in text_of(page)
