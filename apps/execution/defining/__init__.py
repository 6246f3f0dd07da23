"""Definition of a benchmark: reading and previewing its matrix, choosing its indexes, creating its runs.

Imports records; imported by everything that makes benchmarks.
"""
