"""Languages written in Latin letters."""

import re
from collections.abc import Callable

from apps.retrieval.analysis.base import ACCENTS, APOSTROPHES, Language, replace, strip
from benchbench.texts.words import normalize

TILDE = "\u0303"
GERMAN_UMLAUTS = {"ä": "a", "ö": "o", "ü": "u"}
GERMAN_DIGRAPHS = re.compile("([ao])e|(?<![aeioquy])(u)e")  # "Mueller", but not "neue" or "Quelle"
TURKISH_CAPITALS = re.compile("İ|I")

IRISH_PREFIX = re.compile("(?<!\\w)[hnt](?:-(?=[aeiouáéíóú])|-?(?=[AEIOUÁÉÍÓÚ]))")
TONE = re.compile("([\u0300\u0301\u0303\u0309\u0323])((?<=o.)[ae]|(?<=u.)y)$")


def fold_german(word: str) -> str:
    """Return a word without umlauts in either spelling, as Lucene's GermanNormalizationFilter. Folding made ß ss."""
    return _replace_umlauts(GERMAN_DIGRAPHS.sub(r"\1\2", word))


_replace_umlauts = replace(GERMAN_UMLAUTS)


def lower_turkish(text: str) -> str:
    """Return a text with I as ı and İ as i, as Lucene's TurkishLowerCaseFilter."""
    return TURKISH_CAPITALS.sub(lambda match: "ı" if match[0] == "I" else "i", normalize(text, "NFC"))


def drop_prefix(text: str) -> str:
    """Return a text without the consonants that Irish grammar puts before a vowel, as in "nAthair" and "n-athair"."""
    return IRISH_PREFIX.sub("", text)


def fold_vietnamese(word: str) -> str:
    """Return a word with the tone of its last two vowels on the second: "hòa" is written "hoà" too."""
    return word if word.isascii() else normalize(TONE.sub(r"\2\1", normalize(word, "NFD")), "NFC")


def drop_suffix(word: str) -> str:
    """Return a word up to its apostrophe, after which Turkish adds suffixes to names, as Lucene's ApostropheFilter."""
    return word.partition("'")[0] or word


def elide(articles: str) -> Callable[[str], str]:
    """Return the function that removes a contracted article before a word, as Lucene's ElisionFilter."""
    heads = frozenset(articles.split())

    def fold(word: str) -> str:
        head, _, noun = word.partition("'")
        return noun if noun and head in heads else word

    return fold


ELIDED = elide("l m t qu n s j d c jusqu quoiqu lorsqu puisqu")
FRENCH = replace({"œ": "oe", "æ": "ae"})
CATALAN = elide("d l m n s t")
ITALIAN = elide(
    "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d quest quell sant tutt anch"
)
IRISH = elide("d m b")
SERBIAN = replace({"č": "c", "ć": "c", "š": "s", "ž": "z", "đ": "dj"})  # Lucene's SerbianNormalizationFilter
SPANISH = strip(ACCENTS.replace(TILDE, ""))

LANGUAGES = {
    "english": Language("english"),
    "german": Language("german", fold=fold_german),
    "turkish": Language("turkish", prepare=lower_turkish, fold=drop_suffix),
    "azerbaijani": Language(prepare=lower_turkish, fold=drop_suffix),
    # Accents go after stemming, as in Lucene's light stemmers; ñ stays a letter.
    "french": Language(
        "french", prepare=replace(APOSTROPHES), fold=lambda word: FRENCH(ELIDED(word)), finish=strip(ACCENTS)
    ),
    "italian": Language("italian", prepare=replace(APOSTROPHES), fold=ITALIAN, finish=strip(ACCENTS)),
    "portuguese": Language("portuguese", finish=strip(ACCENTS)),
    "spanish": Language("spanish", finish=SPANISH),
    "catalan": Language("catalan", prepare=replace(APOSTROPHES), fold=CATALAN, finish=strip(ACCENTS)),
    "irish": Language("irish", prepare=drop_prefix, fold=IRISH),
    "romanian": Language("romanian", fold=replace({"ş": "ș", "ţ": "ț"})),  # cedilla and comma below
    **{
        name: Language(name)
        for name in ("basque", "czech", "danish", "dutch", "esperanto", "estonian", "finnish", "hungarian")
    },
    **{name: Language(name) for name in ("indonesian", "lithuanian", "norwegian", "polish", "sesotho", "swedish")},
    "croatian": Language(fold=SERBIAN),
    **dict.fromkeys(("latvian", "malay", "slovak", "slovenian", "swahili"), Language()),
    "vietnamese": Language(fold=fold_vietnamese),
}
