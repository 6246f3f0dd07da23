"""Settings of lexical search: one canonical text each, and errors that name the choices."""

import pytest

from benchbench.ir.planning.lexical import Lexical, LexicalError


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("bm25", "bm25"),
        (" bm25 ( b=0.4,k1=0.9 ) ", "bm25(k1=0.9, b=0.4)"),
        ("bm25(k1=1.5, b=0.75)", "bm25"),
        ({"engine": "bm25", "k1": 2}, "bm25(k1=2.0)"),
        ("fts", "fts"),
        ("bm25(b=0.4, language=DE)", "bm25(language=german, b=0.4)"),
        ("bm25(stem=none, words=code, stop=en)", "bm25(words=code, stop=english, stem=none)"),
        ("fts(language=nb)", "fts(language=norwegian)"),
    ],
)
def test_equal_settings_are_equal_texts(setting, text):
    assert str(Lexical.parse(setting)) == text == str(Lexical.parse(text))


def test_lists_of_values_state_a_setting_each():
    settings = [str(each) for each in Lexical.expand("bm25(k1=0.9|1.2, b=0.4|0.75)")]
    assert settings == ["bm25(k1=0.9, b=0.4)", "bm25(k1=0.9)", "bm25(k1=1.2, b=0.4)", "bm25(k1=1.2)"]


@pytest.mark.parametrize(
    ("setting", "is_built", "words"),
    [
        ("bm25(k1=0.9)", False, "bm25"),
        ("bm25(k1=0.9, language=de)", True, "bm25(language=german)"),
        ("fts", True, "fts"),
    ],
)
def test_options_of_words_need_an_index(setting, is_built, words):
    parsed = Lexical.parse(setting)
    assert (parsed.is_built_by_run, parsed.words) == (is_built, words)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("bm26", "choose one of bm25, fts"),
        ("bm25(k=1)", "did you mean k1"),
        ("bm25(b=2)", "b: 2 is not a number from 0 to 1"),
        ("fts(k1=1)", "choose one of language"),
        ("bm25(language=klingon)", '"klingon" is not the name or code of a language, such as german or de'),
        ("bm25(words=letters)", "is not one of unicode, fourgrams, english, plain, code, sudachipy"),
        ("bm25(stop=3)", "3 is not the name or code of a language, or none"),
        ({"engine": "bm25", "language": ""}, '"" is not the name'),
        ("bm25(", "is not a setting such as"),
        ({"k1": 1}, "must have an engine"),
        ("bm25(k1=0.9|1.2)", "states several settings"),
    ],
)
def test_other_settings_are_refused(setting, message):
    with pytest.raises(LexicalError, match=message):
        Lexical.parse(setting)
