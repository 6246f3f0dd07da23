"""Analysis of texts for lexical search, as Lucene's analyzers do it: normalise, segment, drop stop words, stem.

One module a family of languages declares what is special in each (`languages.py` has the registry), `segmenting.py` the
ways to divide a text into words. The same analyzer reads queries and documents.
"""
