"""Runs repeated and brought in: experiment files, reproducing, and rankings made elsewhere.

It imports execution and the rooms below, and owns no tables.
"""
