"""Who may what: every page, act, endpoint and socket by the least role that is let in, as docs/permissions.md has it.

Staff of any role find no page of rows that others own; `tests/api/test_isolation.py` asks so of the API.

A new one fails here until its row is written, by BENCHBENCH_WRITE_PERMISSIONS=1 on this module; anyone who reviews it
reads the difference. Of a page that has a row, only the role that it names and the one before are asked, which is what
a change moves: permissions of roles include each other.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.template.response import SimpleTemplateResponse
from django.test import Client, RequestFactory
from django.urls import reverse

from apps.accounts.roles import list_role_permissions, make_roles
from apps.accounts.tokens import issue_token
from apps.api import urls
from apps.api.resource import Resource
from apps.judging.models import RoundItem
from apps.operations.consumers import PERMISSIONS
from apps.records.models import QueryResult
from apps.retrieval.models import VectorSpace
from benchbench.asgi import websocket_urlpatterns
from benchbench.site.history import note
from benchbench.site.panels import change_url
from tests.admin.addresses import FORMATS, POSTED
from tests.api.addresses import operations
from tests.factories import ensure_preparation, make_deletion
from tests.pages import Address, every_address
from tests.staff import APPS

pytestmark = pytest.mark.thorough

TABLE = Path(settings.BASE_DIR) / "docs" / "permissions.md"
WRITES = bool(os.environ.get("BENCHBENCH_WRITE_PERMISSIONS"))
# Each may do what those before it may.
ROLES = ("everybody", "staff", "viewer", "judge", "editor", "admin", "superuser")
TITLES = {name: name for name in ROLES} | {"nobody": "closed to all"}
HEAD = """# Permissions

