"""Who may what: every page, act, endpoint and socket by the least role that is let in, as docs/permissions.md has it.

A new one fails here until its row is written, by BENCHBENCH_WRITE_PERMISSIONS=1 on this module; whoever reviews it
reads the difference. Of a page with a row only those at its border are asked: delete the row of one that changed.
"""

import os
import re
from collections.abc import Iterator
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
from benchbench.asgi import websocket_urlpatterns
from benchbench.site.history import note
from tests.admin.conftest import make_staff  # noqa: F401
from tests.admin.test_isolation import FORMATS, POSTED, owner  # noqa: F401 (a fixture)
from tests.api.test_isolation import operations
from tests.pages import Address, every_address

pytestmark = pytest.mark.thorough

TABLE = Path(settings.BASE_DIR) / "docs" / "permissions.md"
# Each may do what those before it may.
WHO = ("everybody", "staff", "viewer", "judge", "editor", "admin", "superuser")
TITLES = {name: name for name in WHO} | {"nobody": "closed to all"}
HEAD = """# Permissions

The least role that may open a page, do an act, call an endpoint or open a socket: everybody; staff of any role; the
roles of [security.md](security.md); superuser. Each may do what those before it may, on rows that the user can see.
`tests/admin/test_permission_table.py` tries and writes these lists, and fails if one is missing or differs.
"""


def become(user: User, who: str) -> Client:
    """Give a user what a role may, and return what asks as that user."""
    client = Client(raise_request_exception=False)  # of jobs that there are not, for one
    names = list_role_permissions(who) if who in ("viewer", "judge", "editor", "admin") else set()
    keys = {
        f"{row.content_type.app_label}.{row.codename}": row for row in Permission.objects.select_related("content_type")
    }
    user.user_permissions.set([keys[name] for name in names])
    User.objects.filter(pk=user.pk).update(is_superuser=who == "superuser")
    if who != "everybody":
        client.force_login(user)
    return client


def url_of(address: Address) -> str:
    row: Any = address.model._default_manager.order_by("pk").first() if address.model else None
    name = address.name.rpartition(":")[2]
    values = dict.fromkeys(("object_id", "query_id", "id"), getattr(row, "pk", 0))
    values |= {"format": FORMATS.get(name, "benchbench-json"), "document_id": getattr(row, "document_ids", [0])[0]}
    values |= {"item_id": RoundItem.objects.get().pk, "app_label": "benchmarks"}
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


def least(allowed: dict[str, bool], what: str) -> str:
    """Return the first who may, of those who were asked; whoever comes later may too."""
    asked = [who for who in WHO if who in allowed]
    first = next((who for who in asked if allowed[who]), "nobody")
    assert first == "nobody" or all(allowed[who] for who in asked[asked.index(first) :]), (what, allowed)
    return first


def written() -> dict[str, str]:
    """Return who may, by page, as the lists have it."""
    sections = re.findall(r"^### (\w[\w ]*)\n((?:\n?- .+)+)", TABLE.read_text(), re.MULTILINE)
    who = {title: name for name, title in TITLES.items()}
    return {name: who[title] for title, names in sections for name in re.findall(r"^- `(.+)`$", names, re.MULTILINE)}


def to_ask(known: str | None) -> tuple[str, ...]:
    """Return who is asked for a page: the least who may and the last who may not, or all for one without a row."""
    if known is None or known == "nobody":
        return WHO if known is None else WHO[-1:]
    place = WHO.index(known)
    return WHO[max(place - 1, 0) : place + 1]


def rows_of_pages(user: User) -> dict[str, str]:
    allowed: dict[str, dict[str, bool]] = {}
    known = written()
    addresses = sorted(pages(), key=lambda address: "logout" in address.name)  # which is the last thing to do
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        for who in WHO:
            client = become(user, who)
            for address in addresses:
                if who in to_ask(known.get(address.name)):
                    allowed.setdefault(address.name, {})[who] = let_in(client, address)
    return {name: least(told, name) for name, told in sorted(allowed.items())}


def rows_of_acts(user: User) -> dict[str, str]:
    """Actions of lists, and the buttons that do them."""
    allowed: dict[str, dict[str, bool]] = {}
    for who in WHO:
        become(user, who)
        request = RequestFactory().get("/")
        request.user = User.objects.get(pk=user.pk)
        for model, model_admin in admin.site._registry.items():
            offered = model_admin.get_actions(request) if who != "everybody" else {}
            for action in model_admin.actions or ():
                told = allowed.setdefault(f"{model._meta.label_lower}: {action}", {})
                told[who] = (action if isinstance(action, str) else action.__name__) in offered
    return {name: least(told, name) for name, told in sorted(allowed.items())}


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
            who = who_may(view.model, act.permission) if view.permission_classes else "everybody"
            rows[f"{act.method.upper()} {pattern.pattern}"] = who
    return dict(sorted(rows.items(), key=lambda row: row[0].partition(" ")[::-1]))


def who_may(model: type[Model], act: str) -> str:
    acts = ("view", "change") if act == "view" else (act,)
    names = {f"{model._meta.app_label}.{name}_{model._meta.model_name}" for name in acts}
    return next((role for role in WHO[2:-1] if names & list_role_permissions(role)), "superuser")


def rows_of_sockets() -> dict[str, str]:
    role = next(role for role in WHO[2:] if set(PERMISSIONS) & list_role_permissions(role))
    paths = {str(pattern.pattern).rstrip("/") for pattern in websocket_urlpatterns}
    return {f"/{path}" if path else "any other": role if path else "nobody" for path in sorted(paths)}


def lists(title: str, rows: dict[str, str]) -> str:
    parts = [f"## {title}\n"]
    for who in (*WHO, "nobody"):
        names = [
            f"- `{name}`" if name != "any other" else f"- {name}"
            for name, least_who in rows.items()
            if least_who == who
        ]
        parts += [f"### {TITLES[who]}\n", *names[:-1], names[-1] + "\n"] if names else []
    return "\n".join(parts)


def test_permissions_match_the_documented_table(owner: User) -> None:  # noqa: F811
    Group.objects.all().delete()  # the first is asked for: let it be a role, which whoever may see groups sees
    make_roles(apps)
    issue_token(owner, name="ci")
    note(User.objects.create_user("somebody"), [owner], "Looked at.")  # who did something himself is not deleted
    Group.objects.get_or_create(name="team")
    told = "\n".join(
        [
            HEAD,
            lists("Pages of the admin, by name", rows_of_pages(owner)),
            lists("Acts on rows", rows_of_acts(owner)),
            lists("Endpoints, below /api/v2", rows_of_endpoints()),
            lists("Sockets", rows_of_sockets()),
        ]
    )
    if os.environ.get("BENCHBENCH_WRITE_PERMISSIONS"):
        TABLE.write_text(told)
    assert told == TABLE.read_text()


@pytest.mark.parametrize("name", ["viewer", "judge", "editor", "admin"])
def test_no_role_includes_superuser_permissions(name: str) -> None:
    assert written()["django_rq:home"] == written()["admin:auth_group_add"] == "superuser"
    assert not {"auth.add_group", "auth.change_group", "auth.delete_group"} & list_role_permissions(name)
