"""Runs held against each other: the verdict, its figures, and where two runs differ.

Imports `leaderboard`; knows nothing of `triage`. Imported by views, exporters, the API and the command.
"""
