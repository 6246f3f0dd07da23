"""Every address has a name, by which the tests that visit all find it; but for a few, whose reasons are written."""

from tests.pages import UNNAMED, unnamed


def test_a_view_without_a_name_is_known() -> None:
    assert set(unnamed()) == set(UNNAMED)
