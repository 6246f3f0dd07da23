"""The bin: each deletion of what users own leaves all its rows there, and restoring puts them back as they were."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps.registry import apps as installed
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.bin import empty, keep_deleted, list_deletions, restore
from apps.accounts.models import Deletion
from apps.api.resource import Resource
from apps.collections.models import Collection
from apps.judging.models import Grade, Round
from apps.mappings.creating import create_mapping, delete_mapping, ensure_external
from apps.records.models import Baseline, Benchmark, GateOutcome, Repeat, Schedule
from apps.results.retention.pruning import prune_for
from apps.retrieval.models import Index
from apps.retrieval.search.vectors import map_vectors
from benchbench.errors import ConflictError
from benchbench.ir.planning.lexical import FULL_TEXT
from benchbench.site.panels import change_url
from tests.admin.binned import count_in_bin, delete_and_keep, delete_by_page, empty_bin
from tests.api.callers import Caller
from tests.created import run_benchmark
from tests.factories import (
    ensure_preparation,
    make_benchmark,
    make_collection,
    make_dataset,
    make_mapping,
    make_round,
    make_schedule,
)
from tests.library import make_library

pytestmark = pytest.mark.usefixtures(empty_bin.__name__)
LEFT_OUT = ("bin_", "accounts_deletion", "accounts_accesstoken", "django_", "auth_user")
Delete = Callable[[Model], None]


def read_tables() -> dict[str, list[bytes]]:
    """Return the rows of all tables as COPY writes them, of vectors and words too, without sessions and the log."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        names = [name for (name,) in cursor.fetchall() if not name.startswith(LEFT_OUT)]
        tables = {}
        for name in names:
            with cursor.copy(f'COPY "{name}" TO STDOUT') as copy:
                tables[name] = sorted(b"".join(copy).splitlines())
    return tables


@pytest.fixture
def benchmark(transactional_db: None, admin_user: User) -> Benchmark:
    """A benchmark with all that may hang on one, and others that refer to it."""
    matrix = {"search_modes": ["dense", "sparse"], "lexical": ["bm25", FULL_TEXT]}
    first = run_benchmark(make_library(), name="Which?", matrix=matrix)
    run = first.runs.earliest("run_order")
    baseline = Baseline.objects.create(dataset=first.dataset_version.dataset, run=run, name="b", reason="It is good.")
    GateOutcome.objects.create(run=run, rules={}, outcome="failed", checks=[], baseline=baseline)
    Baseline.objects.update(retired_at=timezone.now(), approved_by=admin_user)
    nightly = make_schedule(make_benchmark(first.mapping, [0.5], name="another"))
    Repeat.objects.create(schedule=nightly, due_at=timezone.now(), benchmark=first, result="It is better.")
    judge = User.objects.create_user("judge", is_staff=True)
    judged = make_round(run, judges=[judge], items=2)
    Grade.objects.create(item=judged.items.first(), judge=judge, grade=2, graded_at=timezone.now())
    make_schedule(first, repeats=2)
    ensure_preparation()
    return first


def list_kinds() -> set[type[Model]]:
    """Return the models whose deletions the bin keeps."""
    return {model for model in installed.get_models() if getattr(model, "owned_by", None) is not None}


def delete_by_api(row: Model) -> None:
    (path,) = (
        resource.route + method.operation.path
        for resource in Resource.kinds
        if getattr(resource, "model", None) is type(row)
        for method in vars(resource).values()
        if getattr(getattr(method, "operation", None), "permission", "") == "delete"
    )
    *parents, _ = re.findall("<[^>]*>", path)
    filled = re.sub("<[^>]*>", str(row.pk), path.replace(parents[0], str(row.dataset_id)) if parents else path)
    answer = Caller(User.objects.get(username="admin")).delete("/" + filled.lstrip("/"))
    assert answer.status_code == 204, answer.content


