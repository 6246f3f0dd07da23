"""Faults planted in real workers: what is broken, in which stage, and what comes of it. See `kit.py`."""
