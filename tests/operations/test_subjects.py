"""Who starts an operation, times who watches it: what it works on decides, by REST, in the admin and by WebSocket."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from apps.accounts.tokens import issue_token
from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.models import OwnedModel
from benchbench.site.panels import build_list_url, change_url
from tests.created import create_benchmark
from tests.factories import make_collection
from tests.library import make_library
from tests.operations.watched import ALL, aside, path_of
from tests.sockets import closed, opened, refused, socket
from tests.staff import MakeStaff

pytestmark = pytest.mark.thorough

API = "/api/v2/operations"


@dataclass
class People:
    """Staff who may do everything to what they see."""

    owner: User
    mate: User  # of the owner's team
    other: User
    overseer: User  # of everything
    sees_all_subjects: User  # and not all operations


@pytest.fixture
def people(make_staff: MakeStaff) -> People:
    result = People(*(make_staff(name) for name in ("owner", "mate", "other", "overseer", "reviewer")))
    result.mate.groups.add(Group.objects.create(name="search"))
    every = Permission.objects.filter(codename__startswith="view_all")
    result.overseer.user_permissions.add(*every)
    result.sees_all_subjects.user_permissions.add(*every.exclude(codename="view_all_operation"))
    return result


@dataclass
class Work:
    """What is worked on, and how to begin that."""

    subject: OwnedModel
    begin: Callable[..., Operation]


def work_on(kind: str, library: Mapping, owner: User) -> Work:
    rows: dict[str, tuple[OwnedModel, Callable[..., Any]]] = {
        "index": (create_index(library.collection, name="another", owner=owner), build_index),
        "benchmark": (create_benchmark(library, name="which", matrix={"search_modes": ["sparse"]}), launch),
        "resolve": (library, lambda mapping, by: resolve(mapping, by=by).operation),
    }
    subject, act = rows[kind]
    subject.owner, subject.team = owner, Group.objects.get(name="search")
    subject.save()
    return Work(subject, lambda by: act(subject, by=by))


def api_sees(client: Client, user: User, operation: Operation) -> list[Any]:
    _, secret = issue_token(user, name=f"token {user.access_tokens.count()}", scope="write")
    as_user = {"Authorization": f"Bearer {secret}"}
    listed = [row["operation_id"] for row in client.get(API, headers=as_user).json()["operations"]]
    return [listed == [str(operation.pk)], client.get(f"{API}/{operation.pk}", headers=as_user).status_code]


def admin_sees(client: Client, user: User, operation: Operation) -> list[Any]:
    """Ask for it in the admin: in the list, by its page and by the bar of its progress."""
    client.force_login(user)
    listed = str(operation.pk) in client.get(build_list_url(Operation)).content.decode()
    page = change_url(operation)
    progress = reverse("admin:operation_progress", args=[operation.pk])
    return [listed, *(client.get(address).status_code for address in (page, progress))]


SEEN, HIDDEN = ([True, 200], [True, 200, 200]), ([False, 403], [False, 404, 404])


@pytest.mark.parametrize("kind", ["index", "resolve", "benchmark"])
def test_operation_visibility_follows_its_subject(client, people, settings, kind):
    work = work_on(kind, make_library(documents=4, queries=1), people.owner)
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    watchers = {people.owner: SEEN, people.mate: SEEN, people.other: HIDDEN, people.overseer: SEEN}
    watchers[people.sees_all_subjects] = SEEN
    for starter in (people.owner, people.mate, None, people.overseer):
        Operation.objects.all().delete()
        operation = work.begin(by=starter)
        assert operation.started_by == (starter or people.owner)
        for watcher, expected in watchers.items():
            assert api_sees(client, watcher, operation) == expected[0], (watcher, starter)
            if starter == people.overseer:
                assert admin_sees(client, watcher, operation) == expected[1], watcher
        cancel_operation(operation)


def an_index(owner: User) -> Index:
    return create_index(make_collection(documents=[{"text": "apple"}]), name="words", owner=owner)


def test_operation_of_a_deleted_subject_is_its_starters_only(client, people):
    index = an_index(people.owner)
    operation = build_index(index, by=people.overseer)
    cancel_operation(operation)
    delete_index(index)
    people.overseer.user_permissions.remove(Permission.objects.get(codename="view_all_operation"))
    assert api_sees(client, people.overseer, operation) == SEEN[0]
    assert (
        api_sees(client, people.owner, operation) == api_sees(client, people.sees_all_subjects, operation) == HIDDEN[0]
    )
    assert admin_sees(client, people.overseer, operation) == SEEN[1]


@pytest.mark.django_db(transaction=True)
def test_an_operation_follows_its_subject_s_owner(client, people, impatient):
    index = an_index(people.owner)
    operation = build_index(index, by=people.overseer)
    watched = ((path_of(operation), people.owner), (ALL, people.owner), (ALL, people.other))
    before, every, theirs = (socket(path, user) for path, user in watched)
    assert async_to_sync(refused)(socket(path_of(operation), people.other)) == ("not_found", 1008)

    async def watch() -> list[Any]:
        facts = [await opened(before), await opened(every), await opened(theirs)]
        await aside(lambda: Index.objects.filter(pk=index.pk).update(owner=people.other))
        assert await closed(before) == ("not_found", 1008)
        await aside(cancel_operation, operation)
        while (news := await theirs.receive_json_from(timeout=60))["data"]["status"] != "cancelled":
            pass
        while not await every.receive_nothing(timeout=0.5):
            assert (await every.receive_json_from())["data"]["status"] == "pending"
        await every.disconnect()
        await theirs.disconnect()
        return [*facts, news]

    first, owners, remaining, news = (message["data"] for message in async_to_sync(watch)())
    assert (first["owner_id"], first["started_by"]) == (people.owner.pk, "overseer")
    assert (owners["total"], remaining["total"]) == (1, 0)
    assert news["operation_id"] == str(operation.pk)
    assert api_sees(client, people.other, operation) == SEEN[0]
    assert api_sees(client, people.owner, operation) == HIDDEN[0]