@pytest.mark.parametrize("delete", [delete_by_page, delete_by_api])
def test_each_kind_comes_back_bit_for_bit(benchmark: Benchmark, delete: Delete) -> None:
    mapping, index = benchmark.mapping, benchmark.runs.exclude(index=None)[0].index
    map_vectors(index)
    order = [
        *benchmark.runs.earliest("run_order").rounds.all(),
        *benchmark.schedules.all(),
        *Baseline.objects.all(),
        benchmark,
        *(schedule for second in Benchmark.objects.exclude(pk=benchmark.pk) for schedule in second.schedules.all()),
        *Benchmark.objects.exclude(pk=benchmark.pk),
        mapping,
        mapping.dataset,
        index,
        mapping.collection,
    ]
    assert {type(row) for row in order} == list_kinds()
    before = []
    for row in order:
        before.append(read_tables())
        delete(row)
        assert not type(row)._default_manager.filter(pk=row.pk).exists(), row
        assert Deletion.objects.first().object_id == row.pk
    assert not {"retrieval_chunk", index.vector_table} & {name for name, rows in read_tables().items() if rows}
    for row, tables in reversed(list(zip(order, before, strict=True))):
        assert restore(Deletion.objects.get(object_id=row.pk)) == row
        now = read_tables()
        assert {name: rows for name, rows in now.items() if rows != tables.get(name, [])} == {}, row
    assert count_in_bin() == 0 == Deletion.objects.count()


def test_collection_of_external_ids_comes_back_with_its_mapping(db: None, admin_user: User) -> None:
    mapping = ensure_external(make_dataset({"q": [({"document_id": "d1"}, 1)]}))
    before = read_tables()
    with keep_deleted(mapping, admin_user):
        delete_mapping(mapping)
    assert not Collection.objects.exists()
    restore(Deletion.objects.get())
    assert read_tables() == before


def test_name_taken_meanwhile_is_refused_and_another_given(db: None, admin_client: Client) -> None:
    deletion = delete_and_keep(make_collection("library", [{"title": "Pears"}]))
    make_collection("Library")
    page = reverse("admin:accounts_deletion_changelist")
    for action, sentence, names in (
        ("restore_selected", "differs only in case", ["Library"]),
        ("rename_selected", "“library (restored)”", ["Library", "library (restored)"]),
    ):
        answer = admin_client.post(page, {"action": action, "_selected_action": str(deletion.pk)}, follow=True)
        assert sentence in answer.content.decode()
        assert sorted(Collection.objects.values_list("name", flat=True)) == names
    assert Collection.objects.get(name="library (restored)").documents.count() == 1


def test_equal_name_is_a_sentence_too(db: None) -> None:
    deletion = delete_and_keep(make_collection("library"))
    make_collection("library")
    with pytest.raises(ConflictError, match="Another collection has its name now"):
        restore(deletion)
    assert restore(deletion, rename=True).name == "library (restored)"


def test_what_it_needs_comes_back_first(transactional_db: None) -> None:
    dataset, collection = make_dataset({"q": [("d1", 1)]}), make_collection("library")
    mapping = create_mapping(dataset, collection)
    key = mapping.pk
    second, first = delete_and_keep(mapping), delete_and_keep(collection)
    with pytest.raises(ConflictError, match="It needs the collection that was deleted too: restore that first"):
        restore(second)
    restore(first)
    assert restore(second).pk == key


def test_references_to_users_who_are_gone_are_dropped(db: None) -> None:
    one, team = User.objects.create_user("gone", is_staff=True), Group.objects.create(name="team")
    benchmark = make_benchmark(make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection("l", [{}])), [0.5])
    judged = make_round(benchmark.runs.get(), judges=[one], team=team)
    Grade.objects.create(item=judged.items.get(), judge=one, judge_name="gone", grade=1, graded_at=timezone.now())
    deletion = delete_and_keep(judged)
    one.delete()
    team.delete()
    row = restore(deletion)
    assert (row.team, list(row.judges.all()), Grade.objects.get().judge) == (None, [], None)


