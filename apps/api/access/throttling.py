"""Rates of requests by user, address and name, by cost: settings.BENCHBENCH_API_RATES holds them."""

from math import ceil
from time import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle


def count(scope: str, who: Any) -> str:
    """Count one of `who` in a window of fixed length, in Redis, and return what `uncount` takes it back by.

    Raises Throttled past the rate of the scope. REST framework's own throttle reads a list and writes it back, so that
    requests at the same time count as one.
    """
    limit, seconds = settings.BENCHBENCH_API_RATES[scope]
    now = time()
    window = int(now // seconds)
    key = f"throttle:{scope}:{who}:{window}"
    if not cache.add(key, 1, timeout=2 * seconds) and cache.incr(key) > limit:
        raise Throttled(wait=max(1, ceil((window + 1) * seconds - now)))
    return key


def uncount(key: str) -> None:
    """Take back what `count` counted."""
    cache.decr(key)


class Throttle(BaseThrottle):
    """Counts the requests of a user; without one, of an address."""

    def allow_request(self, request: Request, view: Any) -> bool:
        known = request.user and request.user.is_authenticated
        count(view.throttle_scope(request.method), request.user.pk if known else address_of(request))
        return True


def address_of(request: HttpRequest | Request) -> str:
    """Return the address that asks, as BENCHBENCH_PROXIES says to read it."""
    return str(BaseThrottle().get_ident(request))
