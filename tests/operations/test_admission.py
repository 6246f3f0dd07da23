"""Who may watch operations, from where, and how many at once; and how much one user may have started."""

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from apps.collections.models import Collection
from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations import admission, consumers
from apps.operations.handlers import HANDLERS
from apps.operations.launching import QuotaError
from apps.operations.models import Operation, Status
from apps.retrieval.indexing import build_index, create_index
from benchbench.models import OwnedModel
from tests.created import create_benchmark
from tests.library import make_library
from tests.operations.documented import PAGE
from tests.operations.watched import ALL, aside, path_of, start
from tests.sockets import HOST, closed, in_loop, make_watcher, opened, refused, socket, watching

pytestmark = pytest.mark.django_db(transaction=True)


class TestAdmission:
    def test_users_without_view_access_are_refused(self, handler, staff):
        path = path_of(start(staff))
        visitor = make_watcher("eve", is_staff=False)
        without = User.objects.create_user("kim", is_staff=True)
        former = make_watcher("max", is_active=False)
        stranger = make_watcher("bob")
        codes = ["not_authenticated", "permission_denied", "permission_denied", "not_authenticated", "not_found"]
        hits = [async_to_sync(refused)(socket(path, user)) for user in (None, visitor, without, former, stranger)]
        assert hits == [(code, 1008) for code in codes]
        assert async_to_sync(refused)(socket(ALL)) == ("not_authenticated", 1008)
        assert async_to_sync(refused)(socket(f"{ALL}/{uuid.uuid4()}", staff)) == ("not_found", 1008)

    def test_operation_id_may_be_upper_case(self, handler, staff):
        operation = start(staff)
        message = async_to_sync(opened)(socket(f"{ALL}/{str(operation.pk).upper()}", staff))
        assert (message["type"], message["data"]["operation_id"]) == ("current_state", str(operation.pk))

    @pytest.mark.parametrize("path", ["/ws/operations/1", "/ws/other", "/ws/operations//"])
    def test_any_other_address_is_answered_and_closed(self, staff, path):
        assert async_to_sync(refused)(socket(path, staff)) == ("not_found", 1008)

    def test_it_refuses_a_page_of_another_site(self, handler, staff):
        elsewhere = ("https://evil.example", "http://localhost:3000", f"https://{HOST}", f"http://evil.{HOST}")
        for origin in (*elsewhere, "null", "x", "http://["):
            assert async_to_sync(refused)(socket(ALL, staff, origin=origin)) == ("origin", 4003)

    @pytest.mark.parametrize("origin", [f"http://{HOST}", None, "https://bench.example.org", "https://a.example.net"])
    def test_it_admits_trusted_origins(self, handler, staff, settings, origin):
        settings.CSRF_TRUSTED_ORIGINS = ["https://bench.example.org", "https://*.example.net"]
        assert async_to_sync(opened)(socket(ALL, staff, origin=origin))["type"] == "current_state"

    def test_behind_https_its_own_pages_are_those_of_https(self, handler, staff, settings):
        settings.HTTPS = True
        assert async_to_sync(opened)(socket(ALL, staff, origin=f"https://{HOST}"))["type"] == "current_state"
        assert async_to_sync(refused)(socket(ALL, staff)) == ("origin", 4003)

    @pytest.mark.parametrize("loss", ["session", "active", "staff", "permission", "password", "operation"])
    @in_loop
    async def test_lost_rights_close_the_socket(self, handler, staff, impatient, loss):
        operation = await sync_to_async(start)(staff)

        def lose() -> None:
            if loss == "session":
                Session.objects.all().delete()
            elif loss in ("active", "staff"):
                User.objects.filter(pk=staff.pk).update(**{f"is_{loss}": False})
            elif loss == "permission":
                staff.user_permissions.clear()
            elif loss == "password":
                staff.set_password("another")
                staff.save()
            else:
                Collection.objects.filter(pk=operation.subject_id).update(owner=User.objects.create_user("bob"))

        reason = {"staff": "permission_denied", "permission": "permission_denied", "operation": "not_found"}
        async with watching(path_of(operation), staff) as (watcher, _):
            await aside(lose)
            assert await closed(watcher) == (reason.get(loss, "not_authenticated"), 1008)


