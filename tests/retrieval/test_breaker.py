import pytest

from benchbench.breaker import Breaker


def after(outcomes, *, seconds=0.0):
    """A breaker after requests that failed (x) or were answered (.), each failure after some seconds; it is 0 now."""
    created = Breaker()
    for outcome in outcomes:
        if outcome == "x":
            created.record_failure(seconds, 0.0)
        else:
            created.record_success()
    return created


class TestBreaker:
    @pytest.mark.parametrize(
        ("outcomes", "seconds", "opens"),
        [
            ("xx", 0, False),
            ("x" * 29, 0, False),
            ("x" * 30, 0, True),
            ("x" * 22 + "." * 13, 0, False),
            ("." * 13 + "x" * 22, 0, False),
            ("." * 3 + "x" * 27, 0, True),  # 90 %
            ("." * 4 + "x" * 26, 0, False),
            ("." * 100 + "x" * 26, 0, False),
            ("." * 100 + "x" * 27, 0, True),
            ("x" * 4, 180, False),  # whose every request runs into its time limit
            ("x" * 5, 180, True),
            ("." * 100 + "x" * 5, 180, True),
            (".xxxx", 180, False),
        ],
    )
    def test_it_opens_by_the_share_of_failed_requests(self, outcomes, seconds, opens):
        assert after(outcomes, seconds=seconds).is_open(1.0) == opens

    def test_after_a_break_one_request_decides(self):
        opened = after("x" * 30)
        assert [opened.is_open(moment) for moment in (29.9, 30.0)] == [True, False]
        opened.record_failure(0.0, 31.0)
        assert [opened.is_open(moment) for moment in (60.9, 61.0)] == [True, False]
        opened.record_success()
        for _ in range(26):
            opened.record_failure(0.0, 62.0)
        assert not opened.is_open(62.0), "what failed before the break counts no more"
