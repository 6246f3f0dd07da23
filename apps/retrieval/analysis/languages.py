"""Registry of what is special in the analysis of each language, and of the language that reads a foreign word.

`latin.py` declares the languages in Latin letters; the others are here.
"""

import re

from apps.retrieval.analysis import latin
from apps.retrieval.analysis.base import APOSTROPHES, Language, replace, strip
from benchbench.texts.languages import UNKNOWN

STRESS = strip("\u0300\u0301")  # of dictionaries and encyclopedias
CYRILLIC, LATIN = "абвгдђежзијклљмнњопрстћуфхцчџш", "a b v g d đ e ž z i j k l lj m n nj o p r s t ć u f h c č dž š"
write_latin = replace(dict(zip(CYRILLIC, LATIN.split(), strict=True)))
fold_yo, fold_ge = replace({"ё": "е"}), replace({"ґ": "г"})

EUROPEAN = {
    "russian": Language("russian", fold=lambda word: fold_yo(STRESS(word))),
    "ukrainian": Language(prepare=replace(APOSTROPHES), fold=lambda word: fold_ge(STRESS(word))),
    "bulgarian": Language(fold=STRESS),
    "serbian": Language("serbian", fold=lambda word: latin.SERBIAN(write_latin(word))),
    # Lucene's GreekLowerCaseFilter, and the accents of older spelling; folding made ς σ.
    "greek": Language("greek", fold=strip("\u0300\u0301\u0308\u0313\u0314\u0342\u0345")),
    "armenian": Language("armenian"),
}

# Folding has removed vowel points and the stroke that lengthens an Arabic word.
NON_JOINER = "\u200c"  # between the parts of a Persian word

# Lucene's ArabicNormalizationFilter, and its PersianNormalizationFilter with the letters that the stemmer reads.
ARABIC = {"آ": "ا", "أ": "ا", "إ": "ا", "ٱ": "ا", "ى": "ي"}
FOREIGN = {"ی": "ي", "ک": "ك", "ھ": "ه", "ە": "ه", "ہ": "ه"}  # Persian, Urdu and Kurdish words among Arabic ones
TEH_MARBUTA = {"ة": "ه"}  # after the stemmer, which takes a final ه for a pronoun
PERSIAN = {**ARABIC, **TEH_MARBUTA, "ى": "ی", "ي": "ی", "ے": "ی", "ك": "ک", "ۀ": "ه", "ہ": "ه", "ە": "ه"}


def split_parts(text: str) -> str:
    """Return a text with blanks for non-joiners, as Lucene's PersianCharFilter."""
    return text.replace(NON_JOINER, " ")


SEMITIC = {
    "arabic": Language("arabic", fold=replace(ARABIC | FOREIGN), finish=replace(TEH_MARBUTA)),
    "persian": Language("persian", prepare=split_parts, fold=replace(PERSIAN)),
    "urdu": Language(fold=replace(PERSIAN)),
    "hebrew": Language(),
    "yiddish": Language("yiddish"),
}

# Vowels that are typed as another vowel and a sign, from Lucene's IndicNormalizer.
VOWELS = {"अा": "आ", "अॉ": "ऑ", "अो": "ओ", "अौ": "औ", "आॅ": "ऑ", "आे": "ओ", "आै": "औ", "एे": "ऐ", "उु": "ऊ"}
VOWELS |= {"অা": "আ", "ਅਾ": "ਆ", "ਅੈ": "ਐ", "ਅੌ": "ਔ", "અા": "આ", "અે": "એ", "અૈ": "ઐ", "અો": "ઓ", "અૌ": "ઔ", "ଅା": "ଆ"}
VOWELS |= {"ഇൗ": "ഈ", "ഉൗ": "ഊ", "എെ": "ഐ", "ഒാ": "ഓ", "ഒൗ": "ഔ"}
TYPED = re.compile("|".join(VOWELS))

# Dead consonants with a letter of their own, which is also typed as two signs and a joiner.
DEAD = {"ৎ": "ত\u09cd", "ൺ": "ണ\u0d4d", "ൻ": "ന\u0d4d", "ർ": "ര\u0d4d", "ൽ": "ല\u0d4d", "ൾ": "ള\u0d4d", "ൿ": "ക\u0d4d"}

