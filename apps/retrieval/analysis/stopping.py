"""Stop words of languages, from the lists that two packages keep."""

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

from benchbench.texts.languages import LANGUAGES
from benchbench.texts.words import split_words

MAX_WORDS = 350  # a longer list has words of content too, such as "system" or "trabajo"
WITHOUT = ("chinese", "japanese", "korean", "thai", "vietnamese")  # their words are syllables of longer ones
BM25S = {  # Lucene's list for English, Snowball's for others
    **{"danish": "DANISH", "dutch": "DUTCH", "english": "EN", "french": "FRENCH", "german": "GERMAN"},
    **{"italian": "ITALIAN", "norwegian": "NORWEGIAN", "portuguese": "PORTUGUESE", "russian": "RUSSIAN"},
    **{"spanish": "SPANISH", "swedish": "SWEDISH", "turkish": "TURKISH"},
}
NOUNS = {"german": {"waren", "weg"}}  # stop words that are nouns too: goods, way


@lru_cache(maxsize=16)
def read_stop_list(language: str) -> tuple[str, frozenset[str]]:
    """Return the package that keeps the stop words of a language, and the words; "" and none without a list."""
    if language in BM25S:
        words = frozenset(_read_bm25s()[f"STOPWORDS_{BM25S[language]}"])
        return "bm25s", words - NOUNS.get(language, set())
    words = frozenset() if language in WITHOUT else _read_stopwordsiso(language)
    return ("stopwordsiso", words) if 0 < len(words) <= MAX_WORDS else ("", frozenset())


@cache
def _read_bm25s() -> dict[str, Any]:
    """Return the module with the lists of bm25s, without the rest of the package, which web requests never load."""
    spec = find_spec("bm25s")
    assert spec is not None
    assert spec.origin is not None
    return run_path(str(Path(spec.origin).with_name("stopwords.py")))


def _read_stopwordsiso(language: str) -> frozenset[str]:
    """Return the folded words of a language's list in stopwordsiso; none if it has no list."""
    import stopwordsiso

    code = LANGUAGES.get(language, "")
    entries = map(split_words, stopwordsiso.stopwords(code) if stopwordsiso.has_lang(code) else ())
    return frozenset(words[0] for words in entries if len(words) == 1)
