import pytest

from benchbench.ir.chunking import first_sentences, segments


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
