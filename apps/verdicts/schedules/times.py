"""Times of a cron expression in the time zone of the site."""

from datetime import UTC, datetime

from croniter import croniter
from django.utils import timezone

from benchbench.errors import BenchbenchError

FIELDS = 5


def find_next_time(cron: str, after: datetime) -> datetime:
    """Return the first time after `after` that matches `cron` on the clocks of the site.

    A time that clocks show twice counts once, the first time. A time that they skip comes due an hour later, as if they
    had been changed afterwards. RQ's own scheduler counts so too, but in the time zone of its process. Raises
    BenchbenchError unless the text is a cron expression of five fields that comes due.
    """
    zone = timezone.get_default_timezone()
    try:
        if len(cron.split()) != FIELDS:
            raise ValueError
        times = croniter(cron, after.astimezone(zone).replace(tzinfo=None))
        while (time := times.get_next(datetime).replace(tzinfo=zone).astimezone(UTC)) <= after:
            pass
        return time
    except ValueError:  # the base of croniter's errors
        raise BenchbenchError(
            f"{cron!r} is not a cron expression that comes due. Give minute, hour, day, month and weekday, such as "
            '"0 3 * * 1-5" for 03:00 from Monday to Friday.',
            field="cron",
        ) from None


def list_next_times(cron: str, after: datetime, count: int) -> list[datetime]:
    """Return the next `count` times after `after`. Raises the error of `find_next_time`."""
    times: list[datetime] = []
    while len(times) < count:
        times.append(find_next_time(cron, times[-1] if times else after))
    return times
