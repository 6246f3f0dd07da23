"""Results of benchmarks: leaderboards, comparisons, triage, files, pages. It owns no tables.

`comparison` and `triage` lie above `leaderboard` and know nothing of each other. Imported by the API only.
"""
