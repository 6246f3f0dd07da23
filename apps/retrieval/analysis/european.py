"""Languages of Europe in Cyrillic, Greek and Armenian letters, and Serbian in both of its scripts."""

from apps.retrieval.analysis.base import Language, replace, strip

SERBIAN = replace({"č": "c", "ć": "c", "š": "s", "ž": "z", "đ": "dj"})  # Lucene's SerbianNormalizationFilter

LANGUAGES = {
    "russian": Language("russian", fold=replace({"ё": "е"})),
    "ukrainian": Language(fold=replace({"ґ": "г", "ʼ": "'"})),
    "bulgarian": Language(),
    "serbian": Language("serbian", finish=SERBIAN),  # the stemmer reads Cyrillic as Latin letters
    "greek": Language("greek", fold=strip("\u0301\u0308")),  # Lucene's GreekLowerCaseFilter; folding made ς σ
    "armenian": Language("armenian"),
}
