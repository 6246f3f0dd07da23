"""Vectors of texts: the encoders, and what keeps the vectors that they made.

Imports models and fingerprints; `search`, building and rerankers import it.
"""
