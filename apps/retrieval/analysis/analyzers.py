"""Analyzers: the chains that make the terms of a text."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec

from apps.retrieval.analysis import segmenting
from apps.retrieval.analysis.languages import ALTERNATING, LANGUAGES, UNINFLECTED, find_language_of
from apps.retrieval.analysis.segmenting import (
    Split,
    Words,
    cut_grams,
    split_code,
    split_english,
    split_plain,
    split_unicode,
)
from apps.retrieval.analysis.stopping import read_stop_list
from benchbench.texts.words import fold, is_common

ENGLISH, PLAIN, UNICODE, FOURGRAMS, NONE = "english", "plain", "unicode", "fourgrams", "none"
WORDS = {
    UNICODE: Words(lambda: split_unicode),
    FOURGRAMS: Words(lambda: split_unicode, grams=4),
    ENGLISH: Words(lambda: split_english),
    "code": Words(lambda: split_code, is_raw=True),
    PLAIN: Words(lambda: split_plain, packages={}, is_raw=True, is_plain=True),
    "sudachipy": Words(segmenting.build_sudachipy, {"sudachipy": "sudachipy", "sudachidict-core": "sudachidict_core"}),
    "rjieba": Words(segmenting.build_rjieba, {"rjieba": "rjieba"}),
    "kiwipiepy": Words(segmenting.build_kiwipiepy, {"kiwipiepy": "kiwipiepy"}),
    "pythainlp": Words(segmenting.build_pythainlp, {"pythainlp": "pythainlp"}),
}
# Signs that NFKC would join with the word before: of trade, and of a power or fraction after a digit.
SIGN = re.compile(r"[™℠]|(?<=\d)(?=[²³¹⁰⁴-⁹¼-¾⅐-⅞])")
# Of Hawaiian, Ukrainian and Hebrew too.
APOSTROPHES = str.maketrans({"‘": "'", "’": "'", "ʻ": "'", "ʼ": "'", "׳": "'", "״": '"'})
# Pieces where no stemmer is, and where one leaves more forms of a word apart; measured: docs/languages.md.
DIVIDED = {name for name, language in LANGUAGES.items() if not language.stemmer} - {*UNINFLECTED} | {*ALTERNATING}
DEFAULT_WORDS = {"english": ENGLISH} | dict.fromkeys(DIVIDED, FOURGRAMS)


@dataclass(frozen=True, slots=True)
class Analyzer:
    """The chain of a language: normalise, segment, drop stop words, stem.

    `words` names the segmentation. `stop` and `stem` are the language whose list and stemmer are used, or "none".
    A word in a script that the language is not written in is read by the chain of the script's language.
    """

    language: str
    words: str
    stop: str
    stem: str

    def split(self, text: str) -> list[str]:
        """Return the words of a text, without what `finish` does to each, or their pieces."""
        way = WORDS[self.words]
        if not way.is_plain:
            text = LANGUAGES[self.language].prepare(text if is_common(text) else SIGN.sub(" ", text))
        if not way.is_raw:
            text = fold(text)
        words = _build_split(self.words)(text)
        return [gram for word in words for gram in _cut(self, word)] if way.grams else words

    def finish(self, words: Sequence[str]) -> list[str]:
        """Return the term of each word of `split`; "" for a stop word."""
        return list(words) if WORDS[self.words].grams else self._finish(words)

    def _finish(self, words: Sequence[str]) -> list[str]:
        if WORDS[self.words].is_plain:
            return _stem(words, read_stop_list(self.stop)[1], self.stem)
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number, word in enumerate(words):
            numbers[find_language_of(word, self.language)].append(number)
        terms = [""] * len(words)
        for language, chosen in numbers.items():
            is_main = language == self.language
            stop = self.stop if is_main or self.stop == NONE else language
            stem = self.stem if is_main or self.stem == NONE else LANGUAGES[language].stemmer or NONE
            folded = [LANGUAGES[language].fold(_fold_signs(words[number])) for number in chosen]
            stems = _stem(folded, _read_folded_stop_list(language, stop), stem)
            stems = [LANGUAGES[language].finish(term) for term in stems]
            for number, term in zip(chosen, stems, strict=True):
                terms[number] = term
        return terms

    def analyze(self, text: str) -> list[str]:
        """Return the terms of a text in its order."""
        return [term for term in self.finish(self.split(text)) if term]

    @property
    def has_dictionary(self) -> bool:
        """Return whether a dictionary divides the texts, which takes long to load."""
        return not WORDS[self.words].packages.keys() <= {"regex"}

    @property
    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that decide the terms."""
        packages = [*WORDS[self.words].packages]
        packages += [package] if self.stop != NONE and (package := read_stop_list(self.stop)[0]) else []
        packages += ["PyStemmer"] if self.stem != NONE else []
        return {package: version(package) for package in sorted(packages)}


