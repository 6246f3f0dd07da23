"""Schedules: benchmarks repeated at the times of a cron expression, and notices when their gate turns.

Imports `gates`, `defining` and the launching of benchmarks. Results describe the end of each repeat
(`apps.results.repeats`).
"""
