"""Handing out, grading, undoing, adjudicating."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models import Count
from django.utils import timezone

from apps.judging.grading import adjudicate, grade_item, load_grades, undo, ungrade
from apps.judging.handing import load_next_items
from apps.judging.judges import NotAJudgeError, RoundError, RoundStateError
from apps.judging.models import Grade, Round, Slot
from apps.judging.settling.consensus import compute_consensus, load_consensus
from tests.judging.rounds import give_back, names_of, open_for


def test_repeated_grades_are_stored_once_and_can_be_overwritten(round_of_ada, ada):
    (item,) = load_next_items(round_of_ada, ada)
    for _ in range(2):
        grade_item(round_of_ada, item.pk, ada, grade=2, note="Word for word.", seconds=3.5)
    grade_item(round_of_ada, item.pk, ada, grade=1)
    row = Grade.objects.get()
    assert (row.grade, row.note, row.judge, row.judge_name, row.source) == (1, "", ada, "ada", "human")
    assert Slot.objects.get(item=item).done


def test_grade_is_stored_after_the_lease_moved_on(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace])
    (item,) = load_next_items(opened, ada)
    give_back(opened, ada)
    assert load_next_items(opened, grace) == [item]
    grade_item(opened, item.pk, grace, grade=1)
    grade_item(opened, item.pk, ada, grade=1)
    assert load_consensus(opened)[item.pk].grade == 1
    assert Grade.objects.count() == 2


@pytest.mark.parametrize(
    ("declared", "field"),
    [
        ({"grade": 3}, "grade"),
        ({}, "grade"),
        ({"grade": 1, "kind": "skip"}, "grade"),
        ({"kind": "shrug"}, "kind"),
        ({"grade": 1, "note": "x" * 10_001}, "note"),
        ({"grade": 1, "seconds": -1.0}, "seconds"),
        ({"grade": 1, "seconds": float("nan")}, "seconds"),
    ],
)
def test_grades_off_the_scale_are_rejected(round_of_ada, ada, declared, field):
    (item,) = load_next_items(round_of_ada, ada)
    with pytest.raises(RoundError) as refused:
        grade_item(round_of_ada, item.pk, ada, **declared)
    assert refused.value.field == field
    assert not Grade.objects.exists()


def test_an_item_of_another_round_is_refused(benchmark, round_of_ada, ada, grace):
    (item,) = load_next_items(open_for(benchmark, [ada]), ada)
    with pytest.raises(RoundError, match=f"no item {item.pk}"):
        grade_item(round_of_ada, item.pk, ada, grade=1)
    with pytest.raises(NotAJudgeError):
        grade_item(item.round, item.pk, grace, grade=1)


def test_undo_removes_last_grades_and_returns_items_to_judge(round_of_ada, ada):
    items = load_next_items(round_of_ada, ada, count=4)
    for item in items:
        grade_item(round_of_ada, item.pk, ada, grade=1)
    assert undo(round_of_ada, ada, count=2) == [items[3].pk, items[2].pk]
    assert load_next_items(round_of_ada, ada, count=3)[:2] == items[2:]
    assert [row.item_id for row in load_grades(round_of_ada, ada)] == [items[1].pk, items[0].pk]
    with pytest.raises(RoundError, match="1 to 10"):
        undo(round_of_ada, ada, count=11)
    undo(round_of_ada, ada, count=10)
    with pytest.raises(RoundStateError, match="nothing to undo"):
        undo(round_of_ada, ada)


def test_bulk_withdrawal_returns_items_to_any_judge(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace])
    items = load_next_items(opened, ada, count=3)
    for item in items:
        grade_item(opened, item.pk, ada, grade=0)
    assert ungrade(opened, ada, [item.pk for item in items[:2]]) == 2
    assert ungrade(opened, grace, [items[2].pk]) == 0, "only one's own"
    assert load_next_items(opened, grace, count=2) == items[:2]


def test_agreed_grade_is_the_median_and_owner_decides_splits(benchmark, ada, grace):
    lead = User.objects.create_user("lead", is_staff=True)
    opened = open_for(benchmark, [ada, grace], owner=lead, overlap=1.0)
    first, second = load_next_items(opened, ada, count=2)
    load_next_items(opened, grace, count=2)
    for judge, grades in ((ada, (0, 2)), (grace, (2, 2))):
        for item, grade in zip((first, second), grades, strict=True):
            grade_item(opened, item.pk, judge, grade=grade)
    consensus = load_consensus(opened)
    assert (consensus[first.pk].grade, consensus[first.pk].split) == (None, True)
    assert (consensus[second.pk].grade, consensus[second.pk].split) == (2, False)
    with pytest.raises(NotAJudgeError, match="Only the owner"):
        adjudicate(opened, first.pk, ada, 1)
    with pytest.raises(RoundStateError, match="not split"):
        adjudicate(opened, second.pk, lead, 1)
    with pytest.raises(RoundError, match="must be one of 0, 1, 2"):
        adjudicate(opened, first.pk, lead, 7)
    for grade in (2, 1):
        adjudicate(opened, first.pk, lead, grade, note="It is another fruit.")
    assert (load_consensus(opened)[first.pk].grade, load_consensus(opened)[first.pk].split) == (1, False)
    assert list(load_grades(opened, lead)) == []


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ([2], (2, False)),
        ([0, 3, 1], (1, False)),
        ([1, 1, 3, 0], (1, False)),
        ([0, 2], (None, True)),
        ([0, 1, 2, 3], (None, True)),
    ],
)
def test_median_of_an_even_split_is_undefined(grades, expected):
    consensus = compute_consensus(1, [Grade(grade=grade) for grade in grades])
    assert (consensus.grade, consensus.split) == expected


def test_unjudgeable_item_is_done_without_a_grade(round_of_ada, ada):
    (item,) = load_next_items(round_of_ada, ada)
    grade_item(round_of_ada, item.pk, ada, kind="cannot_judge")
    assert load_consensus(round_of_ada) == {}
    assert load_next_items(round_of_ada, ada) != [item]
    assert Slot.objects.get(item=item).done


def test_next_items_follow_round_order_and_stay_leased(round_of_ada, ada):
    first = load_next_items(round_of_ada, ada, count=3)
    assert [item.place for item in first] == [1, 2, 3]
    assert load_next_items(round_of_ada, ada, count=3) == first, "asking again renews"
    grade_item(round_of_ada, first[0].pk, ada, grade=1)
    assert [item.place for item in load_next_items(round_of_ada, ada, count=3)] == [2, 3, 4]


def test_no_two_judges_get_one_item(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace])
    of_ada, of_grace = (set(names_of(load_next_items(opened, judge, count=5))) for judge in (ada, grace))
    assert len(of_ada | of_grace) == 10


def test_item_needing_two_judges_goes_to_two_different_judges(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], overlap=0.5)
    for judge in (ada, grace, ada, grace):
        for item in load_next_items(opened, judge, count=20):
            grade_item(opened, item.pk, judge, grade=0)
    supplied = opened.items.annotate(given=Count("grades")).values_list("given", "wanted")
    assert all(count == expected for count, expected in supplied)
    assert not Slot.objects.filter(round=opened, done=False).exists()


def test_single_judge_gets_a_double_item_once(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], overlap=1.0)
    places = [item.place for item in load_next_items(opened, ada, count=20)]
    assert places == list(range(1, 11))


def test_an_abandoned_item_returns(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace])
    next_items = load_next_items(opened, ada, count=10)
    assert load_next_items(opened, grace) == []
    Slot.objects.filter(item__in=next_items[:2]).update(until=timezone.now() - timedelta(seconds=1))
    assert load_next_items(opened, grace, count=5) == next_items[:2]
    give_back(opened, ada)
    assert len(load_next_items(opened, grace, count=20)) == 10


def test_skipped_item_goes_only_to_other_judges(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace])
    (item,) = load_next_items(opened, ada)
    grade_item(opened, item.pk, ada, kind="skip")
    assert item not in load_next_items(opened, ada, count=20)
    give_back(opened, ada)
    assert load_next_items(opened, grace) == [item]


def test_non_judges_and_closed_rounds_get_no_items(round_of_ada, ada, grace):
    with pytest.raises(NotAJudgeError, match="grace is not a judge"):
        load_next_items(round_of_ada, grace)
    with pytest.raises(RoundError, match="1 to 20 items"):
        load_next_items(round_of_ada, ada, count=21)
    round_of_ada.state = Round.State.CLOSED
    with pytest.raises(RoundStateError, match="is closed"):
        load_next_items(round_of_ada, ada)
