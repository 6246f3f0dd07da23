"""Handing out: who gets which item, and when it comes back."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models import Count
from django.utils import timezone

from apps.benchmarks.models import Benchmark
from apps.judging.grading import grade_item
from apps.judging.handing import next_items
from apps.judging.judges import NotAJudgeError, RoundError, RoundStateError
from apps.judging.models import Round, Slot
from tests.judging.rounds import give_back, names_of, open_for


def test_the_next_ones_come_in_the_order_of_the_round_and_stay_the_judges(round_of_ada: Round, ada: User) -> None:
    first = next_items(round_of_ada, ada, count=3)
    assert [item.place for item in first] == [1, 2, 3]
    assert next_items(round_of_ada, ada, count=3) == first, "asking again renews"
    grade_item(round_of_ada, first[0].pk, ada, grade=1)
    assert [item.place for item in next_items(round_of_ada, ada, count=3)] == [2, 3, 4]


def test_no_two_judges_get_one_item(benchmark: Benchmark, ada: User, grace: User) -> None:
    opened = open_for(benchmark, [ada, grace])
    of_ada, of_grace = (set(names_of(next_items(opened, judge, count=5))) for judge in (ada, grace))
    assert len(of_ada | of_grace) == 10


def test_an_item_that_wants_two_judges_goes_to_two_and_to_none_twice(
    benchmark: Benchmark, ada: User, grace: User
) -> None:
    opened = open_for(benchmark, [ada, grace], overlap=0.5)
    for judge in (ada, grace, ada, grace):
        for item in next_items(opened, judge, count=20):
            grade_item(opened, item.pk, judge, grade=0)
    given = opened.items.annotate(given=Count("grades")).values_list("given", "wanted")
    assert all(count == wanted for count, wanted in given)
    assert not Slot.objects.filter(round=opened, done=False).exists()


def test_one_judge_alone_gets_an_item_that_wants_two_once(benchmark: Benchmark, ada: User, grace: User) -> None:
    opened = open_for(benchmark, [ada, grace], overlap=1.0)
    places = [item.place for item in next_items(opened, ada, count=20)]
    assert places == list(range(1, 11))


def test_an_abandoned_item_returns(benchmark: Benchmark, ada: User, grace: User) -> None:
    opened = open_for(benchmark, [ada, grace])
    held = next_items(opened, ada, count=10)
    assert next_items(opened, grace) == []
    Slot.objects.filter(item__in=held[:2]).update(until=timezone.now() - timedelta(seconds=1))
    assert next_items(opened, grace, count=5) == held[:2]
    give_back(opened, ada)
    assert len(next_items(opened, grace, count=20)) == 10


def test_a_skipped_item_goes_to_others_and_not_to_who_skipped_it(benchmark: Benchmark, ada: User, grace: User) -> None:
    opened = open_for(benchmark, [ada, grace])
    (item,) = next_items(opened, ada)
    grade_item(opened, item.pk, ada, kind="skip")
    assert item not in next_items(opened, ada, count=20)
    give_back(opened, ada)
    assert next_items(opened, grace) == [item]


def test_nothing_is_handed_out_once_the_question_is_settled_unless_it_goes_on(round_of_ada: Round, ada: User) -> None:
    round_of_ada.answered_at = timezone.now()
    assert next_items(round_of_ada, ada) == []
    round_of_ada.goes_on = True
    assert len(next_items(round_of_ada, ada)) == 1


def test_who_is_no_judge_and_what_is_closed_gets_nothing(round_of_ada: Round, ada: User, grace: User) -> None:
    with pytest.raises(NotAJudgeError, match="grace is not a judge"):
        next_items(round_of_ada, grace)
    with pytest.raises(RoundError, match="1 to 20 items"):
        next_items(round_of_ada, ada, count=21)
    round_of_ada.state = Round.State.CLOSED
    with pytest.raises(RoundStateError, match="is closed"):
        next_items(round_of_ada, ada)
