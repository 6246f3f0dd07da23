"""Judging rounds: people grade (query, document) pairs that runs returned; closing a round makes the next version.

Imports benchmarks and the rooms below it; results (pages) and the API import it.
"""