class TestLimits:
    @in_loop
    async def test_a_user_has_so_many_sockets(self, handler, staff, settings, impatient):
        settings.BENCHBENCH_SOCKETS_PER_USER = 2
        bob = await sync_to_async(make_watcher)("bob")
        async with watching(ALL, staff) as (first, _):
            async with watching(ALL, staff), watching(ALL, bob):
                third = await sync_to_async(socket)(ALL, staff)
                assert await refused(third) == ("too_many_sockets", 1008)
                assert await first.receive_nothing(timeout=0.5), "those that are open stay open"
            async with watching(ALL, staff):
                pass

    @in_loop
    async def test_a_process_may_hold_so_many_sockets_open(self, handler, staff, settings, monkeypatch):
        monkeypatch.setattr(consumers._Watcher, "open_channels", set())
        settings.BENCHBENCH_SOCKETS_PER_PROCESS = 1
        async with watching(ALL, staff):
            second = await sync_to_async(socket)(ALL, staff)
            assert await refused(second) == ("busy", 1008)
        async with watching(ALL, staff):
            pass

    def test_place_of_a_dead_process_expires(self, handler, staff, settings, monkeypatch):
        settings.BENCHBENCH_SOCKETS_PER_USER = 1
        admission.claim_socket(staff.pk, "of a process that died")
        assert async_to_sync(refused)(socket(ALL, staff)) == ("too_many_sockets", 1008)
        monkeypatch.setattr("apps.operations.admission.KEEP_SECONDS", 0)
        assert async_to_sync(opened)(socket(ALL, staff))["type"] == "current_state"

    @pytest.mark.parametrize(
        ("messages", "code"),
        [([json.dumps({"type": "ping", "with": "ü" * 20})], "message_too_long"), (["{}"] * 4, "too_many_messages")],
    )
    @in_loop
    async def test_message_limits(self, handler, staff, settings, messages, code):
        settings.BENCHBENCH_SOCKET_MAX_BYTES, settings.BENCHBENCH_SOCKET_MESSAGES_PER_MINUTE = 50, 3
        async with watching(ALL, staff) as (watcher, _):
            for message in messages:
                await watcher.send_to(text_data=message)
            assert await closed(watcher) == (code, 1008)


def test_every_code_of_a_refusal_is_documented():
    room = Path(consumers.__file__).parent
    code = "".join((room / name).read_text() for name in ("admission.py", "consumers.py"))
    sent = set(re.findall(r'RefusedError\(\s*"(\w+)"|"code": "(\w+)"|"error", \{"code": "(\w+)"', code))
    codes = {name for names in sent for name in names if name}
    assert {"origin", "busy", "too_many_sockets", "unknown_message", "not_found"} <= codes
    assert codes <= set(re.findall(r"`(\w+)`", PAGE.partition("## Close codes")[2]))


Kind = Operation.Kind
Starts = Callable[..., Any]


def a_benchmark(library: Mapping, owner: User) -> tuple[OwnedModel, Starts]:
    return create_benchmark(library, name="third", matrix={"search_modes": ["sparse"]}, owner=owner), launch


def an_index(library: Mapping, owner: User) -> tuple[OwnedModel, Starts]:
    return create_index(library.collection, name="third", owner=owner), build_index


def a_mapping(library: Mapping, owner: User) -> tuple[OwnedModel, Starts]:
    library.owner = owner
    library.save()
    return library, resolve


@pytest.mark.parametrize(
    ("kind", "expected", "message"),
    [
        (Kind.BENCHMARK, a_benchmark, "benchmarks running"),
        (Kind.INDEX, an_index, "indexes being built"),
        (Kind.RESOLVE, a_mapping, "mappings being resolved"),
    ],
)
def test_a_user_starts_so_many_of_a_kind(db, settings, kind, expected, message):
    setting = HANDLERS[kind].limit
    setattr(settings, setting, 2)
    ada, bob = User.objects.create_user("ada"), User.objects.create_user("bob")
    subject, start = expected(make_library(documents=4, queries=1), ada)
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    before = [subject.updated_at, getattr(subject, "status", None)]
    for status in (Status.RUNNING, Status.PENDING, Status.COMPLETED):
        Operation.objects.create(kind=kind, subject_id=uuid4(), started_by=ada, status=status)
    sentence = f"ada has 2 {message}; a user may have at most 2 .{setting}."
    with pytest.raises(QuotaError, match=sentence):
        start(subject, by=ada)
    with pytest.raises(QuotaError, match=sentence):
        start(subject)  # a command, which acts for the owner
    subject.refresh_from_db()
    assert [subject.updated_at, getattr(subject, "status", None)] == before
    start(subject, by=bob)  # what ada owns counts for bob, who starts it
    assert Operation.objects.get(subject_id=subject.pk).started_by == bob
