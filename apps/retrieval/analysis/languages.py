"""Registry of what is special in the analysis of each language, and of the language that reads a foreign word."""

from apps.retrieval.analysis import european, indic, latin, semitic, unspaced
from apps.retrieval.analysis.base import Language
from benchbench.texts.languages import UNKNOWN

LANGUAGES: dict[str, Language] = {
    **latin.LANGUAGES,
    **european.LANGUAGES,
    **semitic.LANGUAGES,
    **indic.LANGUAGES,
    **unspaced.LANGUAGES,
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
