"""Times of a cron expression in the time zone of the site."""

import re
from datetime import UTC, datetime, timedelta

from croniter import croniter
from django.utils import timezone

from benchbench.errors import BenchbenchError

FIELDS = 5
DAY = timedelta(days=1)
RANDOM = re.compile(r"\br\b", re.IGNORECASE)  # which croniter reads as another time at each look


def find_next_time(cron: str, after: datetime) -> datetime:
    """Return the first time after `after` that matches `cron` on the clocks of the site.

    A time that clocks show twice counts once, the first time. A time that they skip comes due as much later as they
    skip, as if they had been changed afterwards. RQ's own scheduler counts so too, but in the time zone of its process.
    Raises BenchbenchError unless the text is a cron expression of five fields that comes due, at times that stay.
    """
    zone = timezone.get_default_timezone()
    # After clocks skipped an hour, the times of that hour still come.
    start = min((after - back).astimezone(zone).replace(tzinfo=None) + back for back in (timedelta(), DAY))
    first, moment = None, start
    try:
        if len(cron.split()) != FIELDS or RANDOM.search(cron):
            raise ValueError
        times = croniter(cron, start)
        while first is None or moment < first.astimezone(zone).replace(tzinfo=None):  # one of these may come before
            moment = times.get_next(datetime)
            time = moment.replace(tzinfo=zone).astimezone(UTC)
            if time > after:
                first = min(first or time, time)
    except ValueError:  # the base of croniter's errors
        raise BenchbenchError(
            f"{cron!r} is not a cron expression that comes due. Give minute, hour, day, month and weekday, such as "
            '"0 3 * * 1-5" for 03:00 from Monday to Friday.',
            field="cron",
        ) from None
    return first


def list_next_times(cron: str, after: datetime, count: int) -> list[datetime]:
    """Return the next `count` times after `after`. Raises the error of `find_next_time`."""
    times: list[datetime] = []
    while len(times) < count:
        times.append(find_next_time(cron, times[-1] if times else after))
    return times
