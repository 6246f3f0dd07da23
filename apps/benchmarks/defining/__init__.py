"""Making a benchmark: its matrix read and previewed, its indexes chosen, its runs created.

Imports the models and `measuring`; imported by everything that makes benchmarks.
"""
