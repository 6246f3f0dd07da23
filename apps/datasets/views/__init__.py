"""Pages about datasets.

Each view reads a form, calls one use case and shows its result. Only interfaces import it.
"""
