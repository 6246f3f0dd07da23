"""The bin while several users delete, restore, empty and create at the same moment, each in a session of their own."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from apps.accounts.bin import empty, keep_deleted, restore
from apps.accounts.models import Deletion
from apps.collections.models import Collection
from apps.judging.grading import grade_item
from apps.judging.models import Grade
from apps.mappings.creating import create_mapping
from benchbench.database.failures import DeletedError
from benchbench.deleting import delete_unused
from benchbench.errors import ConflictError
from tests.admin.binned import delete_and_keep, delete_by_page, empty_bin, list_bin_tables
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round
from tests.sessions import elsewhere, until_waited_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures(empty_bin.__name__)]


@pytest.fixture
def judge() -> User:
    return User.objects.create_superuser("judge")


@pytest.fixture
def judged(judge: User) -> Any:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection("judged", [{}]))
    return make_round(make_benchmark(mapping, [0.5]).runs.get(), judges=[judge])


def test_first_deletions_at_once_share_tables() -> None:
    one, two = (make_collection(name, [{}]) for name in ("one", "two"))
    with transaction.atomic():
        delete_and_keep(one)
        second = elsewhere(lambda: delete_and_keep(two))
        until_waited_for(second)
    second.result(timeout=60)
    assert {restore(deletion).name for deletion in Deletion.objects.all()} == {"one", "two"}


@pytest.mark.parametrize("kind", ["collection", "round"])
def test_only_one_of_two_users_deletes(kind: str, request: pytest.FixtureRequest) -> None:
    row: Any = request.getfixturevalue("judged") if kind == "round" else make_collection("library")
    with transaction.atomic():
        deletion = delete_and_keep(row)
        second = elsewhere(lambda: delete_and_keep(type(row).objects.get(pk=deletion.object_id)))
        until_waited_for(second)
    with pytest.raises(DeletedError):
        second.result(timeout=60)
    assert Deletion.objects.get() == deletion
    assert restore(deletion).pk == deletion.object_id


def test_grade_given_at_the_last_moment_comes_back(judged: Any, judge: User) -> None:
    User.objects.create_superuser("admin")
    with transaction.atomic():
        grade_item(judged, judged.items.first().pk, judge, grade=1)
        deleting = elsewhere(lambda: delete_by_page(judged))
        until_waited_for(deleting)
    deleting.result(timeout=60)
    assert not Grade.objects.exists()
    restore(Deletion.objects.get())
    assert Grade.objects.get().grade == 1


def test_only_one_of_two_users_restores() -> None:
    deletion = delete_and_keep(make_collection("library", [{}]))
    with transaction.atomic():
        restore(Deletion.objects.get())
        second = elsewhere(lambda: restore(deletion))
        until_waited_for(second)
    with pytest.raises(ConflictError, match="It is no longer in the bin"):
        second.result(timeout=60)
    assert Collection.objects.get().documents.count() == 1


def test_emptying_and_restoring_do_not_deadlock() -> None:
    deletion = delete_and_keep(make_collection("library", [{}]))
    last = max(deletion.tables)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f'SELECT FROM "{last}" FOR UPDATE')
        emptying = elsewhere(lambda: empty(Deletion.objects.get()))
        until_waited_for(emptying)
        restoring = elsewhere(lambda: restore(deletion))
        while not restoring.done():
            cursor.execute("SELECT FROM pg_locks WHERE NOT granted")
            if cursor.rowcount > 1:
                break
    emptying.result(timeout=60)
    with pytest.raises(ConflictError, match="It is no longer in the bin"):
        restoring.result(timeout=60)
    assert not Collection.objects.exists()


def test_name_that_another_user_takes_at_once_is_refused() -> None:
    deletion = delete_and_keep(make_collection("library"))
    with transaction.atomic():
        make_collection("library")
        restoring = elsewhere(lambda: restore(deletion))
        until_waited_for(restoring)
    with pytest.raises(ConflictError, match="Another collection has its name now"):
        restoring.result(timeout=60)


def test_what_another_user_deletes_at_once_is_missed() -> None:
    mapping = create_mapping(make_dataset({"q": [("d1", 1)]}), make_collection("library"))
    deletion = delete_and_keep(mapping)
    with transaction.atomic():
        delete_and_keep(Collection.objects.get())
        restoring = elsewhere(lambda: restore(deletion))
        until_waited_for(restoring)
    with pytest.raises(ConflictError, match="It needs the collection"):
        restoring.result(timeout=60)


def test_end_in_the_middle_leaves_all() -> None:
    row = make_collection("library", [{}])

    def end(row: Any) -> None:
        with keep_deleted(row, None):
            delete_unused(row)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end(row)
    assert (Collection.objects.get().documents.count(), Deletion.objects.count()) == (1, 0)
    assert list_bin_tables() == []
