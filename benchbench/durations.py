"""Durations, and the time that work still takes, as every page, command, event and file states them.

Stored times come from the clock of PostgreSQL, which may be set back: such a duration is unknown, never negative. Work
that has hardly begun has no estimate: its first units wait for models to load.
"""

from datetime import datetime

MIN_SHARE = 0.02  # of the work that must be completed to estimate the rest from its rate
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


def estimate_left(
    completed: float, total: float | None, seconds: float | None, *, planned: float | None = None
) -> float | None:
    """Return the seconds that the rest of `total` takes, `seconds` after the first was begun.

    Below MIN_SHARE it is that of the plan, which takes `planned` seconds for all; later the rate of what is done counts
    as much as the share that is done, and the plan for the rest. None if nothing is left, and without both.
    """
    if not total or not 0 <= completed < total:
        return None
    share = completed / total
    by_plan = None if planned is None else max(planned, 0.0) * (1 - share)
    if seconds is None or seconds <= 0 or share < MIN_SHARE:
        return None if by_plan is None else round(by_plan, 1)
    by_rate = seconds * (1 - share) / share
    return round(by_rate if by_plan is None else share * by_rate + (1 - share) * by_plan, 1)


def estimate_by_pace(pace: float | None, samples: int, left: float) -> float | None:
    """Return the seconds of what is `left` at `pace`, seconds for each, measured on `samples`; None for too few."""
    return None if pace is None or samples < MIN_SAMPLES else max(pace, 0.0) * max(left, 0)
