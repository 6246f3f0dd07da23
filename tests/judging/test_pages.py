"""Pages of judging: what they show, what they take, and what they never report."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.judging.grading import grade_item
from apps.judging.handing import load_next_items
from apps.judging.models import Grade, Round
from tests.judging.rounds import make_judges, open_for, send, signed_in


@pytest.fixture
def client_of_ada(client: Client, ada: User) -> Client:
    return signed_in(client, ada)


def data_of(client: Client, round: Round) -> dict[str, Any]:
    answer = client.get(reverse("admin:round_judge", args=[round.pk]))
    assert answer.status_code == 200
    return answer.context["data"]


def test_page_contains_the_first_items_and_leases(client_of_ada, round_of_ada):
    data = data_of(client_of_ada, round_of_ada)
    first = data["items"][0]
    assert data["held"] == [item["id"] for item in data["items"]]
    assert "are fruit." in first["html"]
    assert first["spoken"].endswith(round_of_ada.items.get(pk=first["id"]).query.text)


def test_grades_are_stored_and_the_next_items_returned(client_of_ada, round_of_ada):
    first, second, *remaining = data_of(client_of_ada, round_of_ada)["held"]
    messages = [
        {"item": first, "kind": "grade", "grade": 2, "note": "Yes.", "seconds": 3.5},
        {"item": second, "kind": "skip"},
    ]
    answer = send(client_of_ada, round_of_ada, *messages, have=tuple(remaining)).json()
    assert answer["refused"] == []
    assert first not in answer["held"]
    assert second not in answer["held"]
    assert {item["id"] for item in answer["items"]}.isdisjoint(remaining)
    assert answer["progress"]["mine"] == 1
    row = Grade.objects.get(item=first)
    assert (row.grade, row.note, row.seconds, row.judge_name) == (2, "Yes.", 3.5, "ada")


def test_repeated_messages_count_once_and_undo_leases_item_again(client_of_ada, round_of_ada):
    first = data_of(client_of_ada, round_of_ada)["held"][0]
    messages = [{"item": first, "kind": "grade", "grade": 1}, {"item": first, "kind": "undo"}]
    for _ in range(2):
        answer = send(client_of_ada, round_of_ada, *messages).json()
        assert answer["refused"] == []
        assert answer["held"][0] == first
        assert not Grade.objects.exists()
    send(client_of_ada, round_of_ada, *messages[:1])
    send(client_of_ada, round_of_ada, *messages[:1])
    assert Grade.objects.get().grade == 1


def test_invalid_grades_are_reported_and_others_are_stored(client_of_ada, round_of_ada):
    first, second, *_ = data_of(client_of_ada, round_of_ada)["held"]
    messages = [{"item": first, "kind": "grade", "grade": 9}, {"item": second, "kind": "grade", "grade": 1}]
    answer = send(client_of_ada, round_of_ada, *messages).json()
    assert [entry["key"] for entry in answer["refused"]] == ["0"]
    assert "not 9" in answer["refused"][0]["sentence"]
    assert Grade.objects.get().item_id == second


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"entries": [1], "present_ids": []}', '{"entries": [], "present_ids": ["x"]}', "{}"]
)
def test_a_message_of_another_form_changes_nothing(client_of_ada, round_of_ada, body):
    url = reverse("admin:round_exchange", args=[round_of_ada.pk])
    answer = client_of_ada.post(url, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["sentence"]


def test_an_exchange_takes_twelve_statements_however_many_judge(client_of_ada, benchmark, ada, quick):
    remaining = make_judges(*(f"judge{number}" for number in range(6)))
    opened = open_for(benchmark, [ada, *remaining], order="decisive", measure="nDCG@3", depth=4, overlap=1.0)
    for judge in remaining[:2]:
        for item in load_next_items(opened, judge):
            grade_item(opened, item.pk, judge, grade=1, seconds=2.0)
    item, *have = data_of(client_of_ada, opened)["held"]
    with CaptureQueriesContext(connection) as captured:
        messages = {"item": item, "kind": "grade", "grade": 1, "seconds": 3.0}
        assert send(client_of_ada, opened, messages, have=tuple(have)).json()["progress"]["mine"] == 1
    ours = [row["sql"] for row in captured if "SAVEPOINT" not in row["sql"]]
    assert len(ours) == 12, [sql[:60] for sql in ours]


def test_page_reveals_neither_runs_nor_other_judges(client, benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], overlap=1.0)
    for label, run in zip(("zebra-run", "yak-run"), benchmark.runs.order_by("run_order"), strict=True):
        run.config = {**run.config, "label": label}
        run.save()
    of_grace = signed_in(Client(), grace)
    for item in data_of(of_grace, opened)["held"]:
        send(of_grace, opened, {"item": item, "kind": "grade", "grade": 1, "note": "grace was here"})
    signed_in(client, ada)
    page = client.get(reverse("admin:round_judge", args=[opened.pk])).content.decode()
    answer = send(client, opened).json()
    outcome = json.dumps(answer) + page
    for word in ("grace", "rank", "score", "zebra", "yak", *(str(run.pk) for run in benchmark.runs.all())):
        assert word not in outcome.replace("mark.js", "")
    assert all(set(item) == {"id", "html", "spoken"} for item in answer["items"])


def test_non_judge_is_redirected_and_cannot_grade(client, benchmark, ada):
    (owner,) = make_judges("olga")
    opened = open_for(benchmark, [ada], owner=owner)
    signed_in(client, owner)
    answer = client.get(reverse("admin:round_judge", args=[opened.pk]), follow=True)
    assert "You are not a judge" in answer.content.decode()
    refused = send(client, opened, {"item": opened.items.order_by("place")[0].pk, "kind": "grade", "grade": 1})
    assert refused.status_code == 409
    assert not Grade.objects.exists()


def test_guidelines_are_markdown_and_run_nothing(client_of_ada, round_of_ada):
    words = "**Read** <script>alert(1)</script> [a](javascript:alert(1)) ![x](https://elsewhere.example/x.png)"
    Round.objects.update(guidelines=words)
    page = client_of_ada.get(reverse("admin:round_judge", args=[round_of_ada.pk])).content.decode()
    assert "<strong>Read</strong> &lt;script&gt;" in page
    assert 'href="javascript' not in page
    assert "<img" not in page
