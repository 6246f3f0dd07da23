"""The pages of the queues, which show and delete the jobs of everybody."""

import django_rq
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from benchbench.urls import queue_pages
from tests.admin.conftest import MakeStaff

HOME = "/admin/rq/"


def addresses() -> list[str]:
    """Return an address of each page."""
    job = django_rq.get_queue("default", commit_mode="auto").enqueue("apps.operations.working.work_batch", 0)
    values = {
        **dict.fromkeys(("queue_index", "scheduler_index", "connection_index"), 0),
        **{"job_id": job.id, "result_id": "1", "key": "w", "scheduler_name": "s", "cron_job_name": "c", "token": "t"},
    }
    return [
        reverse(f"django_rq:{page.name}", kwargs={name: values[name] for name in page.pattern.regex.groupindex})
        for page in queue_pages()
    ]


def test_staff_are_refused_every_page_and_see_no_link(client: Client, make_staff: MakeStaff) -> None:
    client.force_login(make_staff("ada"))
    found = [ask(address).status_code for address in addresses() for ask in (client.get, client.post)]
    assert (set(found), len(found) > 40) == ({403}, True)
    assert HOME not in client.get(reverse("admin:index")).content.decode()
    assert django_rq.get_queue("default").count == 1


def test_nobody_else_gets_anything_of_them(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("visitor"))
    assert {client.get(address).status_code for address in addresses()} == {403}
    client.logout()
    for address in addresses():
        answer = client.get(address)
        assert answer.status_code in (302, 401) or answer.json()["error"], address


def test_superusers_have_them_and_the_link(admin_client: Client) -> None:
    assert HOME in admin_client.get(reverse("admin:index")).content.decode()
    home = admin_client.get(HOME)
    assert home.status_code == 200
    assert reverse("django_rq:home_json") in home.content.decode()
    for name in ("jobs", "failed_jobs", "workers"):
        assert admin_client.get(reverse(f"django_rq:{name}", args=[0])).status_code == 200


def test_there_is_no_second_set_of_them() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("admin:django_rq_home")
