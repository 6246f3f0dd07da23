"""Languages that are written without blanks, or with blanks between phrases. Bigrams of their letters are the words."""

from apps.retrieval.analysis.base import Language

NAMES = ("chinese", "japanese", "korean", "thai", "lao", "khmer", "burmese", "tibetan")
LANGUAGES = {name: Language() for name in NAMES}
