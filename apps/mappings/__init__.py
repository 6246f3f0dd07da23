"""Mappings: datasets connected to collections, resolved and repaired.

Imports datasets, retrieval and collections; imported by records and the rooms above.
"""
