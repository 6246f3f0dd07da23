"""Monitoring of a site: counters, metrics, health, logs with the operation.

Imported by the rooms, which count, and by `benchbench.urls` and its settings.
"""
