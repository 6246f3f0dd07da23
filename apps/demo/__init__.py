"""A committed collection with judged questions, and the command that benchmarks them. It owns no tables.

Imports every room; imported by none.
"""
