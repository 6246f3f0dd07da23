"""One run and its queries: what it lost, why, and the path of each document through the stages.

Imports `leaderboard`; knows nothing of `comparison`. Imported by views, exporters and the API.
"""
