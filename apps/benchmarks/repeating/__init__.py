"""Benchmarks from experiment files: of past benchmarks, to run again, and of the strategy benchmark.

Imports `defining` and `measuring`; imported by views, the API and the commands only.
"""
