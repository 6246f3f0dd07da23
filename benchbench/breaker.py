"""A circuit breaker for servers: it opens by the share of failed requests in a window."""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Breaker:
    """A circuit breaker that opens when at least `share` of a server's latest requests failed after their retries.

    The window is one of requests, so that some refused queries in a row do not open it. It is bounded in seconds, so
    that a server whose requests all time out costs minutes, not hours. Permanent refusals (a wrong key, a prompt that
    is too long) do not count. After `break_seconds` one request closes the breaker or opens it again. Times are those
    of the monotonic clock.
    """

    size: int = 30  # the latest requests in the window,
    seconds: float = 300.0  # or fewer, once their failures took this long,
    min_requests: int = 5  # but at least this many
    share: float = 0.9  # of failed requests in the window, from which the breaker opens
    break_seconds: float = 30.0
    requests: deque[tuple[bool, float]] = field(default_factory=deque)  # failed, seconds
    reason: str = ""  # why it is open, or was until the deciding request; "" while closed
    open_until: float = 0.0

    def is_open(self, now: float) -> bool:
        return now < self.open_until

    def open(self, now: float) -> None:
        """Open the breaker for a reason that the window cannot show."""
        self.reason = self.reason or "all of its latest requests"
        self.open_until = now + self.break_seconds

    def record_success(self) -> None:
        if self.reason:
            self.requests.clear()
            self.reason = ""
            self.open_until = 0.0
        self._append(False, 0.0)

    def record_failure(self, seconds: float, now: float) -> None:
        """Count a request that failed after all retries and took `seconds`. Open the breaker if needed."""
        self._append(True, seconds)
        window = self._list_window()
        failed = sum(has_failed for has_failed, _ in window)
        if self.reason or (window and failed >= self.share * len(window)):
            if window:
                self.reason = f"{failed} of its latest {len(window)} requests ({100 * failed / len(window):.0f} %)"
            self.open_until = now + self.break_seconds

    def _append(self, has_failed: bool, seconds: float) -> None:
        self.requests.append((has_failed, seconds))
        if len(self.requests) > self.size:
            self.requests.popleft()

    def _list_window(self) -> list[tuple[bool, float]]:
        """Return the requests in the window, latest first; empty while they are too few."""
        window: list[tuple[bool, float]] = []
        seconds = 0.0
        for request in reversed(self.requests):
            window.append(request)
            seconds += request[1]
            if len(window) >= self.size or (len(window) >= self.min_requests and seconds >= self.seconds):
                return window
        return []
