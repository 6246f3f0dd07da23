import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.ir.chunking import ChunkingError, first_sentences, segments, spans


def lengths_and_starts(characters: int, **parameters: int) -> list[tuple[int, int]]:
    return spans("x" * characters, **parameters)


def test_a_text_that_fits_is_one_chunk():
    assert lengths_and_starts(450, size=500, overlap=50) == [(0, 450)]
    assert lengths_and_starts(500, size=500, overlap=50) == [(0, 500)]


def test_windows_repeat_the_overlap_and_stop_when_the_end_is_reached():
    assert lengths_and_starts(1000, size=500, overlap=50) == [(0, 500), (450, 950), (900, 1000)]
    assert lengths_and_starts(950, size=500, overlap=50) == [(0, 500), (450, 950)]
    assert lengths_and_starts(951, size=500, overlap=50) == [(0, 500), (450, 950), (900, 951)]


def test_trailing_white_space_makes_no_chunk_of_its_own():
    assert spans("x" * 500 + "\n\n", size=500, overlap=50) == [(0, 500)]


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_a_blank_text_has_no_chunks(text):
    assert spans(text, size=500, overlap=50) == []


def test_a_window_of_white_space_is_left_out():
    assert spans("aaaa" + " " * 8 + "bbbb", size=4, overlap=0) == [(0, 4), (12, 16)]


@pytest.mark.parametrize(("size", "overlap"), [(500, 250), (500, -1), (0, 0), (10, 12)])
def test_it_refuses_an_overlap_of_half_the_size_and_names_both(size, overlap):
    with pytest.raises(ChunkingError, match=rf"overlap of {overlap} .* size of {size}"):
        spans("text", size=size, overlap=overlap)


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 30), st.integers(0, 14))
def test_every_character_that_is_not_white_space_is_in_a_chunk_and_every_chunk_brings_something_new(
    text, size, overlap
):
    overlap = min(overlap, (size - 1) // 2)
    covered: set[int] = set()
    for start, end in spans(text, size=size, overlap=overlap):
        assert 0 < end - start <= size
        new = set(range(start, end)) - covered
        assert new
        covered |= new
    assert {place for place, character in enumerate(text) if not character.isspace()} <= covered


@pytest.mark.parametrize(
    ("spans", "parts"),
    [
        ([], [(0, 10, None)]),
        ([(2, 5), (5, 10)], [(0, 2, None), (2, 5, 0), (5, 10, 1)]),
        ([(0, 10), (3, 6)], [(0, 3, 0), (3, 6, 1), (6, 10, 0)]),
        ([(0, 10), (4, 4)], [(0, 10, 0)]),
        ([(0, 6), (4, 10)], [(0, 6, 0), (6, 10, 1)]),
        ([(0, 10), (0, 10)], [(0, 10, 0)]),
        ([(0, 8), (2, 4), (1, 6)], [(0, 1, 0), (1, 2, 2), (2, 4, 1), (4, 6, 2), (6, 8, 0), (8, 10, None)]),
    ],
)
def test_each_part_belongs_to_the_shortest_span_that_covers_it(spans, parts):
    assert segments(10, spans) == parts


def test_an_empty_text_has_no_parts():
    assert segments(0, [(0, 0)]) == []


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        (" One\nline. ", "One line."),
        ("One. Two! Three?", "One. Two!"),
        ('He said "no." Then went.', 'He said "no."'),
        ("Heading\n\nText", "Heading Text"),
        ("A sentence longer than that", "A sentence"),
        ("Unbrokenandlongerthanthat", "Unbrokenandlon"),
    ],
)
def test_a_summary_is_the_first_sentences_that_fit(text, summary):
    assert first_sentences(text, most=14) == summary
