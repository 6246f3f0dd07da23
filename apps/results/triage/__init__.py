"""One run and its queries: what it lost, why, and the path of each document through the stages.

Imports `leaderboard` but not `comparison`. Views, exporters and the API import it.
"""
