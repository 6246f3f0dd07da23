"""Languages of Europe in Cyrillic, Greek and Armenian letters, and Serbian in both of its scripts."""

from apps.retrieval.analysis.base import APOSTROPHES, SERBIAN, Language, replace, strip

STRESS = strip("\u0300\u0301")  # of dictionaries and encyclopedias
fold_yo, fold_ge = replace({"ё": "е"}), replace({"ґ": "г"})

LANGUAGES = {
    "russian": Language("russian", fold=lambda word: fold_yo(STRESS(word))),
    "ukrainian": Language("ukrainian", prepare=replace(APOSTROPHES), fold=lambda word: fold_ge(STRESS(word))),
    "bulgarian": Language("bulgarian", passes=2, fold=STRESS),
    "serbian": Language("serbian", finish=SERBIAN),  # the stemmer reads Cyrillic as Latin letters
    # Lucene's GreekLowerCaseFilter, and the accents of older spelling; folding made ς σ.
    "greek": Language("greek", fold=strip("\u0300\u0301\u0308\u0313\u0314\u0342\u0345")),
    "armenian": Language("armenian"),
}
