"""Statistics of differences between runs: chance, size, and the verdict.

Plain NumPy over arrays of values. Imported by comparison, gates and pages.
"""
