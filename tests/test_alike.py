"""Names that look alike and are different."""

import pytest

from benchbench.reading.alike import alike, alike_sentence


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caf\u00e9", "cafe\u0301"),  # composed and decomposed
        ("q1", "q\u200b1"),  # a space without width
        ("q1", "\ufeffq1"),  # the mark at the begin of a file
        ("q1", "\uff511"),  # a wide letter
        ("a b", "a\u00a0b"),  # a space that does not break
        ("apple", "\u0430pple"),  # a Cyrillic letter
    ],
)
def test_the_same_to_the_eye(one: str, other: str) -> None:
    assert alike({one, "pear"}) == []
    assert [set(pair) for pair in alike([one, other, "pear"])] == [{one, other}]
    assert [set(pair) for pair in alike([other, "pear", one])] == [{one, other}]


@pytest.mark.parametrize(("one", "other"), [("Q1", "q1"), ("\u00c9", "\u00e9"), ("a", "\u00e4"), ("q1", "q 1")])
def test_what_is_told_apart(one: str, other: str) -> None:
    assert alike([one, other]) == []


def test_the_first_two_pairs_are_told() -> None:
    names = [f"{key}{end}" for key in ("a", "b", "c") for end in ("", "\u200b")]
    told = alike_sentence(names, what="Query keys")
    assert told == r"Query keys that look alike, and are different: 'a' and 'a\u200b'; 'b' and 'b\u200b' and 1 more."
    assert alike_sentence(["a", "b"], what="Query keys") == ""
