"""What a terminal would obey does not reach it."""

import pytest

from benchbench.busy import on_one_line, printable


@pytest.mark.parametrize("obeyed", ["\x1b[2J", "\r", "\x07", "\x9b31m", "\u202e", "\0"])
def test_it_keeps_what_prints_and_the_lines(obeyed: str) -> None:
    kept = printable(f"ünï\n\tone{obeyed}two")
    assert kept.startswith("ünï\n\tone ")
    assert kept.replace("\n", "").replace("\t", "").isprintable()


def test_on_one_line_there_are_single_spaces() -> None:
    assert on_one_line(" a\x1b[1m\n\n b ") == "a [1m b"
