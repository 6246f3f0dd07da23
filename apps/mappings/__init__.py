"""Datasets laid over collections: resolving what judgments refer to, and repairing what could not be resolved.

Imports datasets, retrieval and collections; imported by benchmarks and the rooms above.
"""
