"""Languages of India and Nepal."""

import re

from apps.retrieval.analysis.base import Language, replace

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

LANGUAGES = {
    "hindi": Language("hindi", fold=fold_hindi, finish=replace(SHORT)),
    "marathi": Language(fold=fold_hindi, finish=replace(SHORT)),
    "nepali": Language("nepali", fold=fold_vowels),
    "tamil": Language("tamil"),
    **{name: Language(fold=fold_vowels) for name in ("gujarati", "kannada", "punjabi", "sinhala", "telugu")},
    "bengali": Language("bengali", passes=2, fold=fold_dead),
    "malayalam": Language(fold=fold_dead),
}
