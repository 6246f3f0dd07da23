"""Pages of benchmarks, gates and imported runs.

Each view reads a form, calls one use case and shows the result. Only interfaces import it.
"""
