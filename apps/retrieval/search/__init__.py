"""Searching an index: exactly, approximately, by words, with a filter.

Imports encoders, stores and strategies; the room of benchmarks imports `open_indexes`.
"""
