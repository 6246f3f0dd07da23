"""Durations and estimates: never negative, none from too little, and from one place."""

import re
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from benchbench.durations import estimate_by_pace, estimate_left, format_duration, measure_seconds
from tests.checkout import CHECKOUT

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (125, "2 min 5 s"), (4320, "1 h 12 min"), (-3600, "0 s"), (-0.4, "0 s")],
)
def test_durations_are_written_alike(seconds, text):
    assert format_duration(seconds) == text


def test_duration_across_a_clock_set_back_is_unknown():
    assert measure_seconds(NOON, NOON + timedelta(seconds=5)) == 5
    assert measure_seconds(NOON, NOON) == 0
    assert measure_seconds(NOON, NOON - timedelta(hours=1)) is None
    assert measure_seconds(None, NOON) is None
    assert measure_seconds(NOON, None) is None


def test_estimates_are_never_negative_nor_from_too_little():
    """Two hundredths of the work must be done, so none exceeds fifty times what was spent."""
    amounts = (-1, 0, 1, 5, 19, 20, 100, 999, 1000, 2000)
    for finished, total, seconds in product(amounts, (None, 0, 1000), (None, -3600, 0, 1, 59, 60, 4000, 10**6)):
        left = estimate_left(finished, total, seconds)
        if left is None:
            continue
        assert (seconds or 0) > 0
        assert 0 <= left <= 50 * seconds
        assert 20 <= finished < 1000
    assert estimate_left(20, 1000, 10) == 490.0
    assert estimate_left(19, 1000, 3600) is None


def test_a_plan_counts_until_the_rate_is_known():
    """A minute and a half without a result says nothing: "574 h left" was the rate of one unit of a thousand."""
    assert estimate_left(0, 1000, None, planned=200) == 200.0
    assert estimate_left(1, 1000, 90, planned=200) == 199.8
    assert estimate_left(19, 1000, 90, planned=200) == 196.2
    assert estimate_left(20, 1000, 90, planned=200) == pytest.approx(0.02 * 4410 + 0.98 * 196, abs=0.1)
    assert estimate_left(900, 1000, 90, planned=200) == 0.9 * 10 + 0.1 * 20
    assert estimate_left(900, 1000, None, planned=200) == 20.0
    assert estimate_left(1000, 1000, 90, planned=200) is None
    assert estimate_left(0, 1000, None, planned=-1) == 0.0


def test_pace_needs_a_few_samples():
    assert estimate_by_pace(600.0, 4, 1000) is None
    assert estimate_by_pace(None, 9, 1000) is None
    assert estimate_by_pace(2.0, 5, 10) == 20.0
    assert estimate_by_pace(2.0, 5, -3) == 0.0


ELSEWHERE = {
    "apps/operations/progress.py": "measured in PostgreSQL",
    "apps/operations/working.py": "a wait, taken off a monotonic time",
    "benchbench/client/connection.py": "a Retry-After header",
}


def test_differences_of_times_are_measured_in_one_place():
    hits = {
        str(path.relative_to(CHECKOUT))
        for room in ("apps", "benchbench")
        for path in (CHECKOUT / room).rglob("*.py")
        if re.search(r"[a-z)]\.total_seconds\(", path.read_text()) and path.name != "durations.py"  # of no constant
    }
    assert hits == ELSEWHERE.keys()
    displayed = [
        str(path.relative_to(CHECKOUT))
        for path in (CHECKOUT / "templates").rglob("*.html")
        if re.search(r"_?seconds\|(?!duration|default|floatformat)|\|timesince|\|timeuntil", path.read_text())
    ]
    assert displayed == []
