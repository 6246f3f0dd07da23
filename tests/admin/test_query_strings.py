"""Query strings that anybody may write: no page fails of them."""

import sys
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import QueryDict
from django.template.response import SimpleTemplateResponse
from django.test import Client

from apps.datasets.models import Query
from benchbench.site.panels import build_list_url
from tests.admin.addresses import make_world, paths, queries_of, rows_of, value_of
from tests.pages import every_address

FIELDS = ("dataset", "collection", "run", "runs", "mapping", "benchmark", "index", "round", "version", "kind", "name")
VALUES = ("x", "%00", "[]", "-1", "9" * 30, "00000000-0000-0000-0000-000000000000")
LONG = "9" * 5_000  # int() refuses more than 4,300 digits
LOOKUPS = ("exact", "in", "gte", "isnull", "contains")
CALLERS = 5  # of a reading; readings with other callers are different ones
Reading = tuple[Any, ...]  # the parameter, and the code and line of each caller
NOT_GET = ("logout", "stop_job", "confirm_action", "actions", "view_on_site")


@pytest.fixture
def client(transactional_db: None) -> Client:
    """Return what asks as a superuser, and hands back the answer where a page fails."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.fixture
def pages(client: Client) -> dict[str, str]:
    ada = User.objects.get(username="ada")
    make_world(ada)
    return paths(ada)


def status_of(client: Client, path: str, **values: Any) -> int:
    return client.get(path, values).status_code


def columns() -> Iterator[tuple[str, Any]]:
    """Yield every column of every list, with the address of the list."""
    for model in admin.site._registry:
        for field in model._meta.concrete_fields:
            yield build_list_url(model), field


@contextmanager
def readings() -> Iterator[dict[str, set[Reading]]]:
    """Collect the names of the parameters that pages look for, and the lines of code that do."""
    hits: dict[str, set[Reading]] = defaultdict(set)

    def recording(method: Any) -> Any:
        def read(self: QueryDict, key: Any, *args: Any) -> Any:
            if isinstance(key, str):
                callers = islice(traceback.walk_stack(sys._getframe(1)), CALLERS)
                hits[key].add((key, *((frame.f_code, line) for frame, line in callers)))
            return method(self, key, *args)

        return read

    stored = {name: getattr(QueryDict, name) for name in ("__getitem__", "__contains__", "getlist")}
    with patch.multiple(QueryDict, **{name: recording(method) for name, method in stored.items()}):
        yield hits


def test_invalid_list_filter_is_explained(client: Client) -> None:
    for asked_for in ("slices__gte=x", "id=x", "dataset__owner__password=x"):
        page = client.get(f"{build_list_url(Query)}?{asked_for}")
        assert page.status_code == 400
        assert "The list of queries cannot be filtered by " in page.content.decode()
        assert asked_for in page.content.decode()


@pytest.mark.thorough
@pytest.mark.long
def test_no_lookup_of_any_column_makes_a_list_fail(client: Client, pages: dict[str, str]) -> None:
    """The first column of each kind gets every lookup, the others one that each of Django's checks refuses."""
    failed, kinds = [], set[type]()
    every = [(lookup, value) for lookup in LOOKUPS for value in ("x", LONG)]
    every += [("exact", ""), ("isnull", ""), ("regex", "["), ("year", LONG[:30])]
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        for path, field in columns():
            few = [("exact", "x"), ("in", LONG), ("isnull", "")]
            tried = few if type(field) in kinds else every
            kinds.add(type(field))
            for lookup, value in tried:
                if status_of(client, path, **{f"{field.name}__{lookup}": value}) >= 500:
                    failed.append((path, field.name, lookup, value[:5]))
    assert not failed


@pytest.mark.thorough
@pytest.mark.long
def test_no_value_of_a_known_parameter_crashes_a_page(client: Client, pages: dict[str, str]) -> None:
    """The first page on which a line of code reads a parameter gets every value, the others LONG."""
    failed, tried = [], set[Reading]()
    for name, path in addresses_read().items():
        with readings() as hits:
            client.get(path)
        bare = path.partition("?")[0]
        for parameter in hits.keys() - {"csrfmiddlewaretoken", "action"}:
            values = (LONG,) if hits[parameter] <= tried else ("", "[]", "-1", LONG)
            tried |= hits[parameter]
            for value in values:
                if status_of(client, bare, **{parameter: value}) >= 500:
                    failed.append((name, parameter, value[:5]))
    assert not failed


def addresses_read() -> dict[str, str]:
    """Return by name a path of every page, part of a page and file; of pages with rows that of one row."""
    hits = {}
    for address in every_address():
        name = address.name.rpartition(":")[2]
        if name in NOT_GET or address.name.startswith("django_rq:"):
            continue
        of_row = {"object_id", "query_id", "id", "item_id"} & set(address.parameters)
        row = rows_of(address)[-1] if of_row and address.model else None
        if of_row and row is None:
            continue
        values = {parameter: value_of(parameter, row) for parameter in address.parameters}
        hits[address.name] = address.url(values.__getitem__) + queries_of(address.name, row)[-1]
    return hits


@pytest.mark.thorough
def test_invalid_choices_select_nothing(client: Client, pages: dict[str, str]) -> None:
    adding = {name: path for name, path in pages.items() if name.partition(" ")[0].endswith("_add")}
    assert len(adding) > 8
    for path in adding.values():
        for value in VALUES:
            assert status_of(client, path, **dict.fromkeys(FIELDS, value)) == 200, (path, value)


@pytest.mark.thorough
def test_a_nul_is_refused_before_any_page(client: Client, pages: dict[str, str]) -> None:
    for path in (path for path in pages.values() if path.startswith("/admin/")):
        for name in ("kind", "status__exact"):
            assert status_of(client, path.partition("?")[0], **{name: "\0"}) == 400, path


@pytest.mark.thorough
def test_invalid_action_ids_never_crash_a_list(client: Client, pages: dict[str, str]) -> None:
    lists = {name: path for name, path in pages.items() if name.endswith("_changelist")}
    assert len(lists) > 15
    for name, path in lists.items():
        for value in ("x", "\0", "9" * 30):
            for action in ("delete_selected", "cancel_selected", "revoke_selected"):
                answer = client.post(path, {"action": action, "_selected_action": [value]})
                assert answer.status_code in (200, 302, 400, 403), (name, value, action)
