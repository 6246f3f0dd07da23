"""Mappings: datasets connected to collections, resolved and repaired.

Imports datasets, retrieval and collections; imported by benchmarks and the rooms above.
"""
