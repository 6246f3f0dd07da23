"""Query strings that anybody may write: no page fails of them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.addresses import make_world, paths

pytestmark = pytest.mark.thorough

FIELDS = ("dataset", "collection", "run", "runs", "mapping", "benchmark", "index", "round", "version", "kind", "name")
VALUES = ("x", "%00", "[]", "-1", "9" * 30, "00000000-0000-0000-0000-000000000000")


@pytest.fixture
def pages(transactional_db: None) -> dict[str, str]:
    ada = User.objects.create_superuser("ada")
    make_world(ada)
    return paths(ada)


def asked(client: Client, path: str, **values: Any) -> int:
    return client.get(path, values).status_code


def test_what_is_no_choice_chooses_nothing(pages: dict[str, str]) -> None:
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    adding = {name: path for name, path in pages.items() if name.partition(" ")[0].endswith("_add")}
    assert len(adding) > 8
    for path in adding.values():
        for value in VALUES:
            assert asked(client, path, **dict.fromkeys(FIELDS, value)) == 200, (path, value)


def test_a_nul_is_refused_before_any_page(pages: dict[str, str]) -> None:
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    for path in (path for path in pages.values() if path.startswith("/admin/")):
        for name in ("kind", "status__exact"):
            assert asked(client, path.partition("?")[0], **{name: "\0"}) == 400, path


def test_what_is_ticked_is_an_id(pages: dict[str, str]) -> None:
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    lists = {name: path for name, path in pages.items() if name.endswith("_changelist")}
    assert len(lists) > 15
    for name, path in lists.items():
        for value in ("x", "\0", "9" * 30):
            for action in ("delete_selected", "cancel_selected", "revoke_selected"):
                answer = client.post(path, {"action": action, "_selected_action": [value]})
                assert answer.status_code in (200, 302, 400, 403), (name, value, action)
