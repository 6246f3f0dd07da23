"""Schedules: benchmarks repeated at the times of a cron expression, and notices when their gate turns.

Imports `gates`, the sentences of verdicts, and the launching of benchmarks.
"""
