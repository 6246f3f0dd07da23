"""The runs of a benchmark, best first: by slice, by version, with their judged shares.

Imports verdicts; every other package of this room imports it.
"""
