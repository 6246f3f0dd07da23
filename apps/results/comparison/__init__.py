"""Comparison of runs: the verdict, its figures, and the queries on which two runs differ.

Imports `leaderboard`; knows nothing of `triage`. Imported by views, exporters, the API and the command.
"""
