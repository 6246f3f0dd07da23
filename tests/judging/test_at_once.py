"""Judges, and the owner who closes the round, at the same moment: what was acknowledged counts, nothing else does."""

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import Client
from django.urls import reverse

from apps.judging.closing import close_round
from apps.judging.grading import adjudicate, grade_item, undo, ungrade, withdraw_adjudication
from apps.judging.handing import hand_out, load_next_items
from apps.judging.judges import RoundStateError
from apps.judging.llm.launching import start_judging
from apps.judging.models import Grade, Round, RoundItem, Slot
from apps.judging.settling.deciding import renew
from apps.operations.working import OperationFailedError, wait
from tests.api.callers import ROOT, Caller
from tests.at_once import at_once
from tests.judging.rounds import make_orchard, open_for
from tests.sessions import elsewhere, until_waited_for
from tests.waiting import until

FORK = multiprocessing.get_context("fork")
SECONDS = 60


def loaded(opened: Round) -> Round:
    return Round.objects.get(pk=opened.pk)


ACTS: dict[str, Callable[[Round, int, User], object]] = {
    "grade": lambda opened, item, judge: grade_item(opened, item, judge, grade=2),
    "undo": lambda opened, item, judge: undo(opened, judge),
    "ungrade": lambda opened, item, judge: ungrade(opened, judge, [item]),
    "adjudicate": lambda opened, item, judge: adjudicate(opened, item, judge, 2),
    "withdraw": lambda opened, item, judge: withdraw_adjudication(opened, item, judge),
}


@pytest.mark.parametrize("act", ACTS)
def test_round_closed_after_loading_accepts_no_changes(benchmark, ada, grace, act):
    opened = open_for(benchmark, [ada, grace], owner=ada, overlap=1.0, depth=2)
    item = load_next_items(opened, ada)[0].pk
    for judge, grade in ((ada, 0), (grace, 2)):
        grade_item(opened, item, judge, grade=grade)
    if act == "withdraw":
        adjudicate(opened, item, ada, 2)
    before = set(Grade.objects.values_list("judge", "grade", "adjudicates"))
    as_before = loaded(opened)
    close_round(opened, ada, leave_out_split=True)
    with pytest.raises(RoundStateError, match="is closed"):
        ACTS[act](as_before, item, ada)
    assert set(Grade.objects.values_list("judge", "grade", "adjudicates")) == before


def test_a_round_that_was_deleted_says_so(round_of_ada, ada):
    (item,) = load_next_items(round_of_ada, ada)
    Round.objects.filter(pk=round_of_ada.pk).delete()
    with pytest.raises(RoundStateError, match="was deleted"):
        grade_item(round_of_ada, item.pk, ada, grade=1)


@pytest.mark.django_db(transaction=True)
def test_model_stores_nothing_in_a_round_closed_meanwhile(benchmark, ada, server):
    opened = open_for(benchmark, [ada], owner=ada)

    def answer(prompt: str) -> str:
        if loaded(opened).is_open:
            elsewhere(lambda: close_round(opened, ada)).result(SECONDS)
        connection.close()
        return "1"

    server.answer = answer
    _, operation = start_judging(opened, "ollama:llama3", ada)
    with pytest.raises(OperationFailedError, match="is closed"):
        wait(operation)
    assert not Grade.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_closing_waits_for_a_grade_and_has_it(benchmark, ada):
    opened = open_for(benchmark, [ada], owner=ada)
    (item,) = load_next_items(opened, ada)
    with transaction.atomic():
        grade_item(opened, item.pk, ada, grade=2)
        closing = elsewhere(lambda: close_round(loaded(opened), ada))
        until_waited_for(closing)
    assert closing.result(SECONDS).judgments == 1


@pytest.mark.django_db(transaction=True)
def test_a_grade_waits_for_closing_and_is_refused(benchmark, ada):
    opened = open_for(benchmark, [ada], owner=ada)
    first, second = load_next_items(opened, ada, count=2)
    grade_item(opened, first.pk, ada, grade=2)
    as_before = loaded(opened)
    with transaction.atomic():
        closed = close_round(opened, ada)
        grading = elsewhere(lambda: grade_item(as_before, second.pk, ada, grade=2))
        until_waited_for(grading)
    with pytest.raises(RoundStateError, match="is closed: its grades are in questions v2"):
        grading.result(SECONDS)
    assert (closed.judgments, Grade.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_concurrent_judges_and_state_renewal_do_not_block(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], owner=ada, order="decisive", measure="nDCG@3", depth=4, budget=3)
    of_ada, of_grace = load_next_items(opened, ada)[0], load_next_items(opened, grace)[0]
    with transaction.atomic():
        grade_item(opened, of_ada.pk, ada, grade=2)
        elsewhere(lambda: grade_item(loaded(opened), of_grace.pk, grace, grade=2)).result(SECONDS)
        elsewhere(lambda: renew(loaded(opened))).result(SECONDS)
        elsewhere(lambda: Round.objects.filter(pk=opened.pk).update(settled_at=None)).result(SECONDS)  # as renewing
        assert len(elsewhere(lambda: load_next_items(loaded(opened), grace)).result(SECONDS)) == 1
    with transaction.atomic():
        undo(opened, ada)
        elsewhere(lambda: undo(loaded(opened), grace)).result(SECONDS)


