import pytest

from apps.results.templatetags.benchbench import difference, value
from benchbench.decimals import counted, signed


@pytest.mark.parametrize(
    ("number", "decimals", "shown"),
    [
        (0.01234, 4, "+0.0123"),
        (-0.5, 4, "-0.5000"),
        (-0.00001, 4, "0.0000"),
        (-0.0, 4, "0.0000"),
        (0.00001, 4, "0.0000"),
        (-1234.56, 1, "-1,234.6"),
        (0.4, 0, "0"),
    ],
)
def test_a_difference_has_a_sign_unless_it_rounds_to_nothing(number: float, decimals: int, shown: str) -> None:
    assert signed(number, decimals) == shown


def test_pages_know_no_negative_nothing() -> None:
    assert [value(-0.00001), value(0.6451), value(0.99999), value(-0.25)] == [".0000", ".6451", "1.0000", "-0.2500"]
    assert [difference(-0.00001), difference(0.0123), difference(0)] == [".0000", "−.0123", ""]


@pytest.mark.parametrize(
    ("number", "noun", "shown"),
    [(1, "query", "1 query"), (0, "query", "0 queries"), (2345, "run", "2,345 runs"), (2, "index", "2 indexes")],
)
def test_a_number_stands_with_its_noun_in_the_right_form(number: int, noun: str, shown: str) -> None:
    assert counted(number, noun) == shown