def build_analyzer(language: str, words: str = "", stop: str = "", stem: str = "") -> Analyzer:
    """Return an analyzer of a language, with its usual parts for those that are empty."""
    usual_stop = language if read_stop_list(language)[0] else NONE
    words = words or (
        UNICODE if stem not in ("", NONE) and language in DIVIDED else DEFAULT_WORDS.get(language, UNICODE)
    )
    usual_stem = NONE if WORDS[words].grams else LANGUAGES[language].stemmer or NONE
    chosen_stem = LANGUAGES[stem].stemmer if stem not in ("", NONE) else stem
    return Analyzer(language, words, stop or usual_stop, chosen_stem or usual_stem)


def describe_missing_parts(words: str, stop: str, stem: str) -> str:
    """Return why an analyzer with these parts cannot be built here, as a clause; "" if it can. Empty parts are usual.

    `stop` and `stem` are languages.
    """
    needed = WORDS[words].packages if words else {}
    if missing := [package for package, module in needed.items() if find_spec(module) is None]:
        return f"words={words} needs {' and '.join(missing)}: pip install 'benchbench[{words}]'"
    if stop not in ("", NONE) and not read_stop_list(stop)[0]:
        return f"no package here has stop words of {stop}: use stop=none"
    if stem not in ("", NONE) and not LANGUAGES[stem].stemmer:
        return f"no stemmer reads {stem}: use stem=none"
    return ""


@lru_cache(maxsize=2**16)
def _cut(analyzer: Analyzer, word: str) -> list[str]:
    """Return the pieces of a word's term; none of a stop word."""
    return [gram for term in analyzer._finish([word]) if term for gram in cut_grams(term, WORDS[analyzer.words].grams)]


@lru_cache(maxsize=8)
def _build_split(words: str) -> Split:
    return WORDS[words].build()


def _stem(words: Sequence[str], stopped: frozenset[str], stem: str) -> list[str]:
    """Return the stem of each word; "" for a stop word."""
    stems = ["" if word in stopped else word for word in words]
    if stem == NONE:
        return stems
    import Stemmer

    stems = Stemmer.Stemmer(stem, 0).stemWords(stems)  # its cache takes longer than stemming
    return stems


def _fold_signs(word: str) -> str:
    """Return a word with ASCII's apostrophe within it, and its digits as 0 to 9, as Lucene's DecimalDigitFilter."""
    if word.isascii():
        return word
    digits = (str(int(letter)) if letter.isdecimal() else letter for letter in word)
    return "".join(digits).translate(APOSTROPHES).strip("'")


@lru_cache(maxsize=16)
def _read_folded_stop_list(language: str, stop: str) -> frozenset[str]:
    """Return the stop words of `stop` as words of a language are folded."""
    chain = LANGUAGES[language]
    return frozenset(chain.fold(_fold_signs(fold(chain.prepare(word)))) for word in read_stop_list(stop)[1])