@pytest.mark.django_db(transaction=True)
def test_two_judges_send_the_same_items_in_different_orders(benchmark):
    judges = [User.objects.create_superuser(name) for name in ("ada", "grace")]
    opened = open_for(benchmark, judges, owner=judges[0], overlap=1.0)
    items = list(opened.items.values_list("pk", flat=True))
    path = f"/judging-rounds/{opened.pk}/grades"
    callers = [Caller(judge) for judge in judges]

    def send(order: int) -> list[int]:
        rows = [{"item_id": item, "grade": 1} for item in (items[::-1] if order else items)]
        return [callers[order].post(path, {"grades": rows}).status_code for _ in range(10)]

    assert at_once(2, send) == [[200] * 10, [200] * 10]


def by_page(opened: Round, item: int, client: Client) -> bool:
    """Grade an item as the page does; return whether the server kept it."""
    messages = [{"key": "1", "item": item, "kind": "grade", "grade": 1}]
    url = reverse("admin:round_exchange", args=[opened.pk])
    answer = client.post(
        url, json.dumps({"entries": messages, "present_ids": [], "count": 1}), content_type="application/json"
    )
    return answer.status_code == 200 and not answer.json()["refused"]


def by_api(opened: Round, item: int, client: Client) -> bool:
    """Grade an item as a program does; return whether the server kept it."""
    path = f"{ROOT}/judging-rounds/{opened.pk}/grades"
    body = json.dumps({"grades": [{"item_id": item, "grade": 1}]})
    return bool(client.post(path, body, content_type="application/json").status_code == 200)


def grade_until_closed(opened: Round, keep: Callable[[int], bool], path: Path) -> None:
    """Grade every item until one is refused, and note each that the server acknowledged."""
    with path.open("w") as file:
        for item in opened.items.values_list("pk", flat=True):
            if not keep(item):
                return
            print(item, file=file, flush=True)


@pytest.mark.django_db(transaction=True)
def test_acknowledged_grades_of_three_processes_reach_the_version(tmp_path):
    judges = [User.objects.create_superuser(name) for name in ("ada", "grace", "mary")]
    opened = open_for(make_orchard(), judges, owner=judges[0], overlap=1.0, overlap_judges=3)
    page = Client()
    page.force_login(judges[0])
    api = [Caller(judge).client for judge in judges[1:]]
    keeping: list[Callable[[int], bool]] = [
        lambda item: by_page(opened, item, page),
        lambda item: by_api(opened, item, api[0]),
        lambda item: by_api(opened, item, api[1]),
    ]
    connections.close_all()  # a connection crosses no fork
    paths = [tmp_path / judge.username for judge in judges]
    processes = [
        FORK.Process(target=grade_until_closed, args=(opened, keep, path), daemon=True)
        for keep, path in zip(keeping, paths, strict=True)
    ]
    for process in processes:
        process.start()
    until(lambda: Grade.objects.count() >= 30 or not any(process.is_alive() for process in processes))
    closed = close_round(loaded(opened), judges[0])
    for process in processes:
        process.join(SECONDS)
        assert process.exitcode == 0
    acknowledged = {(path.name, int(line)) for path in paths for line in path.read_text().split()}
    judged = closed.version.judgments.filter(since=2).values_list("query__key", "doc_ref__document_id", "judge")
    declared = {(query, document): set(names.split(", ")) for query, document, names in judged}
    items = {
        item.pk: (item.query.key, item.document.external_id)
        for item in RoundItem.objects.filter(round=opened).select_related("query", "document")
    }
    assert {(name, items[item]) for name, item in acknowledged} == {
        (name, pair) for pair, names in declared.items() for name in names
    }
    assert 30 <= Grade.objects.count() == len(acknowledged), "most often fewer than three for each pair"


@pytest.mark.django_db(transaction=True)
def test_concurrent_judges_never_exceed_the_budget():
    judges = [User.objects.create_superuser(f"judge {number}") for number in range(6)]
    orchard = make_orchard()
    for budget in (1, 5, 7):
        opened = open_for(orchard, judges, owner=judges[0], order="decisive", measure="nDCG@10", budget=budget)
        claimed = at_once(6, lambda order, opened=opened: hand_out(loaded(opened), judges[order], count=3))  # type: ignore[misc]
        assert sum(map(len, claimed)) == budget
        assert Slot.objects.filter(round=opened, until__isnull=False).count() == budget


@pytest.mark.django_db(transaction=True)
def test_items_taken_by_concurrent_judges_count_against_the_budget(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], owner=ada, order="decisive", measure="nDCG@3", depth=4, budget=3)
    with transaction.atomic():
        assert len(hand_out(opened, ada, count=2)) == 2
        asking = elsewhere(lambda: hand_out(loaded(opened), grace, count=3))
        until_waited_for(asking)
    assert len(asking.result(SECONDS)) == 1
