"""Judging rounds: people grade (query, document) pairs that runs brought up; closing a round makes the next version.

Imports benchmarks and all below; imported by results (pages) and the API.
"""
