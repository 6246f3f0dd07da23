"""Durations, and the time that work still takes, as every page, command, event and file states them.

Stored times come from the clock of PostgreSQL, which may be set back: such a duration is unknown, never negative. Work
that has hardly begun has no estimate: its first units wait for models to load.
"""

from datetime import datetime

MIN_SHARE = 0.02  # of the work that must be completed to estimate the rest from its rate
MIN_LONG_SHARE = 0.01  # the same of work that has lasted
LONG_SECONDS = 60
MIN_SAMPLES = 5  # whose typical time is used to estimate that of others


def measure_seconds(start: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds from `start` to `end`; None if one is unknown, or if the clock was set back in between."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def format_duration(seconds: float) -> str:
    """Return seconds as `8 s`, `2 min 5 s`, `1 h 12 min`."""
    total = round(max(seconds, 0))
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {total % 3600 // 60} min"


def estimate_left(completed: float, total: float | None, seconds: float | None) -> float | None:
    """Return the seconds that the rest of `total` takes at the rate of what is done, after `seconds`.

    None if nothing is left, if the total or the time is unknown, and while too little is done.
    """
    if not total or seconds is None or seconds <= 0 or not 0 < completed < total:
        return None
    if completed < (MIN_LONG_SHARE if seconds >= LONG_SECONDS else MIN_SHARE) * total:
        return None
    return round(seconds * (total - completed) / completed, 1)


def estimate_by_pace(pace: float | None, samples: int, left: float) -> float | None:
    """Return the seconds of what is `left` at `pace`, seconds for each, measured on `samples`; None for too few."""
    return None if pace is None or samples < MIN_SAMPLES else max(pace, 0.0) * max(left, 0)
