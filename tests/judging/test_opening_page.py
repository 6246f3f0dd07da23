"""The form that opens a round."""

from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from apps.benchmarks.models import Benchmark
from apps.judging.models import Round
from benchbench.ir.judging.orders import SHARE
from benchbench.site.panels import change_url
from tests.judging.test_pages import signed_in

FORM = {
    "name": "fruit",
    "order": "decisive",
    "uniform_share": "0.2",
    "overlap": "0",
    "overlap_judges": "2",
    "seed": "42",
}
URL = "/admin/judging/round/add/"


def stated(benchmark: Benchmark, **options: object) -> dict[str, object]:
    runs = [str(run.pk) for run in benchmark.runs.all()]
    return FORM | {"mapping": str(benchmark.mapping_id), "runs": runs, "blind": "on"} | options


def test_a_round_is_opened_with_what_is_stated(client: Client, benchmark: Benchmark, ada: User, grace: User) -> None:
    signed_in(client, ada)
    Group.objects.create(name="search").user_set.add(ada, grace)
    scale = "2 Yes: all of it\n0 No\n\n1 Partly"
    options = {"scale": scale, "judges": [ada.pk, grace.pk], "overlap": "0.5", "guidelines": "Read.", "depth": "3"}
    answer = client.post(URL, stated(benchmark, **options))
    opened = Round.objects.get()
    assert answer["Location"] == reverse("admin:judging_round_change", args=[opened.pk])
    assert (opened.name, opened.owner, opened.depth, opened.overlap, opened.blind) == ("fruit", ada, 3, 0.5, True)
    assert [entry["name"] for entry in opened.scale] == ["No", "Partly", "Yes"]
    assert opened.scale[2]["description"] == "all of it"
    assert set(opened.judges.all()) == {ada, grace}
    assert opened.runs.count() == 2


def test_the_preview_counts_what_there_is_to_judge_and_opens_nothing(
    client: Client, benchmark: Benchmark, ada: User
) -> None:
    signed_in(client, ada)
    url = reverse("admin:round_preview")
    told = client.post(url, stated(benchmark, name="")).content.decode()
    assert "<strong>10 pairs</strong>" in told
    assert "10 gradings at most, about 1 min 40 s at 10 s each" in told
    shared = client.post(url, stated(benchmark, overlap="1", judges=[ada.pk])).content.decode()
    assert "asks for 2 judges" in shared
    assert "Give" not in client.post(url, stated(benchmark, name="")).content.decode()
    assert not Round.objects.exists()


def test_what_is_wrong_stands_at_its_field(client: Client, benchmark: Benchmark, ada: User) -> None:
    signed_in(client, ada)
    for field, value, sentence in (
        ("scale", "yes", "begin with its digit"),
        ("scale", "1 Yes", "needs 0"),
        ("measure", "nDGC@10", "nDGC"),
        ("depth", "0", "choose one from 1"),
        ("runs", [], "required"),
    ):
        answer = client.post(URL, stated(benchmark, **{field: value}))
        assert sentence in str(answer.context["form"].errors[field]), field
    assert not Round.objects.exists()


def test_runs_that_the_address_names_are_filled_in(client: Client, benchmark: Benchmark, ada: User) -> None:
    signed_in(client, ada)
    first = benchmark.runs.order_by("run_order")[0]
    form = client.get(URL, {"run": str(first.pk)}).context["form"]
    assert form["runs"].value() == [str(first.pk)]
    assert form["uniform_share"].value() == SHARE, "as where nothing is stated"
    assert form["mapping"].value() == str(benchmark.mapping_id)
    form = client.get(URL, {"benchmark": str(benchmark.pk)}).context["form"]
    assert len(form["runs"].value()) == 2
    assert client.get(URL, {"run": "nonsense"}).status_code == 200
    choices = client.get(reverse("admin:round_choices"), {"mapping": str(benchmark.mapping_id)}).content.decode()
    assert first.label in choices


def test_pages_of_results_lead_to_it_with_their_runs(client: Client, benchmark: Benchmark, ada: User) -> None:
    signed_in(client, ada)
    first, second = benchmark.runs.order_by("run_order")
    pages = {
        reverse("admin:benchmarks_run_change", args=[first.pk]): f"{URL}?run={first.pk}",
        change_url(first.query_results.first()): f"{URL}?run={first.pk}",
        f"{reverse('admin:run_compare')}?run={first.pk}&run={second.pk}": f"{URL}?run={first.pk}&amp;run={second.pk}",
        reverse("admin:benchmark_results", args=[benchmark.pk]): f'formaction="{URL}"',
    }
    for page, link in pages.items():
        assert link in client.get(page).content.decode(), page
    ada.user_permissions.remove(Permission.objects.get(codename="add_round"))
    for page in pages:
        assert URL not in client.get(page).content.decode(), page


def test_judges_are_colleagues(client: Client, benchmark: Benchmark, ada: User, grace: User) -> None:
    """Nobody else's name is shown, and nobody else is named."""
    signed_in(client, ada)
    assert "grace" not in client.get(URL).content.decode()
    assert client.post(URL, stated(benchmark, judges=[grace.pk])).status_code == 200
    assert not Round.objects.exists()
    ada.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert "grace" in client.get(URL).content.decode()
    assert client.post(URL, stated(benchmark, judges=[grace.pk])).status_code == 302