def test_rows_of_older_tables_fit_or_say_why(db: None) -> None:
    deletions = [delete_and_keep(make_collection(name)) for name in ("one", "two", "three")]
    change = "ALTER TABLE collections_collection "
    for deletion, statement in zip(
        deletions, ("ADD new int DEFAULT 7", "ADD needed int NOT NULL", "DROP description CASCADE"), strict=True
    ):
        connection.check_constraints()  # or PostgreSQL refuses
        with connection.cursor() as cursor:
            cursor.execute(change + statement)
        if deletion is deletions[0]:
            assert restore(deletion).name == "one"
            Collection.objects.all().delete()
        else:
            with pytest.raises(ConflictError, match="BenchBench was updated since"):
                restore(deletion)


def test_bin_shows_what_its_reader_may_delete(db: None, make_staff: Any, client: Client) -> None:
    ann, bea = make_staff("ann"), make_staff("bea")
    viewer, team = make_staff("viewer", may=("view",)), Group.objects.create(name="team")
    hers = delete_and_keep(make_collection("hers", owner=ann), by=ann)
    shared = delete_and_keep(make_collection("shared", owner=ann, team=team), by=ann)
    bea.groups.add(team)
    viewer.groups.add(team)
    assert set(list_deletions(ann)) == {hers, shared}
    assert set(list_deletions(bea)) == {shared}
    assert not list_deletions(viewer)
    client.force_login(bea)
    page = reverse("admin:accounts_deletion_changelist")
    assert "shared" in client.get(page).content.decode()
    client.post(page, {"action": "restore_selected", "_selected_action": [str(hers.pk), str(shared.pk)]})
    assert Collection.objects.get().name == "shared"
    assert client.post(reverse("admin:accounts_deletion_delete", args=[hers.pk]), {"post": "yes"}).status_code in (
        403,
        404,
    )
    assert Deletion.objects.get() == hers


def test_superuser_deletes_for_good(db: None, admin_client: Client) -> None:
    deletion = delete_and_keep(make_collection("library", [{}]))
    assert count_in_bin() == 2
    address = reverse("admin:accounts_deletion_delete", args=[deletion.pk])
    assert "Bin | BenchBench</title>" in admin_client.get(reverse("admin:accounts_deletion_changelist")).text
    labels = [one.label for one in admin_client.get(change_url(deletion)).context["buttons"]]
    assert labels == ["Restore", "Restore under another name", "Delete for good"]
    page = admin_client.get(address).text
    assert "Delete “library” for good" in page
    assert "Nothing brings it back" in page
    assert "“library” is deleted for good." in admin_client.post(address, {"post": "yes"}, follow=True).text
    assert (count_in_bin(), Deletion.objects.count(), Collection.objects.count()) == (0, 0, 0)


def test_retention_empties_the_bin_after_its_days(transactional_db: None) -> None:
    first, second = (delete_and_keep(make_collection(name, [{}])) for name in ("first", "second"))
    Deletion.objects.filter(pk=first.pk).update(until=timezone.now() - timedelta(minutes=1))
    assert prune_for()["Deleted rows in the bin"] == 1
    assert Deletion.objects.get() == second
    assert count_in_bin() == 2


def test_retention_leaves_the_indexes_of_runs_in_the_bin(benchmark: Benchmark, settings: Any) -> None:
    settings.BENCHBENCH_KEEP_INDEXES_DAYS = 1
    Schedule.objects.filter(benchmark=benchmark).delete()
    Round.objects.all().delete()
    Baseline.objects.all().delete()
    Index.objects.update(updated_at=timezone.now() - timedelta(days=9))
    indexes = Index.objects.count()
    deletion = delete_and_keep(benchmark)
    prune_for()
    assert Index.objects.count() == indexes
    assert restore(deletion).runs.exclude(index=None).exists()
    empty(delete_and_keep(Benchmark.objects.get(pk=deletion.object_id)))
    prune_for()
    assert not Index.objects.exists()


