"""Benchmarks from files: manifests that say what was done, experiments that say what is to be done.

Imports `defining` and `measuring`; imported by views, the API and the commands only.
"""