# Lucene's HindiNormalizer: spellings of a nasal, and letters with a dot below, before the stemmer; short for long
# vowels, and joined for dead consonants, after it, because the stemmer knows suffixes by their vowels.
NASALS = re.compile("न\u094d|\u0901")
NUKTA = "\u093c"
SHORT = dict(zip("ॅॆॉॊऍऎऑऒआईऊॠॡऐऔीूॄॣैौ", "ेेोोएएओओअइउऋऌएओिुृॢेो", strict=True)) | {"ॲ": "अ", "\u094d": None}


def fold_vowels(word: str) -> str:
    """Return a word with each vowel as one letter."""
    return TYPED.sub(lambda match: VOWELS[match[0]], word)


def fold_dead(word: str) -> str:
    """Return a word with each vowel as one letter and each dead consonant as a letter and a sign."""
    return fold_vowels(word).translate(DEAD_LETTERS)


def fold_hindi(word: str) -> str:
    """Return a word with one spelling of its nasals, and without dots below letters."""
    return NASALS.sub("\u0902", fold_vowels(word).replace(NUKTA, "")).translate(DOTTED)


DEAD_LETTERS = str.maketrans(DEAD)
DOTTED = str.maketrans("ऩऱऴ", "नरळ")

INDIC = {
    "hindi": Language("hindi", fold=fold_hindi, finish=replace(SHORT)),
    "marathi": Language(fold=fold_hindi, finish=replace(SHORT)),
    "nepali": Language("nepali", fold=fold_vowels),
    "tamil": Language("tamil"),
    **{name: Language(fold=fold_vowels) for name in ("gujarati", "kannada", "punjabi", "sinhala", "telugu")},
    **{name: Language(fold=fold_dead) for name in ("bengali", "malayalam")},
}

# Written without blanks, or with blanks between phrases. Bigrams of their letters are the words.
UNSPACED = ("chinese", "japanese", "korean", "thai", "lao", "khmer", "burmese", "tibetan")
# A stemmer leaves their alternating stems, as of Finnish "salasana, salasanoja", and their compounds apart.
ALTERNATING = (
    *("armenian", "czech", "dutch", "estonian", "finnish", "hungarian", "irish", "norwegian", "persian", "polish"),
    *("serbian", "swedish", "tamil", "turkish"),
)
UNINFLECTED = (*UNSPACED, "vietnamese")  # a word has one form
LANGUAGES: dict[str, Language] = {
    **latin.LANGUAGES,
    **EUROPEAN,
    **SEMITIC,
    **INDIC,
    **dict.fromkeys(UNSPACED, Language()),
    UNKNOWN: Language(),
}
# The language whose chain reads a word in a script, in a collection of a language with another script.
BY_SCRIPT = {
    **{"Cyrillic": "russian", "Greek": "greek", "Armenian": "armenian", "Arabic": "arabic", "Hebrew": "hebrew"},
    **{"Devanagari": "hindi", "Bengali": "bengali", "Gujarati": "gujarati", "Gurmukhi": "punjabi", "Tamil": "tamil"},
    **{"Telugu": "telugu", "Kannada": "kannada", "Malayalam": "malayalam", "Sinhala": "sinhala"},
}
SCRIPTS = {language: script for script, language in BY_SCRIPT.items()} | {
    **dict.fromkeys(("ukrainian", "bulgarian", "serbian"), "Cyrillic"),
    **dict.fromkeys(("persian", "urdu"), "Arabic"),
    **dict.fromkeys(("marathi", "nepali"), "Devanagari"),
    "yiddish": "Hebrew",
}


def find_language_of(word: str, language: str) -> str:
    """Return the language whose chain reads a word of a text in a language."""
    if word.isascii():
        return language
    from benchbench.texts.scripts import LETTERS_OF_SCRIPT

    match = LETTERS_OF_SCRIPT.match(word)
    script = match.lastgroup if match else None
    return language if script == SCRIPTS.get(language) else BY_SCRIPT.get(script or "", language)
