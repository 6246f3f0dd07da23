"""Mappings: datasets laid over collections, resolved and repaired.

Imports datasets, retrieval and collections; imported by benchmarks and the rooms above.
"""
