"""Rates of requests and of wrong passwords by user, address and name: settings.BENCHBENCH_API_RATES holds them."""

from math import ceil
from time import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
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


def count_guess(username: str, *, address: str) -> list[str]:
    """Count an attempt on the page of the admin, and return what `uncount` takes it back by if it was no guess.

    A name counts for each address by itself: counted from all of them, anybody could lock its user out of the site.
    Raises Throttled.
    """
    return [count("auth", address), count("name", f"{hidden(username)}:{address}")]


def hidden(username: str) -> str:
    """Return what stands for a name in Redis, where nobody is to read who signs in, or their mistyped passwords."""
    return salted_hmac("apps.accounts", username.casefold()).hexdigest()


def address_of(request: HttpRequest | Request) -> str:
    """Return the address that asks, as BENCHBENCH_PROXIES says to read it."""
    return str(BaseThrottle().get_ident(request))
