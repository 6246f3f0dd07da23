"""Pages of who leads a round, of the model that judges it, and of one’s own grades."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.judging.closing import close_round
from apps.judging.grading import grade_item
from apps.judging.handing import load_next_items
from apps.judging.judges import may_lead
from apps.judging.models import Grade, Round
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark
from apps.results.dashboard import list_tasks
from benchbench.site.panels import build_list_url, change_url
from tests.judging.rounds import make_judges, open_for, page, send, signed_in


@pytest.fixture
def split(benchmark: Benchmark, ada: User, grace: User) -> Round:
    """A round whose two judges graded all its items, the first of them differently; olga leads it."""
    (olga,) = make_judges("olga")
    opened = open_for(benchmark, [ada, grace], owner=olga, overlap=1.0, guidelines="**Read** it whole.")
    for judge in (ada, grace):
        items = load_next_items(opened, judge, count=20)
        for item in items:
            differs = judge == grace and item.place == 1
            grade_item(opened, item.pk, judge, grade=0 if differs else 2, note=f"by {judge}", seconds=4.0)
    return opened


@pytest.fixture
def client_of_olga(client: Client, split: Round) -> Client:
    assert split.owner
    return signed_in(client, split.owner)


def test_round_page_shows_progress_and_available_actions(client_of_olga, split):
    displayed = page(client_of_olga, "judging_round_change", split)
    assert "<strong>Read</strong> it whole." in displayed
    for name in ("round_adjudicate", "round_close"):
        assert reverse(f"admin:{name}", args=[split.pk]) in displayed
    assert reverse("admin:round_judge", args=[split.pk]) not in displayed, "olga is no judge"
    state = page(client_of_olga, "round_state_fragment", split)
    assert "20 of 20 gradings done. 1 item to adjudicate." in state
    assert "The judges are split on 1 item: decide" in state
    assert "kappa" in state
    assert "Differences between the runs" in state
    assert "the probability that judging all pairs gives this result." in state
    for explained in ("For all possible grades", "Settled"):
        assert f"<dt>{explained}</dt>" in state


def test_the_cells_of_a_confusion_matrix_open_their_pairs(client_of_olga, split):
    displayed = page(client_of_olga, "round_pairs", split, "?first=ada&second=grace&a=2&b=0")
    first = split.items.select_related("document").get(place=1)
    assert str(first.document) in displayed
    assert "by grace" in displayed
    every = page(client_of_olga, "round_pairs", split, "?first=ada&second=grace&a=2&b=2")
    assert every.count("by grace") == 9


def test_a_judge_of_a_blind_round_sees_progress_alone(client, split, ada):
    signed_in(client, ada)
    displayed = page(client, "judging_round_change", split)
    state = page(client, "round_state_fragment", split)
    run = split.runs.order_by("run_order")[0]
    for message in (displayed, state):
        assert "Differences between the runs" not in message
        assert run.label not in message
    assert "grace" not in state
    assert client.get(reverse("admin:round_pairs", args=[split.pk])).status_code == 403
    assert client.get(reverse("admin:round_adjudicate", args=[split.pk])).status_code == 302


def join(user: User, *groups: str) -> User:
    """Return the user, as a member of groups: roles with their permissions, and teams."""
    user.groups.set([Group.objects.get_or_create(name=name)[0] for name in groups])
    return User.objects.get(pk=user.pk)  # without cached permissions


def test_blind_rounds_stay_blind_in_their_team(client, split, roles):
    """Leading needs ownership, or the team and the right to change rounds; a judge of a blind one does not lead."""
    Round.objects.update(team=Group.objects.get_or_create(name="search")[0])
    run = split.runs.order_by("run_order")[0]
    make_judges("iris")
    people = {
        ("ada", "judge"): False,
        ("ada", "editor"): False,
        ("iris", "viewer"): False,
        ("iris", "judge"): False,
        ("iris", "editor"): True,
    }
    for (name, role), sees in people.items():
        user = join(User.objects.get(username=name), role, "search")
        assert may_lead(split, user) == sees, (name, role)
        client.force_login(user)
        assert (run.label in client.get(change_url(split)).text) == sees, (name, role)
        state = client.get(reverse("admin:round_state_fragment", args=[split.pk])).text
        assert ("Differences between" in state) == sees
        assert (client.get(reverse("admin:round_pairs", args=[split.pk])).status_code == 200) == sees
    assert may_lead(split, split.owner)
    split.judges.add(split.owner)
    assert may_lead(split, split.owner), "who opened it knows its runs"
    close_round(split, split.owner, leave_out_split=True)
    assert may_lead(Round.objects.get(), join(User.objects.get(username="ada"), "editor", "search"))


def test_judges_have_a_short_menu_and_tasks(client, split, benchmark, ada, roles):
    client.force_login(join(ada, "judge", "search"))
    Round.objects.update(team=Group.objects.get(name="search"))
    opened = open_for(benchmark, [ada], owner=split.owner, name="vegetables")

    def list_menu() -> list[str]:
        groups = client.get("/admin/").context["sidebar_navigation"]
        return [item["title"] for group in groups for item in group["items"]]

    assert list_menu() == ["Start", "Rounds", "My grades"]
    groups = client.get(reverse("admin:my_grades")).context["sidebar_navigation"]
    assert [item["title"] for group in groups for item in group["items"] if item["active"]] == ["My grades"]
    tasks = [(task.act, task.url) for task in list_tasks(User.objects.get(pk=ada.pk))]
    assert tasks == [("Judge", reverse("admin:round_judge", args=[opened.pk]))]
    displayed = " ".join(client.get(reverse("admin:my_grades")).text.split())
    for round, graded in ((split, 10), (opened, 0)):
        assert reverse("admin:round_grades", args=[round.pk]) in displayed
        assert f'<td class="bb-number">{graded}</td>' in displayed
    join(ada, "judge", "viewer")
    assert "Collections" in list_menu()
    join(ada, "viewer")
    assert client.get(reverse("admin:my_grades")).status_code == 403


def test_owner_adjudicates_split_items(client_of_olga, split):
    response = client_of_olga.get(reverse("admin:round_adjudicate", args=[split.pk]))
    (item,) = response.context["data"]["items"]
    assert "by ada" in item["html"]
    assert "by grace" in item["html"]
    url = reverse("admin:round_decide", args=[split.pk])
    messages = [{"key": "a", "item": item["id"], "kind": "grade", "grade": 1, "note": "Between."}]
    for _ in range(2):
        answer = client_of_olga.post(
            url, {"entries": messages, "present_ids": []}, content_type="application/json"
        ).json()
        assert (answer["refused"], answer["held"], answer["progress"]["done"]) == ([], [], 1)
    decided = Grade.objects.get(adjudicates=True)
    assert (decided.grade, decided.note, decided.judge_name) == (1, "Between.", "olga")


def test_adjudicator_can_withdraw_a_decision(client_of_olga, split):
    page_url, url = (reverse(f"admin:{name}", args=[split.pk]) for name in ("round_adjudicate", "round_decide"))
    (item,) = client_of_olga.get(page_url).context["data"]["items"]

    def speak(kind: str, **refusal: Any) -> Any:
        message = {"entries": [{"key": "a", "item": item["id"], "kind": kind, **refusal}], "present_ids": []}
        return client_of_olga.post(url, message, content_type="application/json").json()

    speak("grade", grade=1)
    assert client_of_olga.get(page_url).context["data"]["last"] == [{"id": item["id"], "label": "1 Partly relevant"}]
    for _ in range(2):
        answer = speak("undo")
        assert (answer["refused"], answer["held"]) == ([], [item["id"]]), "sent twice it is done once"
    assert not Grade.objects.filter(adjudicates=True).exists()
    (lin,) = make_judges("lin")
    speak("grade", grade=1)
    Grade.objects.filter(adjudicates=True).update(judge=lin, judge_name="lin")
    (refused,) = speak("undo")["refused"]
    assert "lin decided this item" in refused["sentence"]
    assert Grade.objects.filter(adjudicates=True).exists()


def test_refused_closing_explains_and_successful_closing_opens_leaderboard(client_of_olga, split):
    url = reverse("admin:round_close", args=[split.pk])
    assert "without searching again" in page(client_of_olga, "round_close", split)
    refused = client_of_olga.post(url, {})
    assert "1 item of the round wait for adjudication" in refused.content.decode()
    closed = client_of_olga.post(url, {"leave_out_split": "on"})
    benchmark = split.runs.first().benchmark
    assert closed["Location"] == reverse("admin:benchmark_results", args=[benchmark.pk]) + "?version=2"
    again = client_of_olga.get(url, follow=True)
    assert "is closed" in again.content.decode()


def test_closing_opens_existing_values_until_rescoring_is_done(client_of_olga, split, settings):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0  # left to the queue, and re-scoring to anyone who comes after
    url = reverse("admin:round_close", args=[split.pk])
    closed = client_of_olga.post(url, {"leave_out_split": "on"}, follow=True)
    assert closed.status_code == 200
    assert "re-score the benchmarks after that" in closed.content.decode()


def step_of(client: Client, opened: Round) -> str:
    """Return the sentence of the next step with the address of its button."""
    step = client.get(reverse("admin:round_state_fragment", args=[opened.pk])).context
    return " ".join([step["step"].sentence, *(button.href for button in step["step_buttons"])])


def test_each_state_of_a_round_names_its_next_step(client, round_of_ada, ada):
    round_of_ada.judges.add(*make_judges("grace"))
    second = Client()
    signed_in(second, round_of_ada.judges.get(username="grace"))
    for one in (signed_in(client, ada), second):
        assert step_of(one, round_of_ada).startswith("10 items wait for your grade. ")
    for item in load_next_items(round_of_ada, ada, count=10):
        grade_item(round_of_ada, item.pk, ada, kind=Grade.Kind.SKIP)
    assert "/people/" in step_of(client, round_of_ada)
    Round.objects.update(settled_at=round_of_ada.created_at)
    assert step_of(client, round_of_ada).startswith("The result is settled: close the round")
    assert "waits for its owner" in step_of(second, round_of_ada)
    close_round(round_of_ada, ada)
    assert step_of(client, round_of_ada).startswith("The round ended without grades")


def test_a_closed_round_leads_to_what_moved(client_of_olga, split, settings, grace):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    close_round(split, split.owner, leave_out_split=True)
    assert change_url(split.mapping) in step_of(client_of_olga, split)
    wait(Operation.objects.get())
    benchmark = split.runs.first().benchmark
    assert change_url(benchmark) in step_of(client_of_olga, split)
    rescore(benchmark, version=split.closed_version)
    assert step_of(client_of_olga, split).endswith(f"{benchmark.pk}/results/?version=2")
    Benchmark.objects.update(owner=split.owner)
    of_judge = signed_in(Client(), grace)
    assert of_judge.get(change_url(benchmark)).status_code == 404
    split.refresh_from_db()
    assert step_of(of_judge, split) == f"Its grades are in {split.closed_version}."


def test_second_grades_wait_for_another_judge(client, benchmark, ada):
    opened = open_for(benchmark, [ada, *make_judges("grace")], owner=ada, overlap=1.0)
    for item in load_next_items(opened, ada, count=20):
        grade_item(opened, item.pk, ada, grade=1)
    message = step_of(signed_in(client, ada), opened)
    assert message.startswith("10 gradings wait for other judges")
    grace = signed_in(Client(), opened.judges.get(username="grace"))
    hits = [one.get(f"{build_list_url(Round)}?waiting=me").context["cl"].result_count for one in (client, grace)]
    assert hits == [0, 1]


def test_owner_names_judges_and_guidelines_on_a_page(client_of_olga, split, ada):
    people = reverse("admin:round_people", args=[split.pk])
    page = client_of_olga.get(people).content.decode()
    assert "10 items need 2 judges each" in page
    assert "linus" not in page
    make_judges("linus")
    refused = client_of_olga.post(people, {"judges": [ada.pk], "guidelines": ""})
    assert "the round has 1 judge" in refused.content.decode()
    strange = client_of_olga.post(people, {"judges": [User.objects.get(username="linus").pk]})
    assert "not one of the available choices" in strange.content.decode()
    client_of_olga.post(people, {"judges": [judge.pk for judge in split.judges.all()], "guidelines": "Read *all*."})
    split.refresh_from_db()
    assert split.guidelines == "Read *all*."
    assert signed_in(Client(), ada).get(people).status_code == 302, "judges do not lead"


def test_the_state_of_a_round_takes_few_statements(client_of_olga, split):
    with CaptureQueriesContext(connection) as captured:
        page(client_of_olga, "round_state_fragment", split)
    assert len(captured) <= 25


def test_many_grades_are_taken_back_at_once(client, split, ada):
    signed_in(client, ada)
    url = reverse("admin:round_grades", args=[split.pk])
    response = client.get(url)
    assert response.content.decode().count('name="item"') == 10
    chosen = [row.item_id for row, _ in response.context["rows"][:3]]
    client.post(url, {"item": chosen})
    assert Grade.objects.filter(judge=ada).count() == 7
    client.post(f"{url}?said=2", {"all": "1"})
    assert Grade.objects.filter(judge=ada).count() == 0
    assert Grade.objects.count() == 10, "those of others stay"
    assert "You have not graded anything in this round yet." in client.get(url).content.decode()


def test_a_settled_round_goes_on_if_its_lead_wants(client_of_olga, split):
    Round.objects.update(settled_at=split.created_at)
    assert "Go on" in page(client_of_olga, "judging_round_change", split)
    sent = {"action": "go_on_selected", "_selected_action": str(split.pk), "next": change_url(split)}
    answer = client_of_olga.post(reverse("admin:judging_round_changelist"), sent, follow=True)
    assert "hands out further items" in answer.content.decode()
    split.refresh_from_db()
    assert split.offers_items


def test_closing_needs_the_right_to_change_datasets(client_of_olga, split):
    split.owner.user_permissions.remove(Permission.objects.get(codename="change_dataset"))
    url = reverse("admin:round_close", args=[split.pk])
    displayed = page(client_of_olga, "judging_round_change", split)
    assert url not in displayed
    assert "you may not change datasets: ask" in displayed
    assert client_of_olga.post(url, {"leave_out_split": "on"}).status_code == 403
    refused = client_of_olga.post(f"/api/v2/judging-rounds/{split.pk}/close", {}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_a_judge")
    split.refresh_from_db()
    assert split.is_open
    assert split.mapping.dataset.versions.count() == 1


def test_plain_judge_cannot_close_a_round(client, split, ada):
    signed_in(client, ada)
    answer = client.post(reverse("admin:round_close", args=[split.pk]), {}, follow=True)
    assert "Only the owner" in answer.content.decode()
    split.refresh_from_db()
    assert split.is_open
    assert send(client, split).status_code == 200
