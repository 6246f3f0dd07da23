"""Selected rows of lists: tagged, archived, brought back, exported as one zip; those of others are left out."""

import io
import re
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.accounts import selected
from apps.accounts.models import Deletion
from apps.benchmarks.forms import build_clone_initial
from apps.datasets.models import Dataset
from apps.execution.defining.creating import BenchmarkOptions
from apps.mappings.models import Mapping
from apps.operations.models import Status
from apps.records.models import Baseline, Benchmark, GateOutcome
from benchbench.models import MAX_TAGS
from benchbench.site.panels import build_list_url, change_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.site import results_url
from tests.staff import MakeStaff

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")]


@pytest.fixture
def three() -> list[Benchmark]:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}]))
    return [make_benchmark(mapping, [0.5, 0.25], name=name) for name in ("one", "two", "three")]


def act(client: Client, name: str, rows: list[Any], **values: str) -> Any:
    fields = {"action": f"{name}_selected", "_selected_action": [row.pk for row in rows], **values}
    return client.post(build_list_url(type(rows[0])), fields, follow=True)


def messages_of(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def tags_of(row: Any) -> list[str]:
    row.refresh_from_db()
    return list(row.tags)


def names_in(client: Client, model: Any, **filters: str) -> set[str]:
    return {str(row) for row in client.get(build_list_url(model, **filters)).context["cl"].result_list}


def test_tag_is_asked_for_with_those_in_use(admin_client: Client, three: list[Benchmark]) -> None:
    Benchmark.objects.filter(name="three").update(tags=["weekly"])
    page = act(admin_client, "tag", three[:2]).content.decode()
    assert "Tag 2 benchmarks" in page
    assert '<option value="weekly">' in page
    assert page.count('name="_selected_action"') == 2


def test_page_of_an_act_says_which_rows(admin_client: Client, three: list[Benchmark]) -> None:
    answer = act(admin_client, "tag", three)
    assert "Tag 3 benchmarks" in answer.text
    assert set(answer.context["intro"].split(", ")) == {"one", "two", "three"}
    assert f'href="{build_list_url(Benchmark)}">Back</a>' in answer.text


def test_tag_is_added_and_removed(admin_client: Client, three: list[Benchmark]) -> None:
    one, two, _ = three
    Benchmark.objects.filter(pk=two.pk).update(tags=["nightly"])
    answer = act(admin_client, "tag", three, tag="nightly", act="add")
    assert messages_of(answer) == ["Added the tag “nightly” to 2 benchmarks.", "1 benchmark had it already."]
    assert [tags_of(row) for row in three] == [["nightly"]] * 3
    assert names_in(admin_client, Benchmark, tag="nightly") == {"one", "two", "three"}
    act(admin_client, "tag", [one], tag="nightly", act="remove")
    assert [tags_of(row) for row in three] == [[], ["nightly"], ["nightly"]]
    assert (
        "Removed the tag “nightly”"
        in admin_client.get(reverse("admin:benchmarks_benchmark_history", args=[one.pk])).content.decode()
    )


def test_row_with_most_tags_is_left_out(admin_client: Client, three: list[Benchmark]) -> None:
    Benchmark.objects.filter(name="one").update(tags=[f"tag {number}" for number in range(MAX_TAGS)])
    answer = act(admin_client, "tag", three, tag="nightly", act="add")
    assert messages_of(answer)[1] == f"1 benchmark left out: {MAX_TAGS} tags are the most."
    assert "nightly" not in tags_of(three[0])


def test_rows_of_others_are_left_out(make_staff: MakeStaff, three: list[Benchmark]) -> None:
    ada, client = make_staff("ada"), Client()
    client.force_login(ada)
    Benchmark.objects.filter(name="one").update(owner=User.objects.create_user("grace"))
    for name, values in (("archive", {}), ("tag", {"tag": "nightly"})):
        answer = act(client, name, three, **values)
        assert messages_of(answer)[-1] == "1 benchmark left out: deleted meanwhile, or not yours to see."
    assert tags_of(three[0]) == []
    assert tags_of(three[1]) == ["archived", "nightly"]


def test_an_act_on_many_rows_shows_few_sentences(make_staff: MakeStaff, three: list[Benchmark]) -> None:
    ada, client = make_staff("ada"), Client()
    client.force_login(ada)
    Benchmark.objects.filter(name="one").update(owner=User.objects.create_user("grace"))
    rows = [*three, *(make_benchmark(three[0].mapping, [0.5], name=f"more {number}") for number in range(7))]
    answer = act(client, "cancel", rows)
    assert len(messages_of(answer)) == 7
    assert messages_of(answer)[5] == "4 more were refused: select fewer to see why."
    unseen, deleted = messages_of(act(client, "bin", rows))
    assert unseen == messages_of(answer)[6]
    assert re.search(r"9 benchmarks deleted\.\s+They are in the bin until [^<]*\.\s+<button", deleted)
    assert unseen == "1 benchmark left out: deleted meanwhile, or not yours to see."
    assert messages_of(act(client, "restore", list(Deletion.objects.all())))[5:] == ["4 more like these."]


def test_viewers_tag_and_archive_nothing(make_staff: MakeStaff, three: list[Benchmark]) -> None:
    client = Client()
    client.force_login(make_staff("vera", may=("view",)))
    for name in ("tag", "archive", "bring_back"):
        act(client, name, three, tag="nightly")
    assert tags_of(three[0]) == []
    assert act(client, "export", three, format="csv")["Content-Type"].startswith("application/zip")


def test_archived_rows_leave_lists_and_choices(admin_client: Client, three: list[Benchmark]) -> None:
    one, dataset = three[0], Dataset.objects.get()
    assert messages_of(act(admin_client, "archive", [one])) == ["1 benchmark archived: the filter Archived shows it."]
    act(admin_client, "archive", [dataset])
    assert names_in(admin_client, Benchmark) == {"two", "three"}
    assert names_in(admin_client, Benchmark, archived="only") == {"one"}
    assert names_in(admin_client, Benchmark, archived="all") == {"one", "two", "three"}
    runs = admin_client.get(reverse("admin:benchmarks_run_changelist")).context["cl"]
    assert runs.result_count == 4
    assert not names_in(admin_client, Dataset)
    assert 'href="?archived=only"' in admin_client.get(build_list_url(Dataset)).content.decode()
    query = {"app_label": "mappings", "model_name": "mapping", "field_name": "dataset", "term": ""}
    assert admin_client.get(reverse("admin:autocomplete"), query).json()["results"] == []
    assert "“one”" not in admin_client.get(reverse("admin:index")).content.decode()


def test_archived_rows_keep_their_pages(admin_client: Client, three: list[Benchmark]) -> None:
    one, run = three[0], three[0].runs.first()
    assert run
    Baseline.objects.create(name="pinned", dataset=Dataset.objects.get(), run=run)
    act(admin_client, "archive", three)
    for url in (results_url(one), change_url(one), change_url(run), change_url(Baseline.objects.get())):
        assert admin_client.get(url).status_code == 200
    of_one = build_list_url(type(run), benchmark__id__exact=one.pk)
    assert admin_client.get(of_one).context["cl"].result_count == 2


def test_page_of_an_archived_row_brings_it_back(admin_client: Client, three: list[Benchmark]) -> None:
    one = three[0]
    act(admin_client, "archive", [one])
    assert "Bring back from the archive" in admin_client.get(results_url(one)).content.decode()
    answer = act(admin_client, "bring_back", [one], next=results_url(one))
    assert answer.redirect_chain[-1][0] == results_url(one)
    assert messages_of(answer) == ["1 benchmark back from the archive: lists and choices show it."]
    assert names_in(admin_client, Benchmark) == {"one", "two", "three"}


def test_act_on_all_pages_spares_archived_rows(admin_client: Client, three: list[Benchmark]) -> None:
    act(admin_client, "archive", three[:1])
    act(admin_client, "tag", three[1:], tag="nightly", select_across="1")
    assert [tags_of(row) for row in three] == [["archived"], ["nightly"], ["nightly"]]


def unpack(answer: Any) -> dict[str, str]:
    assert answer["Content-Type"].startswith("application/zip")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_export_asks_for_a_format(admin_client: Client, three: list[Benchmark]) -> None:
    page = act(admin_client, "export", three).content.decode()
    assert "Export 3 benchmarks" in page
    assert "CSV, one row per run" in page


def test_export_holds_what_single_exports_hold(admin_client: Client, three: list[Benchmark]) -> None:
    files = unpack(act(admin_client, "export", three, format="csv"))
    assert list(files) == ["three.csv", "two.csv", "one.csv"]
    single = admin_client.get(reverse("admin:benchmark_export", args=[three[0].pk, "csv"]))
    assert files["one.csv"] == b"".join(single).decode()


def test_equal_names_are_numbered_in_the_zip(admin_client: Client, three: list[Benchmark]) -> None:
    Benchmark.objects.update(name="one")
    runs = [run for row in three[:2] for run in row.runs.all()]
    files = unpack(act(admin_client, "export", runs, format="csv-run"))
    assert len(files) == 4
    assert {name.split("-", 1)[-1] for name in files} >= {"one.run-1.csv", "one.run-2.csv"}


def test_export_says_what_it_leaves_out(admin_client: Client, three: list[Benchmark]) -> None:
    Benchmark.objects.filter(name="two").update(status=Status.RUNNING)
    files = unpack(act(admin_client, "export", three, format="csv"))
    assert list(files) == ["three.csv", "one.csv", "left-out.txt"]
    assert "“two” is left out. The benchmark" in files["left-out.txt"]
    page = admin_client.get(reverse("admin:index")).content.decode()
    assert "export it once it has ended" in page


def test_export_without_a_file_is_a_sentence(admin_client: Client) -> None:
    dataset = Dataset.objects.create(name="empty")
    answer = act(admin_client, "export", [dataset], format="benchbench-json")
    assert messages_of(answer) == ["“empty” is left out. It has no frozen version: freeze its draft first."]


def test_datasets_are_exported_in_one_format(admin_client: Client) -> None:
    rows = [make_dataset({"q": [({"uri": "x:a"}, 1)]}, name=name) for name in ("fruit", "tools")]
    files = unpack(act(admin_client, "export", rows, format="benchbench-json"))
    assert list(files) == ["fruit-v1.json", "tools-v1.json"]


def test_exports_beyond_the_limits_are_refused(
    admin_client: Client, three: list[Benchmark], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selected, "MAX_BYTES", 10)
    answer = act(admin_client, "export", three, format="csv")
    assert "The files have more than 10" in messages_of(answer)[0]
    monkeypatch.setattr(selected, "MAX_FILES", 2)
    assert messages_of(act(admin_client, "export", three)) == ["A zip holds at most 2 files, not 3: select fewer."]


def test_copies_of_archived_rows_are_not_archived(admin_client: Client, three: list[Benchmark]) -> None:
    Benchmark.objects.filter(name="one").update(tags=["archived", "nightly"])
    three[0].refresh_from_db()
    assert build_clone_initial(three[0])["tags"] == "nightly"
    assert BenchmarkOptions.from_benchmark(three[0]).tags == ["nightly"]


def test_numbered_names_in_a_zip_replace_none(admin_client: Client, three: list[Benchmark]) -> None:
    for row, name in zip(three, ("one", "one", "3-one"), strict=True):
        Benchmark.objects.filter(pk=row.pk).update(name=name)
    files = unpack(act(admin_client, "export", three, format="csv"))
    assert len(files) == 3


def test_list_of_archived_rows_alone_leads_to_them(admin_client: Client, three: list[Benchmark]) -> None:
    act(admin_client, "archive", three)
    page = admin_client.get(build_list_url(Benchmark)).content.decode()
    assert "Clear the filters" not in page
    assert 'href="?archived=all"' in page
    page = admin_client.get(build_list_url(Benchmark, q="nothing")).content.decode()
    assert 'href="?q=nothing&amp;archived=all"' in page


@pytest.mark.parametrize("tag", ["a\tb", "\u202egnp", "a\u200bb", "é" * 51])
def test_unreadable_tags_are_refused(admin_client: Client, three: list[Benchmark], tag: str) -> None:
    one, dataset = three[0], Dataset.objects.get()
    for row in (one, dataset):
        assert act(admin_client, "tag", [row], tag=tag, act="add").context["form"].errors["tag"]
        page = admin_client.post(change_url(row), {"name": "other", "description": "", "tags": tag})
        assert page.context["adminform"].form.errors["tags"]
        assert tags_of(row) == []


def test_archive_has_one_spelling(admin_client: Client, three: list[Benchmark]) -> None:
    one, two, _ = three
    act(admin_client, "tag", [one], tag="Archived", act="add")
    admin_client.post(change_url(two), {"name": "two", "description": "", "tags": "ARCHIVED,cafe\u0301"})
    assert tags_of(one) == ["archived"]
    assert tags_of(two) == ["archived", "café"]


def test_unreadable_tag_of_before_is_removed(admin_client: Client, three: list[Benchmark]) -> None:
    Benchmark.objects.filter(name="one").update(tags=["a\u200bb"])
    act(admin_client, "tag", three[:1], tag="a\u200bb", act="remove")
    assert tags_of(three[0]) == []


def test_archived_rows_are_offered_where_chosen(admin_client: Client, three: list[Benchmark]) -> None:
    one, mapping = three[0], three[0].mapping
    run = str(one.runs.first().pk)  # type: ignore[union-attr]
    dataset = mapping.dataset
    pages = [reverse(f"admin:{name}") for name in ("benchmarks_benchmark_add", "judging_round_add")]
    choices, of_mapping = reverse("admin:round_choices"), {"mapping": str(mapping.pk)}
    assert run in admin_client.get(choices, of_mapping).content.decode()
    act(admin_client, "archive", [one])
    assert run not in admin_client.get(choices, of_mapping).content.decode()
    assert f'value="{run}"' in admin_client.get(pages[1], {"run": run}).content.decode()
    act(admin_client, "archive", [dataset])
    for page in pages:
        assert f'value="{mapping.pk}"' not in admin_client.get(page).content.decode()
        assert f'value="{mapping.pk}"' in admin_client.get(page, of_mapping | {"run": run}).content.decode()


def test_archived_rows_give_no_tasks(admin_client: Client, three: list[Benchmark]) -> None:
    run: Any = three[0].runs.first()
    GateOutcome.objects.create(run=run, rules={}, outcome="failed", checks=[])
    Mapping.objects.update(total_count=2, mapped_count=1)
    tasks = ("The gate on “", "no document in the collection")
    start = admin_client.get(reverse("admin:index")).content.decode()
    assert [task in start for task in tasks] == [True, True]
    act(admin_client, "archive", [three[0]])
    act(admin_client, "archive", [Dataset.objects.get()])
    start = admin_client.get(reverse("admin:index")).content.decode()
    assert [task in start for task in tasks] == [False, False]


def test_tag_that_no_row_has_any_more_filters(admin_client: Client, three: list[Benchmark]) -> None:
    assert not names_in(admin_client, Dataset, source_format="gone")
    for tag in ("gone", "archived"):
        assert not names_in(admin_client, Benchmark, tag=tag)
        fields = {"action": "archive_selected", "_selected_action": [three[0].pk], "select_across": "1"}
        admin_client.post(build_list_url(Benchmark, tag=tag), fields)
        assert [tags_of(row) for row in three] == [[], [], []]
