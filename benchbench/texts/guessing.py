"""The language of texts, guessed by their script and their most frequent words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from benchbench.texts.languages import LANGUAGES, UNKNOWN
from benchbench.texts.words import split_words

MIN_VOTES = 0.5
CHARACTERS = 500  # that are read of a text
# Scripts of one language, or of one whose treatment serves the others.
SCRIPTS = {
    **{"Han": "chinese", "kana": "japanese", "Hangul": "korean", "Thai": "thai", "Lao": "lao", "Khmer": "khmer"},
    **{"Myanmar": "burmese", "Tibetan": "tibetan", "Greek": "greek", "Armenian": "armenian", "Hebrew": "hebrew"},
    **{"Bengali": "bengali", "Gujarati": "gujarati", "Gurmukhi": "punjabi", "Tamil": "tamil", "Telugu": "telugu"},
    **{"Kannada": "kannada", "Malayalam": "malayalam", "Sinhala": "sinhala"},
}

# Letters that one language has among those of its script, or nearly.
LETTERS = {
    **{"ukrainian": "іїєґ", "russian": "ыэ", "persian": "پچژگ", "urdu": "ٹڈڑںے", "turkish": "ğı", "vietnamese": "ơưạ"},
    **{"polish": "łąę", "czech": "řůě", "hungarian": "őű", "romanian": "țșţ", "german": "ß", "spanish": "ñ¿"},
}


@dataclass(frozen=True, slots=True)
class Guess:
    """The language of most texts, the number of texts in it, and the number that were read."""

    language: str
    agreeing: int
    sampled: int


def guess_language(texts: Iterable[str]) -> Guess | None:
    """Return the language of more than half of the texts that have letters; None without such a language.

    A text's language is that of its script. Among languages of one script, it is that with the most of its frequent
    words in the text: a word that is frequent in n of them counts 1/n for each, and a letter of its own as a word.
    """
    guesses = [language for text in texts if (language := _guess(text[:CHARACTERS])) is not None]
    if not guesses:
        return None
    ((language, agreeing),) = Counter(guesses).most_common(1)
    return Guess(language, agreeing, len(guesses)) if language != UNKNOWN and 2 * agreeing > len(guesses) else None


def _guess(text: str) -> str | None:
    from benchbench.texts.scripts import LETTERS_OF_SCRIPT

    letters: Counter[str] = Counter()
    for match in LETTERS_OF_SCRIPT.finditer(text):
        letters[match.lastgroup or ""] += len(match[0])
    if not letters:
        return None
    ((script, count),) = letters.most_common(1)
    if script == "Han" and letters["kana"] > count / 10:
        return "japanese"
    if script in SCRIPTS:
        return SCRIPTS[script]
    votes = defaultdict[str, float](float)
    for word in split_words(text):
        languages = _read_languages().get(word, ())
        for language in languages:
            votes[language] += 1 / len(languages)
    for language, signs in LETTERS.items():
        if count := sum(map(text.count, signs)):
            votes[language] += count
    best = max(sorted(votes), key=votes.__getitem__, default=UNKNOWN)
    return best if votes[best] >= MIN_VOTES else UNKNOWN


@cache
def _read_languages() -> Mapping[str, list[str]]:
    """Return the languages of each frequent word."""
    languages = defaultdict(list)
    for language in LANGUAGES:
        for word in read_frequent_words(language):
            languages[word].append(language)
    return languages


@cache
def read_frequent_words(language: str) -> frozenset[str]:
    """Return the folded words of a language's list in stopwordsiso; none if it has no list."""
    import stopwordsiso

    code = LANGUAGES.get(language, "")
    entries = map(split_words, stopwordsiso.stopwords(code) if stopwordsiso.has_lang(code) else ())
    return frozenset(words[0] for words in entries if len(words) == 1)
