"""Benchmarks defined, launched, run and watched: from a matrix to runs.

It imports records and the rooms below.
"""

from benchbench.process import ProcessState

process = ProcessState()
