"""Definition of a benchmark: reading and previewing its matrix, choosing its indexes, creating its runs.

Imports the models and `measuring`; imported by everything that makes benchmarks.
"""
