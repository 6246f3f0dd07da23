"""Who restores from the bin, and what its messages and pages say of names."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.accounts.bin import keep_deleted, restore
from apps.accounts.models import Deletion
from apps.collections.models import Collection
from apps.judging.models import Round
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import create_index
from benchbench.errors import ConflictError
from tests.admin.binned import delete_and_keep, empty_bin
from tests.created import build
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round
from tests.retrieval.opened import KEYWORDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures(empty_bin.__name__)]
MARKUP = """<b onclick="x">100%s & 'quoted' {{ 7 }}</b>"""


def restore_by_page(client: Client, *deletions: Deletion, action: str = "restore_selected") -> str:
    fields = {"action": action, "_selected_action": [str(deletion.pk) for deletion in deletions]}
    answer = client.post(reverse("admin:accounts_deletion_changelist"), fields, follow=True)
    return answer.content.decode()


def test_judge_of_a_blind_round_does_not_restore_it(make_staff: Any, client: Client) -> None:
    ann, bea = make_staff("ann"), make_staff("bea")
    team = Group.objects.create(name="team")
    bea.groups.add(team)
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection("l", [{}]))
    run = make_benchmark(mapping, [0.5]).runs.get()
    deletion = delete_and_keep(make_round(run, judges=[bea], owner=ann, team=team), by=ann)
    client.force_login(bea)
    assert "was not restored: you may not delete it" in restore_by_page(client, deletion)
    assert (Round.objects.count(), Deletion.objects.count()) == (0, 1)
    client.force_login(ann)
    assert "is restored" in restore_by_page(client, deletion)


def test_lost_right_ends_undo(make_staff: Any, client: Client) -> None:
    ann = make_staff("ann")
    deletion = delete_and_keep(make_collection("private", owner=ann), by=ann)
    client.force_login(ann)
    ann.user_permissions.clear()
    ann.groups.clear()
    answer = restore_by_page(client, deletion)
    assert "Nothing was restored" in answer
    assert "private" not in answer
    User.objects.filter(pk=ann.pk).update(is_staff=False)
    assert client.get(reverse("admin:accounts_deletion_changelist")).status_code == 302
    assert not Collection.objects.exists()


@pytest.mark.parametrize("page", ["change", "history", "delete"])
def test_address_of_anothers_deletion_tells_nothing(page: str, make_staff: Any, client: Client) -> None:
    ann, bea = make_staff("ann"), make_staff("bea")
    deletion = delete_and_keep(make_collection("private", owner=ann), by=ann)
    client.force_login(bea)
    answer = client.get(reverse(f"admin:accounts_deletion_{page}", args=[deletion.pk]), follow=True)
    assert "private" not in answer.content.decode()
    search = client.get(reverse("admin:accounts_deletion_changelist"), {"q": "private"}).content.decode()
    assert str(deletion.pk) not in search


def test_account_with_rows_in_the_bin_stays(admin_client: Client, make_staff: Any) -> None:
    ann = make_staff("ann")
    deletion = delete_and_keep(make_collection("library", owner=ann))
    answer = admin_client.post(reverse("admin:auth_user_delete", args=[ann.pk]), {"post": "yes"}, follow=True)
    assert "library" in answer.content.decode()
    assert User.objects.filter(pk=ann.pk).exists()
    assert restore(deletion).owner == ann


def test_undo_a_second_time_says_so(admin_client: Client) -> None:
    row = make_collection("library")
    deletion = delete_and_keep(row)
    assert "is restored" in restore_by_page(admin_client, deletion)
    entry = LogEntry.objects.get(change_message="“library” is restored.")
    assert entry.get_edited_object() == Collection.objects.get()
    assert "it is no longer in the bin" in restore_by_page(admin_client, deletion)


def test_names_with_markup_are_text(admin_client: Client) -> None:
    row = make_collection(MARKUP)
    answer = admin_client.post(
        reverse("admin:collections_collection_delete", args=[row.pk]), {"post": "yes"}, follow=True
    ).content.decode()
    listing = admin_client.get(reverse("admin:accounts_deletion_changelist")).content.decode()
    make_collection(MARKUP)
    refused = restore_by_page(admin_client, Deletion.objects.get())
    renamed = restore_by_page(admin_client, Deletion.objects.get(), action="rename_selected")
    for page in (answer, listing, refused, renamed):
        assert not re.search("<b onclick", page)
    assert Collection.objects.filter(name=f"{MARKUP} (restored)").exists()


def test_reading_changes_nothing(admin_client: Client) -> None:
    deletion = delete_and_keep(make_collection("library"))
    page = reverse("admin:accounts_deletion_changelist")
    admin_client.get(page, {"action": "restore_selected", "_selected_action": str(deletion.pk)})
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="admin"))
    assert strict.post(page, {"action": "restore_selected", "_selected_action": str(deletion.pk)}).status_code == 403
    assert (Collection.objects.count(), Deletion.objects.count()) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_index_whose_chunks_went_later_says_so() -> None:
    collection = make_collection("few", [{"external_id": "a", "text": "apple"}])
    first, second = (create_index(collection, name=name, encoder=KEYWORDS) for name in ("first", "second"))
    for index in (first, second):
        build(index)
    deletions = []
    for index in (first, second):
        with keep_deleted(index, None) as deletion:
            delete_index(index)
        deletions.append(deletion)
    with pytest.raises(ConflictError, match="It needs the chunk set that went with another deletion"):
        restore(deletions[0])
    assert [restore(deletion).name for deletion in reversed(deletions)] == ["second", "first"]


def test_message_of_a_misfit_shows_no_row() -> None:
    deletion = delete_and_keep(make_collection("library", description="a secret"))
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE collections_collection ADD needed int NOT NULL")
    with pytest.raises(ConflictError, match="no longer fit") as refused:
        restore(deletion)
    assert "secret" not in refused.value.message
