"""Numbers, tags and chosen columns in lists."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime, now

from apps.records.models import Benchmark, Evaluation, Run
from apps.retrieval.models import Index
from apps.verdicts.ranked_runs import load_leaderboard
from benchbench.site.panels import build_list_url, change_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping


def listed_row(client: Client, row: Model, **query: str) -> dict[str, str]:
    """Return the cells of a row in its list as text, by the name of the column."""
    html = client.get(build_list_url(type(row), **query)).content.decode()
    rows = [piece for piece in html.split("<tbody")[1:] if str(row.pk) in piece]
    assert len(rows) == 1
    cells = re.findall(r"field-(\w+)[^>]*>(.*?)</t[dh]>", rows[0], re.DOTALL)
    return {name: " ".join(re.sub(r"<[^>]+>", " ", cell).split()) for name, cell in cells}


@pytest.fixture
def measured(db: None) -> Benchmark:
    """Make a benchmark whose best run is the second of two equal ones but for their order, and whose last failed."""
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)], "q2": [({"document_id": "d1"}, 1)]}, name="Fruit")
    dataset.versions.update(query_count=2)
    mapping = make_mapping(dataset, make_collection("Shelf", [{"title": "On pears"}]))
    ended = datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
    times = {"started_at": ended - timedelta(seconds=125), "completed_at": ended}
    benchmark = make_benchmark(mapping, [0.4, 0.65432, 0.65432, None], name="ended", **times)
    for evaluation in Evaluation.objects.filter(run__run_order=2):
        evaluation.means["Judged@10"] = 0.875
        evaluation.save(update_fields=["means"])
    index = Index.objects.create(
        collection=mapping.collection, name="idx", encoder="BAAI/bge", stats={"bytes": 2048}, strategy="flat"
    )
    benchmark.runs.filter(run_order=2).update(
        index=index, config={"search_mode": "sparse", "top_k": 50, "use_reranker": True, "reranker": "some/model"}
    )
    return benchmark


def test_lists_show_the_numbers_of_their_pages(admin_client: Client, measured: Benchmark) -> None:
    second, third = measured.runs.filter(run_order__in=(2, 3)).order_by("run_order")
    board = load_leaderboard(measured)
    assert board.best is not None
    assert (board.best.run, board.best.values["nDCG@10"]) == (second, 0.65432)
    in_list = listed_row(admin_client, measured)
    assert (in_list["value"], in_list["best_run"]) == (".6543 nDCG@10", second.label)
    verdict = f"{reverse('admin:benchmark_verdict', args=[measured.pk])}?brief=words"
    assert in_list["verdict"] == "…"
    assert verdict in admin_client.get(build_list_url(Benchmark)).content.decode()
    assert b"all 3 not distinguishable" in admin_client.get(verdict).content
    assert listed_row(admin_client, measured)["verdict"] == "all 3 not distinguishable"
    assert (in_list["judged"], in_list["took"], in_list["dataset_version"]) == ("87.5 %", "2 min 5 s", "Fruit v1")
    run = listed_row(admin_client, second)
    assert (run["mode"], run["reranker"], run["strategy"], run["top_k"]) == ("lexical", "model", "flat", "50")
    assert (run["value"], run["judged"], run["latency"]) == (".6543 nDCG@10", "87.5 %", "20.0")
    assert listed_row(admin_client, measured.runs.get(run_order=4))["value"] == "–"
    dataset = listed_row(admin_client, measured.mapping.dataset)
    assert (dataset["query_total"], dataset["newest_version"], dataset["last_benchmark"]) == ("2", "v1", "ended")
    assert (dataset["value"], dataset["judged"]) == (".6543 nDCG@10", "87.5 %")
    index = listed_row(admin_client, Index.objects.get())
    assert (index["strategy"], index["size"], index["used_by"]) == ("flat", "2.0 KB", "1 benchmark")
    Evaluation.objects.filter(run=second).update(failed_queries=30)
    assert load_leaderboard(measured).best.run == third
    assert listed_row(admin_client, measured)["best_run"] == third.label
    assert listed_row(admin_client, second)["value"] == "–"


def test_lists_sort_by_value_and_filter_by_chips(admin_client: Client, measured: Benchmark) -> None:
    address = build_list_url(Run, mode="dense")
    chips = dict(admin_client.get(address).context["chips"])
    assert ("lexical", "?mode=sparse", False) in chips["mode"]
    assert ("dense", "?", True) in chips["mode"], "a chosen chip removes its filter"
    listing = admin_client.get(build_list_url(Run, mode="sparse")).context["cl"]
    assert [run.run_order for run in listing.result_list] == [2]
    column = [getattr(name, "__name__", name) for name in listing.list_display].index("value")
    ordered = admin_client.get(build_list_url(Run, o=f"-{column}")).context["cl"].result_list
    assert [run.run_order for run in ordered][-2:] == [1, 4], "runs without a value come last"
    make_benchmark(measured.mapping, [0.1], name="unended", started_at=None, completed_at=None)
    page = admin_client.get(build_list_url(Benchmark)).context["cl"]
    took = [getattr(name, "__name__", name) for name in page.list_display].index("took")
    for address in (f"?o={took}", f"?o=-{took}"):
        rows = admin_client.get(build_list_url(Benchmark) + address).context["cl"].result_list
        assert [row.name for row in rows][-1] == "unended"


def test_times_are_listed_as_distances_from_now(admin_client: Client, measured: Benchmark) -> None:
    for age, words in (
        (timedelta(hours=3, minutes=5), "3 hours ago"),
        (timedelta(seconds=-20), "now"),  # the clock of the machine that wrote it is ahead
        (
            timedelta(days=-13, hours=-23),
            date_format(localtime(now() + timedelta(days=13, hours=23)), "DATETIME_FORMAT"),
        ),
    ):
        Benchmark.objects.update(created_at=now() - age)
        assert listed_row(admin_client, measured)["created_at"] == words


def test_tags_filter_benchmarks_and_hidden_ones_stay_hidden(client_of_ada: Client, measured: Benchmark) -> None:
    Benchmark.objects.update(tags=["nightly", "main"])
    page = client_of_ada.get(build_list_url(Benchmark, tag="nightly"))
    assert [str(benchmark) for benchmark in page.context["cl"].result_list] == ["ended"]
    assert ("main", "?tag=main", False) in dict(page.context["chips"])["tag"]
    assert not client_of_ada.get(build_list_url(Benchmark, tag="other")).context["cl"].result_list
    Benchmark.objects.update(owner=User.objects.create_user("grace"))
    assert "tag" not in dict(client_of_ada.get(build_list_url(Benchmark)).context["chips"])


def test_numbers_of_hidden_benchmarks_are_not_in_lists(client_of_ada: Client, measured: Benchmark) -> None:
    assert listed_row(client_of_ada, measured.mapping.dataset)["last_benchmark"] == "ended"
    Benchmark.objects.update(owner=User.objects.create_user("grace"))
    dataset, index = measured.mapping.dataset, Index.objects.get()
    assert listed_row(client_of_ada, dataset)["last_benchmark"] == "–"
    assert listed_row(client_of_ada, dataset)["value"] == "–"
    assert listed_row(client_of_ada, index)["used_by"] == "–"


def test_numbers_of_benchmarks_need_the_permission_to_view_them(client: Client, measured: Benchmark) -> None:
    reader = User.objects.create_user("vera", is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename__in=["view_dataset", "view_index"]))
    client.force_login(reader)
    dataset = measured.mapping.dataset
    row = listed_row(client, dataset)
    assert (row["query_total"], row["last_benchmark"], row["value"], row["judged"]) == ("2", "–", "–", "–")
    assert listed_row(client, Index.objects.get())["used_by"] == "–"
    page = client.get(change_url(dataset)).context
    assert (page["health"], page["query_table"].evaluation) == ([], None)
    history = client.get(reverse("admin:dataset_history", args=[dataset.pk]))
    assert history.context["history"].points == []


def test_chosen_columns_of_a_list_are_kept(admin_client: Client, measured: Benchmark) -> None:
    def find_hidden(address: str) -> set[str]:
        displayed = admin_client.get(address)
        hidden = {name for name, _, is_hidden in displayed.context["columns"] if is_hidden}
        assert all(f"td.field-{name} {{ display: none" in displayed.content.decode() for name in hidden)
        return hidden

    address = build_list_url(Benchmark, status__exact="completed")
    facts = {"best_run", "judged", "dataset_version", "collection", "took", "total_runs", "owner"}
    assert find_hidden(address) == facts | {"measured"}
    response = admin_client.post(address, {"_columns": "1", "column": ["value", "judged", "unknown"]})
    assert (response.status_code, response["Location"]) == (302, address)
    assert "value" not in find_hidden(address)
    assert find_hidden(address) > {"total_runs", "owner", "best_run"}
    assert response.cookies["hidden_columns"]["path"] == build_list_url(Benchmark), "each list has its own"
    admin_client.cookies["hidden_columns"] = "<b>.owner"
    assert find_hidden(address) == {"owner", "measured"}


def test_a_measure_is_a_column_that_sorts(admin_client: Client, measured: Benchmark) -> None:
    for run, mean in ((1, 0.75), (2, 0.51894), (3, 0.25)):
        evaluation = Evaluation.objects.get(run__benchmark=measured, run__run_order=run)
        evaluation.means["RR"] = mean
        evaluation.save(update_fields=["means"])
    Benchmark.objects.update(measures=["nDCG@10", "nDCG@5", "RR"])
    page = admin_client.get(build_list_url(Run))
    assert page.context["measures"] == ["nDCG@5", "nDCG@10", "RR"]
    assert ("measured", "measure", True) in page.context["columns"], "hidden until a measure is chosen"
    answer = admin_client.post(
        build_list_url(Run, mode="sparse"), {"_columns": "1", "measure": "RR", "column": "value"}
    )
    assert answer["Location"] == build_list_url(Run, mode="sparse", measure="RR")
    assert listed_row(admin_client, measured.runs.get(run_order=2), mode="sparse", measure="RR")["measured"] == ".5189"
    assert listed_row(admin_client, measured, measure="rr")["measured"] == ".5189", "of the best run by nDCG@10"
    page = admin_client.get(build_list_url(Run, measure="RR"))
    assert ("measured", "mean RR", False) in page.context["columns"]
    listing = page.context["cl"]
    assert set(listing.list_display) - set(listing.sortable_by) == {"action_checkbox"}
    position = [getattr(name, "__name__", name) for name in listing.list_display].index("measured")
    for order, expected in ((f"{position}", [3, 2, 1, 4]), (f"-{position}", [1, 2, 3, 4])):
        rows = admin_client.get(build_list_url(Run, measure="RR", o=order)).context["cl"].result_list
        assert [run.run_order for run in rows] == expected, "runs without a value come last"
    answer = admin_client.post(build_list_url(Run, measure="RR"), {"_columns": "1", "measure": ""})
    assert answer["Location"] == build_list_url(Run)


def test_a_text_that_names_no_measure_shows_no_column(admin_client: Client, measured: Benchmark) -> None:
    for text in ("<b>", "", "nDCG@", "x" * 5000, "a,b", "nDCG@10'"):
        page = admin_client.get(build_list_url(Run, measure=text))
        assert (page.status_code, page.context["measure"]) == (200, "")
        assert ("measured", "measure", True) in page.context["columns"]


def test_measures_of_hidden_benchmarks_are_not_offered(client_of_ada: Client, measured: Benchmark) -> None:
    Benchmark.objects.update(measures=["AP"])
    assert client_of_ada.get(build_list_url(Run)).context["measures"] == ["AP"]
    Benchmark.objects.update(owner=User.objects.create_user("grace"))
    assert client_of_ada.get(build_list_url(Run)).context["measures"] == []
