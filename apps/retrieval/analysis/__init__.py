"""Analysis of texts for lexical search, as Lucene's analyzers do it: normalise, segment, drop stop words, stem.

`latin.py` and `languages.py`, the registry, declare what is special in each language, `segmenting.py` how to divide a
text into words. The same analyzer reads queries and documents.
"""
