"""Schedules in the admin: made from a benchmark's page, changed, run at once, and their turns on the start page."""

from datetime import UTC, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse, reverse_lazy
from django.utils import timezone

from apps.mappings.models import Mapping
from apps.records.models import Benchmark, Notice, Repeat, Schedule
from apps.verdicts.gates.common import CommonRules, read_common
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.schedules.repeats import end_repeat
from apps.verdicts.schedules.starting import SKIPPED, start_due
from apps.verdicts.schedules.times import list_next_times
from benchbench.site.panels import build_list_url, change_url
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.created import create_benchmark
from tests.factories import make_schedule
from tests.library import make_library
from tests.staff import MakeStaff

ADD = "/admin/benchmarks/schedule/add/"


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    hits = search(make_gated(), GOOD, POOR)
    pinned(hits.runs.get(run_order=1))
    return hits


def schedule_fields(benchmark: Any, **values: Any) -> dict[str, Any]:
    return {"name": "nightly", "benchmark": benchmark, "cron": "0 3 * * *", "enabled": "on", **values}


def test_list_shows_hour_and_zone_of_next_run(admin_client: Client, benchmark: Benchmark) -> None:
    make_schedule(benchmark, next_run=timezone.now() + timedelta(days=2))
    due = timezone.localtime(Schedule.objects.get().next_run)
    assert f"{due:%Y-%m-%d %H:%M %Z}" in admin_client.get(build_list_url(Schedule)).text


def test_button_of_a_benchmark_leads_to_its_schedule(admin_client: Client, benchmark: Benchmark) -> None:
    page = admin_client.get(change_url(benchmark)).content.decode()
    form = f"{ADD}?benchmark={benchmark.pk}&amp;name=nightly"
    assert form in page
    text = admin_client.get(form.replace("&amp;", "&")).content.decode()
    assert '<option value="main">main</option>' in text
    rules = "against_baseline: {mrr: {may_lose: 0.01}}"
    values = schedule_fields(benchmark.pk, rules=rules, baseline="main", newest_indexes="on")
    assert admin_client.post(ADD, values).status_code == 302
    schedule = Schedule.objects.get()
    assert schedule.owner == User.objects.get(username="admin")
    assert schedule.next_run
    assert schedule.next_run > timezone.now()
    assert admin_client.post(change_url(schedule), values | {"enabled": "", "rules": ""}).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.enabled, schedule.next_run, schedule.rules) == (False, None, "")


def test_usual_times_and_limits_need_no_syntax(admin_client: Client, benchmark: Benchmark) -> None:
    limits = {"measure": "nDCG@10", "may_lose": "0.01", "statistic": "p95", "latency_ms": "300"}
    values = schedule_fields(benchmark.pk, cron="", when="0 3 * * 1-5", baseline="main", **limits)
    assert admin_client.post(ADD, values).status_code == 302
    schedule = Schedule.objects.get()
    assert schedule.cron == "0 3 * * 1-5"
    assert read_rules(schedule.rules, location="") == read_rules(
        "against_baseline: {nDCG@10: {may_lose: 0.01}}\nlatency_ms: {p95: 300}", location=""
    )
    page = admin_client.get(change_url(schedule)).text
    times = list_next_times(schedule.cron, timezone.now(), 3)
    assert ", ".join(f"{timezone.localtime(time):%a %d %b %Y, 03:00 %Z}" for time in times) in page
    assert '<option value="0 3 * * 1-5" selected>' in page
    form = admin_client.get(change_url(schedule)).context["adminform"].form
    assert {name: form[name].value() for name in (*limits, "rules")} == {
        **{"measure": "nDCG@10", "may_lose": 0.01, "statistic": "p95", "latency_ms": 300, "rules": ""}
    }
    assert admin_client.post(change_url(schedule), values).status_code == 302
    assert read_common(Schedule.objects.get().rules) == CommonRules(
        measure="nDCG@10", may_lose=0.01, statistic="p95", latency_ms=300
    )
    due = schedule.next_run
    both = values | {"when": "", "cron": "0 4 * * *", "rules": schedule.rules}
    assert (
        "Written rules replace the limits, which would not count" in admin_client.post(change_url(schedule), both).text
    )
    assert admin_client.post(change_url(schedule), both | dict.fromkeys(limits, "")).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.cron, schedule.next_run != due) == ("0 4 * * *", True)
    both = schedule_fields(benchmark.pk, name="both", cron="0 5 * * *", when="0 3 * * 1")
    assert "You chose “every Monday, 03:00” too" in admin_client.post(ADD, both).content.decode()
    refused = admin_client.post(ADD, schedule_fields(benchmark.pk, cron="", when=""))
    assert "Write a cron expression, or choose a time." in refused.text


