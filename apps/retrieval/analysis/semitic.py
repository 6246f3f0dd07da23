"""Languages in Arabic and Hebrew letters. Folding has removed vowel points and the stroke that lengthens a word."""

from apps.retrieval.analysis.base import Language, replace

NON_JOINER = "\u200c"  # between the parts of a Persian word

# Lucene's ArabicNormalizationFilter, and its PersianNormalizationFilter with the letters that the stemmer reads.
ARABIC = {"آ": "ا", "أ": "ا", "إ": "ا", "ٱ": "ا", "ى": "ي"}
FOREIGN = {"ی": "ي", "ک": "ك", "ھ": "ه", "ە": "ه", "ہ": "ه"}  # Persian, Urdu and Kurdish words among Arabic ones
TEH_MARBUTA = {"ة": "ه"}  # after the stemmer, which takes a final ه for a pronoun
PERSIAN = {**ARABIC, **TEH_MARBUTA, "ى": "ی", "ي": "ی", "ے": "ی", "ك": "ک", "ۀ": "ه", "ہ": "ه", "ە": "ه"}


def split_parts(text: str) -> str:
    """Return a text with blanks for non-joiners, as Lucene's PersianCharFilter."""
    return text.replace(NON_JOINER, " ")


LANGUAGES = {
    "arabic": Language("arabic", fold=replace(ARABIC | FOREIGN), finish=replace(TEH_MARBUTA)),
    "persian": Language("persian", prepare=split_parts, fold=replace(PERSIAN)),
    "urdu": Language(fold=replace(PERSIAN)),
    "hebrew": Language(),
    "yiddish": Language("yiddish"),
}
