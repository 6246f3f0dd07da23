"""Benchmarks from files: manifests of past benchmarks, experiments for new ones.

Imports `defining` and `measuring`; imported by views, the API and the commands only.
"""
