"""The breaker of a server: a server whose requests nearly all fail for good is left alone for a while."""

from collections import deque
from dataclasses import dataclass, field

from apps.retrieval.llms.base import LLMError

REQUESTS = 30  # the latest requests that are counted,
SECONDS = 300.0  # or fewer, as soon as they took so long together,
LEAST = 5  # but at least so many
SHARE = 0.9  # of them that failed, from which on the server is left alone
BREAK_SECONDS = 30


@dataclass(slots=True)
class Breaker:
    """Opens when at least SHARE of a server's latest requests failed for good, after their retries.

    The window is of requests, so that a server that refuses some queries in a row is asked the others too, and bounded
    in seconds, so that a server whose every request runs into its time limit costs minutes and not hours. A refusal
    that no retry can mend (a wrong key, a prompt that is too long) counts neither way. After BREAK_SECONDS one request
    decides: it closes the breaker or opens it again. Times are those of the monotonic clock.
    """

    requests: deque[tuple[bool, float]] = field(default_factory=lambda: deque(maxlen=REQUESTS))  # failed, seconds
    reason: str = ""  # why it is open, or was before the request that decides; "" while it is closed
    open_until: float = 0.0

    def check(self, server: str, now: float) -> None:
        """Raise LLMError while the server is left alone."""
        if now < self.open_until:
            raise LLMError(
                f"The language model server {server} is not asked for {BREAK_SECONDS} seconds, because it failed "
                f"{self.reason}: start it or look at its log, then retry what failed."
            )

    def record_success(self) -> None:
        if self.reason:
            self.requests.clear()
            self.reason = ""
        self.requests.append((False, 0.0))

    def record_failure(self, seconds: float, now: float) -> None:
        """Count a request that failed for good after some seconds, and open where that is one too many."""
        self.requests.append((True, seconds))
        window = self._window()
        failed = sum(has_failed for has_failed, _ in window)
        if self.reason or (window and failed >= SHARE * len(window)):
            if window:
                self.reason = f"{failed} of its latest {len(window)} requests ({failed / len(window):.0%})"
            self.open_until = now + BREAK_SECONDS

    def _window(self) -> list[tuple[bool, float]]:
        """The requests that count, the latest first; none while they are too few to tell."""
        window: list[tuple[bool, float]] = []
        seconds = 0.0
        for request in reversed(self.requests):
            window.append(request)
            seconds += request[1]
            if len(window) >= REQUESTS or (len(window) >= LEAST and seconds >= SECONDS):
                return window
        return []
