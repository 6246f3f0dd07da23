"""Vectors of texts: the encoders, and caches of the vectors that they made.

`ENCODERS` in `encoder` has their kinds. Imports models and fingerprints; `search`, building and rerankers import it.
"""