def test_next_times_are_those_at_which_it_starts(admin_client: Client, benchmark: Benchmark, settings: Any) -> None:
    """Also a missed one, and one that was set before the site moved to another zone."""
    schedule = make_schedule(benchmark, cron="0 3 * * *")
    settings.TIME_ZONE = "Asia/Tokyo"
    timezone.get_default_timezone.cache_clear()
    tomorrow = (timezone.now() + timedelta(days=1)).astimezone(UTC).replace(hour=3, minute=0, second=0, microsecond=0)
    for due in (tomorrow, tomorrow - timedelta(days=9)):
        Schedule.objects.update(next_run=due)
        page = admin_client.get(change_url(schedule)).text
        following = list_next_times(schedule.cron, max(due, timezone.now()), 2)
        displayed = [f"{timezone.localtime(time):%a %d %b %Y, 03:00 %Z}" for time in following]
        assert ", ".join([f"{timezone.localtime(due):%a %d %b %Y, 12:00 %Z}", *displayed]) in page


@pytest.mark.parametrize(
    "rules",
    [
        "coverage: {judged@10: 0.8}",
        "floors: {nDCG@10: 0.5, mrr: 0.6}",
        "floors: {nDCG@10: {at_least: 0.5, mean: weighted}}",
        "floors: {nDCG@10: 0.5}  # agreed in May",
        "floors: {P@3: 0.5}",
    ],
)
def test_rules_beyond_the_limits_stay_a_text(admin_client: Client, benchmark: Benchmark, rules: str) -> None:
    schedule = make_schedule(benchmark, rules=rules)
    form = admin_client.get(change_url(schedule)).context["adminform"].form
    assert (form["rules"].value(), form["at_least"].value()) == (rules, None)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"cron": "at night"}, "is not a cron expression that comes due"),
        ({"rules": "floors: 3"}, "The rules, floors"),
        ({"baseline": "none such"}, "has no current baseline"),
        ({"notify": "none such"}, "which needs rules: write rules"),
        ({"benchmark": "x"}, "is not a valid UUID"),
    ],
)
def test_errors_are_shown_at_their_fields(
    admin_client: Client, benchmark: Benchmark, values: dict[str, str], sentence: str
) -> None:
    answer = admin_client.post(ADD, schedule_fields(benchmark.pk) | values)
    assert sentence in answer.content.decode()
    assert list(answer.context["adminform"].form.errors) == list(values)
    assert not Schedule.objects.exists()


def test_hidden_benchmark_or_baseline_cannot_be_chosen(
    client: Client, make_staff: MakeStaff, benchmark: Benchmark
) -> None:
    Benchmark.objects.update(owner=User.objects.create_user("grace"))
    client.force_login(make_staff("bea"))
    assert 'value="main"' not in client.get(f"{ADD}?benchmark={benchmark.pk}").content.decode()
    assert client.post(ADD, schedule_fields(benchmark.pk)).status_code == 200
    assert not Schedule.objects.exists()


def test_run_now_starts_a_benchmark_of_the_owner(admin_client: Client, transactional_db: None) -> None:
    mapping: Mapping = make_library()
    schedule = make_schedule(create_benchmark(mapping, name="words", matrix={"search_modes": ["sparse"]}))
    chosen = {"action": "run_selected", "_selected_action": [str(schedule.pk)], "next": change_url(schedule)}
    url = reverse("admin:benchmarks_schedule_changelist")
    assert "Started “nightly, " in admin_client.post(url, chosen, follow=True).content.decode()
    assert "is still running" in admin_client.post(url, chosen, follow=True).content.decode()
    page = admin_client.get(change_url(schedule)).content.decode()
    assert "No index was ready." in page, "of an earlier time"


def test_turn_is_shown_on_start_and_on_the_schedule(admin_client: Client, benchmark: Benchmark) -> None:
    schedule = make_schedule(benchmark, repeats=0, rules="floors: {mrr: 0.6}", notify="team")
    start, sentence = reverse("admin:index"), "The gate of the schedule “nightly” turned {}"
    for ranks, state in ((GOOD, ""), (POOR, "red"), (POOR, "red"), (GOOD, "green"), (GOOD, "")):
        night = search(benchmark.mapping, ranks, completed_at=timezone.now())
        end_repeat(str(Repeat.objects.create(schedule=schedule, due_at=timezone.now(), benchmark=night).pk))
        page = admin_client.get(start).content.decode()
        assert page.count("The gate of the schedule") == bool(state)
        assert not state or sentence.format(state) in page
        assert "The gate on" not in page, "the schedule tells it"
    Notice.objects.update(error="The receiver team refused the connection.")
    page = admin_client.get(change_url(schedule)).content.decode()
    assert page.count("turned red") == page.count("turned green") == 1
    assert "waits for team (The receiver team refused the connection.)" in page


