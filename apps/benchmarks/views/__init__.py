"""Pages about benchmarks, gates and imported runs.

Each view reads a form, calls one use case and shows what came of it. Only interfaces import it.
"""
