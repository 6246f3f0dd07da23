"""Words of texts in any script, in any case, width or Unicode form."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.texts.scripts import PERHAPS_UNSPACED, SPACED_WORD, WORD
from benchbench.texts.words import count_words, find_words, fold, split_words

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
CHARACTERS = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Émile's  max_k: 42!", ["émile", "s", "max_k", "42"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("文書 Python编程 2024年", ["文", "書", "python", "编", "程", "2024", "年"]),
        ("ﾃﾞｰﾀ データ", ["デ", "ー", "タ", "デ", "ー", "タ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مُحَمَّد كتـــاب", ["محمد", "كتاب"]),
        ("בית־ספר", ["בית", "ספר"]),
        ("Biblio\u00adthek ﬁne ＡＢＣ", ["bibliothek", "fine", "abc"]),
        ("… — !", []),
    ],
)
def test_a_text_is_divided_into_words(text, words):
    assert split_words(text) == words


def test_words_of_ascii_are_those_of_the_pattern():
    text = "".join(map(chr, range(128))) * 2
    assert split_words(text) == [match[0] for match in WORD.finditer(fold(text))]


@pytest.mark.thorough
def test_every_character_is_alike_in_each_form_and_case():
    for character in CHARACTERS:
        text = "a" + character
        folded = fold(text)
        variants = {folded, *(unicodedata.normalize(form, text) for form in FORMS)} - {text}
        assert {fold(variant) for variant in variants} <= {folded}, hex(ord(character))
        cases = {character.upper(), character.lower()} - {character}
        assert character == "ı" or {fold(case) for case in cases} <= {fold(character)}, hex(ord(character))


@pytest.mark.thorough
def test_the_fast_pattern_divides_as_the_full_one():
    for character in CHARACTERS:
        text = fold(f"a{character}b{character}")
        if not PERHAPS_UNSPACED.search(text):
            assert SPACED_WORD.findall(text) == [match[0] for match in WORD.finditer(text)], hex(ord(character))


@given(st.text(), st.sampled_from(FORMS))
def test_words_are_those_of_any_form(text, form):
    assert split_words(text) == split_words(unicodedata.normalize(form, text)) == split_words(fold(text))


@given(st.text())
def test_found_words_are_in_their_places(text):
    end = 0
    for word in find_words(text):
        assert word.start >= end
        assert word.text == fold(text[word.start : word.end])
        end = word.end


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_words_between_blanks_are_counted(text):
    assert count_words(text) == len(text.split())


def test_letters_without_blanks_are_counted_each():
    assert [count_words(text) for text in ("首都是哪里", "how is the state-of-the-art", "Python 编程")] == [5, 4, 3]
