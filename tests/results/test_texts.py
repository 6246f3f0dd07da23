import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbench.markup import EXCERPT, excerpt, marked


def hits(text: str, query: str) -> list[str]:
    return [piece.text for piece in marked(text, query) if piece.hit]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Pears and plums", "pears", ["Pears"]),
        ("Indexing an index", "indexes", ["Indexing", "index"]),
        ("a spear is no pear", "pear", ["pear"]),
        ("an ox", "an ox", []),
        ("The pear and then the plum", "the pear and The plum", ["pear", "plum"]),
        ("C++ (really)", "c++ (really)", ["really"]),
        ("Größe", "größe", ["Größe"]),
        ("nothing", "", []),
    ],
)
def test_it_marks_the_words_of_the_query(text: str, query: str, expected: list[str]) -> None:
    assert hits(text, query) == expected


def test_an_excerpt_begins_shortly_before_the_first_hit() -> None:
    text = "word " * 200 + "pear " + "more " * 200
    pieces = excerpt(text, "pear")
    shown = "".join(piece.text for piece in pieces)
    assert shown.startswith("… word")
    assert shown.endswith("…")
    assert len(shown) <= EXCERPT + 10
    assert [piece.text for piece in pieces if piece.hit] == ["pear"]


def test_without_a_hit_it_is_the_beginning() -> None:
    assert "".join(piece.text for piece in excerpt("a short text", "pear")) == "a short text"


@settings(max_examples=50)
@given(st.text(max_size=600), st.text(max_size=60))
def test_no_character_is_lost_or_made_up(text: str, query: str) -> None:
    assert "".join(piece.text for piece in marked(text, query)) == text
