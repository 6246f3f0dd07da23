"""How often a user may ask, by what it costs: settings.BENCHBENCH_API_RATES has the rates."""

from math import ceil
from time import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle


class Throttle(BaseThrottle):
    """Counts the requests of a user (without one, of an address) in windows of fixed length, in Redis.

    REST framework's own throttle reads a list and writes it back, so that requests at the same time count as one.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        scope = view.throttle_scope(request.method)
        limit, seconds = settings.BENCHBENCH_API_RATES[scope]
        who = request.user.pk if request.user and request.user.is_authenticated else self.get_ident(request)
        now = time()
        window = int(now // seconds)
        self.left = (window + 1) * seconds - now
        key = f"throttle:{scope}:{who}:{window}"
        if cache.add(key, 1, timeout=2 * seconds):
            return True
        return cache.incr(key) <= limit

    def wait(self) -> int:
        """Return the seconds until the next window, for Retry-After."""
        return max(1, ceil(self.left))