@pytest.mark.parametrize("limit", ["DAYS", "BYTES"])
def test_page_tells_beforehand_whether_it_can_be_taken_back(
    limit: str, db: None, admin_client: Client, settings: Any
) -> None:
    row = make_collection("library", [{}])
    address = reverse("admin:collections_collection_delete", args=[row.pk])
    day = timezone.localtime(timezone.now() + timedelta(days=14))
    assert f"you can take it back until {day.day} {day:%B %Y}." in admin_client.get(address).content.decode()
    setattr(settings, f"BENCHBENCH_KEEP_DELETED_{limit}", 0)
    assert "Nothing brings it back." in admin_client.get(address).content.decode()
    answer = admin_client.post(address, {"post": "yes"}, follow=True)
    assert "Undo" not in answer.content.decode()
    assert (Collection.objects.count(), Deletion.objects.count(), count_in_bin()) == (0, 0, 0)


def test_undo_in_the_message_leads_to_the_row(db: None, admin_client: Client) -> None:
    row = make_collection("library", [{"title": "Pears"}])
    admin_client.post(reverse("admin:collections_collection_delete", args=[row.pk]), {"post": "yes"})
    page = admin_client.get(reverse("admin:index")).content.decode()
    form = page[page.index('class="bb-undo"') :]
    fields = dict(re.findall('name="(action|_selected_action)" value="([^"]+)"', form))
    answer = admin_client.post(reverse("admin:accounts_deletion_changelist"), fields, follow=True)
    assert answer.redirect_chain[-1][0].endswith(f"{row.pk}/change/")
    assert "“library” is restored." in answer.content.decode()


def test_refused_deletion_leaves_nothing_in_the_bin(db: None, admin_client: Client) -> None:
    mapping = create_mapping(make_dataset({"q": [("d1", 1)]}), make_collection("library", [{}]))
    admin_client.post(reverse("admin:collections_collection_delete", args=[mapping.collection.pk]), {"post": "yes"})
    assert (Collection.objects.count(), Deletion.objects.count(), count_in_bin()) == (1, 0, 0)


def test_rows_of_a_list_go_together_and_come_back(db: None, admin_client: Client) -> None:
    used = create_mapping(make_dataset({"q": [("d1", 1)]}), make_collection("in use")).collection
    unused = [make_collection(name, [{}]) for name in ("one", "two")]
    keys = [row.pk for row in (used, *unused)]
    page = reverse("admin:collections_collection_changelist")
    answer = admin_client.post(page, {"action": "bin_selected", "_selected_action": keys}, follow=True).content.decode()
    assert "is used by the mapping" in answer
    assert "2 collections deleted." in answer
    assert Collection.objects.get() == used
    fields = {
        "action": "restore_selected",
        "_selected_action": re.findall('_selected_action" value="([^"]+)"', answer)[:2],
    }
    admin_client.post(reverse("admin:accounts_deletion_changelist"), fields)
    assert Collection.objects.count() == 3


def test_list_deletes_nothing_without_a_way_back(db: None, admin_client: Client, settings: Any) -> None:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}]))
    judged = make_benchmark(mapping, [0.5], name="judged")
    GateOutcome.objects.create(run=judged.runs.get(), rules={}, outcome="failed", checks=[])
    page = reverse("admin:benchmarks_benchmark_changelist")
    fields = {"action": "bin_selected", "_selected_action": [judged.pk]}
    assert "what people decided goes too" in admin_client.post(page, fields, follow=True).content.decode()
    GateOutcome.objects.all().delete()
    settings.BENCHBENCH_KEEP_DELETED_DAYS = 0
    assert "nothing would bring it back" in admin_client.post(page, fields, follow=True).content.decode()
    assert Benchmark.objects.get() == judged
