"""Results of benchmarks: leaderboards, comparisons, triage, files, pages. It owns no tables.

`comparison` and `triage` are layers above `leaderboard` and independent of each other. Only the API imports results.
"""