def test_schedule_that_cannot_start_is_a_task(admin_client: Client, benchmark: Benchmark) -> None:
    owner = User.objects.create_user("bea", is_staff=True, is_superuser=True)
    schedule = make_schedule(benchmark, repeats=0, owner=owner, next_run=timezone.now())
    User.objects.filter(username="bea").update(is_superuser=False)  # the right is gone
    start, sentence = reverse("admin:index"), "The schedule “nightly” did not start. Its owner bea is inactive or may"
    assert sentence not in admin_client.get(start).text
    assert start_due(str(schedule.pk))
    Repeat.objects.create(schedule=schedule, due_at=timezone.now(), problem=f"{SKIPPED} because it runs.")
    assert admin_client.get(start).text.count(sentence) == 1
    values = schedule_fields(benchmark.pk, owner=owner.pk)
    refused = admin_client.post(change_url(schedule), values)
    assert "give the schedule to a user who may add and change benchmarks" in refused.text
    assert admin_client.post(change_url(schedule), values | {"enabled": ""}).status_code == 302
    assert sentence not in admin_client.get(start).text
    renewed = values | {"owner": User.objects.get(username="admin").pk}
    assert admin_client.post(change_url(schedule), renewed).status_code == 302
    assert start_due(str(schedule.pk)) is None, "its time is to come"
    Repeat.objects.create(schedule=schedule, due_at=timezone.now(), benchmark=benchmark)
    assert sentence not in admin_client.get(start).text


def test_deleting_a_benchmark_does_not_name_hidden_schedules(
    client: Client, make_staff: MakeStaff, benchmark: Benchmark
) -> None:
    make_schedule(benchmark, name="not to be told", owner=User.objects.create_user("grace"))
    benchmark.runs.get(run_order=1).baselines.all().delete()
    client.force_login(make_staff("bea"))
    page = client.post(f"/admin/benchmarks/benchmark/{benchmark.pk}/delete/", {"post": "yes"}, follow=True)
    assert "it is used by one schedule of another owner" in page.content.decode()
    assert "not to be told" not in page.content.decode()


def test_history_outlives_the_benchmark_that_it_tells(admin_client: Client, benchmark: Benchmark) -> None:
    schedule = make_schedule(benchmark, repeats=0)
    night = search(benchmark.mapping, POOR, completed_at=timezone.now())
    Repeat.objects.create(schedule=schedule, due_at=timezone.now(), benchmark=night, result="It was worse.")
    assert admin_client.post(f"/admin/benchmarks/benchmark/{night.pk}/delete/", {"post": "yes"}).status_code == 302
    page = admin_client.get(change_url(schedule)).content.decode()
    assert "It was worse." in page
    assert "deleted" in page


class TestNextTimes:
    """The note below the choice of a time, before the schedule is stored."""

    ASK = reverse_lazy("admin:schedule_times")

    def ask(self, client: Client, **chosen: str) -> str:
        return client.get(self.ASK, chosen).text

    def test_forms_ask_for_them_as_times_are_chosen(self, admin_client: Client, benchmark: Benchmark) -> None:
        make_schedule(benchmark)
        stored = Schedule.objects.get()
        for page, address in ((ADD, str(self.ASK)), (change_url(stored), f"{self.ASK}?schedule={stored.pk}")):
            text = admin_client.get(page).text
            assert f'hx-get="{address}"' in text
            assert 'hx-trigger="load, input delay:400ms from:#id_when, input delay:400ms from:#id_cron"' in text

    @pytest.mark.parametrize(
        ("chosen", "cron"),
        [
            ({"when": "0 3 * * 1-5", "cron": ""}, "0 3 * * 1-5"),
            ({"when": "", "cron": "30 4 1 * *"}, "30 4 1 * *"),
            ({"when": "0 3 * * *", "cron": "30 4 1 * *"}, "30 4 1 * *"),
        ],
    )
    def test_next_three_are_shown_with_their_zone(self, admin_client: Client, chosen: Any, cron: str) -> None:
        times = [timezone.localtime(time) for time in list_next_times(cron, timezone.now(), 3)]
        expected = ", ".join(f"{time:%a %d %b %Y, %H:%M %Z}" for time in times)
        assert self.ask(admin_client, **chosen) == f"<p>Next: {expected}.</p>"

    def test_unclear_choices_are_named(self, admin_client: Client, benchmark: Benchmark) -> None:
        assert "is not a cron expression that comes due" in self.ask(admin_client, when="", cron="soon")
        assert "Write a cron expression" in self.ask(admin_client, when="", cron="")
        assert "You chose “every Monday, 03:00” too" in self.ask(admin_client, when="0 3 * * 1", cron="1 1 * * *")
        make_schedule(benchmark, cron="0 3 * * *")
        stored = str(Schedule.objects.get().pk)
        assert ", 03:00 " in self.ask(admin_client, when="0 3 * * 1", cron="0 3 * * *", schedule=stored)

    def test_they_are_only_for_editors_of_schedules(self, client: Client, make_staff: MakeStaff) -> None:
        client.force_login(make_staff("viewer", may=("view",)))
        assert client.get(self.ASK, {"when": "0 3 * * *"}).status_code == 403