The least role that may open a page, do an act, call an endpoint or open a socket: everybody; staff of any role; the
roles of [security.md](security.md); superuser. Each may do what those before it may, on rows that the user can see.
`tests/admin/test_permission_table.py` tries and writes these lists.
"""


def become(user: User, person: str) -> Client:
    """Give a user what a role may, and return what asks as that user."""
    client = Client(raise_request_exception=False)  # of jobs that do not exist, for one
    names = list_role_permissions(person) if person in ("viewer", "judge", "editor", "admin") else set()
    keys = {
        f"{row.content_type.app_label}.{row.codename}": row for row in Permission.objects.select_related("content_type")
    }
    user.user_permissions.set([keys[name] for name in names])
    User.objects.filter(pk=user.pk).update(is_superuser=person == "superuser")
    if person != "everybody":
        client.force_login(user)
    return client


def url_of(address: Address) -> str:
    row: Any = address.model._default_manager.order_by("pk").first() if address.model else None
    name = address.name.rpartition(":")[2]
    values = dict.fromkeys(("object_id", "query_id", "id"), getattr(row, "pk", 0))
    values |= {"format": FORMATS.get(name, "benchbench-json"), "document_id": getattr(row, "document_ids", [0])[0]}
    values |= {"item_id": RoundItem.objects.get().pk, "app_label": "benchmarks"}
    values |= {"preparation_id": ensure_preparation().pk} if "preparation_id" in address.parameters else {}
    return address.url(lambda parameter: values.get(parameter, 0))


def pages() -> Iterator[Address]:
    seen = set()
    for address in every_address():
        if address.name not in seen:
            seen.add(address.name)
            yield address


def let_in(client: Client, address: Address) -> bool:
    method = client.post if address.name.rpartition(":")[2] in POSTED else client.get
    answer = method(url_of(address))
    login = answer.status_code == 302 and answer["Location"].startswith(reverse("admin:login"))
    return not login and answer.status_code not in (401, 403)


def find_lowest_role(allowed: dict[str, bool], subject: str) -> str:
    """Return the first of the roles that may; each that comes later may too."""
    first = next((role for role, may in allowed.items() if may), "nobody")
    assert list(allowed.values()) == sorted(allowed.values()), (subject, allowed)
    return first


def written() -> dict[str, str]:
    """Return who may, by page, as the lists have it."""
    sections = re.findall(r"^### (\w[\w ]*)\n((?:\n?- .+)+)", TABLE.read_text(), re.MULTILINE)
    user = {title: name for name, title in TITLES.items()}
    return {name: user[title] for title, names in sections for name in re.findall(r"^- `(.+)`$", names, re.MULTILINE)}


def find_open_pages(client: Client, addresses: Iterable[Address]) -> set[str]:
    last = sorted(addresses, key=lambda address: "logout" in address.name)  # which is the last thing to do
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        return {address.name for address in last if let_in(client, address)}


def list_border(role: str | None) -> tuple[str, ...]:
    """Return a documented role and the one before it; all, where none is documented."""
    if role is None:
        return ROLES
    index = (*ROLES, "nobody").index(role)
    return ROLES[max(index - 1, 0) : index + 1]


def rows_of_pages(user: User) -> dict[str, str]:
    documented = {} if WRITES else written()
    requested = {page: list_border(documented.get(page.name)) for page in pages()}
    allowed: dict[str, dict[str, bool]] = {page.name: {} for page in requested}
    for person in ROLES:
        tried = [page for page, roles in requested.items() if person in roles]
        opened = find_open_pages(become(user, person), tried)
        for page in tried:
            allowed[page.name][person] = page.name in opened
    return {name: find_lowest_role(answers, name) for name, answers in sorted(allowed.items())}


def rows_of_acts(user: User) -> dict[str, str]:
    """Actions of lists, and the buttons that do them."""
    allowed: dict[str, dict[str, bool]] = {}
    for person in ROLES:
        become(user, person)
        request = RequestFactory().get("/")
        request.user = User.objects.get(pk=user.pk)
        for model, model_admin in admin.site._registry.items():
            offered = model_admin.get_actions(request) if person != "everybody" else {}
            for action in model_admin.actions or ():
                answer = allowed.setdefault(f"{model._meta.label_lower}: {action}", {})
                answer[person] = (action if isinstance(action, str) else action.__name__) in offered
    return {name: find_lowest_role(message, name) for name, message in sorted(allowed.items())}


def rows_of_endpoints() -> dict[str, str]:
    """By the permission that each method names; `test_isolation` of the API asks them all as everybody."""
    rows = {}
    *endpoints, _ = urls.urlpatterns  # the last finds nothing
    for pattern in endpoints:
        view = getattr(pattern.callback, "cls", None)
        assert view is not None, f"{pattern} is no class, whose permissions could be read"
        if not issubclass(view, Resource):
            rows[f"GET {pattern.pattern}"] = "staff"
        for act in operations(pattern):
            user = who_may(view.model, act.permission) if view.permission_classes else "everybody"
            rows[f"{act.method.upper()} {pattern.pattern}"] = user
    return dict(sorted(rows.items(), key=lambda row: row[0].partition(" ")[::-1]))


def who_may(model: type[Model], act: str) -> str:
    acts = ("view", "change") if act == "view" else (act,)
    names = {f"{model._meta.app_label}.{name}_{model._meta.model_name}" for name in acts}
    return next((role for role in ROLES[2:-1] if names & list_role_permissions(role)), "superuser")


def rows_of_sockets() -> dict[str, str]:
    role = next(role for role in ROLES[2:] if set(PERMISSIONS) & list_role_permissions(role))
    paths = {str(pattern.pattern).rstrip("/") for pattern in websocket_urlpatterns}
    return {f"/{path}" if path else "any other": role if path else "nobody" for path in sorted(paths)}


def lists(title: str, rows: dict[str, str]) -> str:
    pieces = [f"## {title}\n"]
    for user in (*ROLES, "nobody"):
        names = [
            f"- `{name}`" if name != "any other" else f"- {name}"
            for name, least_who in rows.items()
            if least_who == user
        ]
        pieces += [f"### {TITLES[user]}\n", *names[:-1], names[-1] + "\n"] if names else []
    return "\n".join(pieces)


@pytest.mark.long
def test_permissions_match_the_documented_table(owner: User) -> None:
    Group.objects.all().delete()  # the first is asked for: let it be a role, which anyone who may see groups sees
    make_roles(apps)
    issue_token(owner, name="ci")
    make_deletion(owner)
    note(User.objects.create_user("somebody"), [owner], "Looked at.")  # who did something himself is not deleted
    Group.objects.get_or_create(name="team")
    text = "\n".join(
        [
            HEAD,
            lists("Pages of the admin, by name", rows_of_pages(owner)),
            lists("Acts on rows", rows_of_acts(owner)),
            lists("Endpoints, below /api/v2", rows_of_endpoints()),
            lists("Sockets", rows_of_sockets()),
        ]
    )
    if WRITES:
        TABLE.write_text(text)
    assert text == TABLE.read_text()


def test_other_users_are_let_in_as_everybody(owner: User) -> None:
    guest = Client(raise_request_exception=False)
    guest.force_login(User.objects.create_user("guest"))
    names = {page.name for page in pages()}
    assert find_open_pages(guest, pages()) == {name for name, role in written().items() if role == "everybody"} & names


def ask_all(client: Client, *, posting: bool = False) -> Iterator[tuple[Address, Any]]:
    """Ask for every page of our models; yield it with the answer."""
    for address in every_address():
        if address.model and address.model._meta.app_label in APPS:
            is_posted = posting or address.name.rpartition(":")[2] in POSTED
            yield address, (client.post if is_posted else client.get)(url_of(address))


def test_rows_of_other_owners_are_not_found(client_of_ada: Client, owner: User) -> None:
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        statuses = {
            address.name: answer.status_code
            for address, answer in ask_all(client_of_ada)
            if {"object_id", "query_id"} & set(address.parameters) and address.model is not VectorSpace
        }
    assert len(statuses) > 60
    assert statuses == dict.fromkeys(statuses, 404)


def test_a_form_of_another_site_is_accepted_nowhere(owner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    for address, answer in ask_all(client, posting=True):
        assert answer.status_code == 403, address
        assert "Nothing was changed" in answer.content.decode(), address


def test_alternative_spellings_of_an_id_open_the_same_page(client: Client, owner: User) -> None:
    client.force_login(owner)
    result = QueryResult.objects.get()
    for row, another in ((result.run, str(result.run_id).upper()), (result, f"+{result.pk}")):
        (usual,) = client.get(change_url(row)).templates[:1]
        assert client.get(change_url(row).replace(str(row.pk), another)).templates[0].name == usual.name


def test_roles_include_each_other_and_no_superuser_permissions() -> None:
    assert written()["django_rq:home"] == written()["admin:auth_group_add"] == "superuser"
    for less, more in pairwise(map(list_role_permissions, ROLES[2:-1])):
        assert less < more
    assert not {"auth.add_group", "auth.change_group", "auth.delete_group"} & more
