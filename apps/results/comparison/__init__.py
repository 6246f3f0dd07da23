"""Pages of compared runs: the verdict, its figures, and the queries on which two runs differ.

Imports `leaderboard` but not `triage`. Views, exporters, the API and the command import it.
"""
