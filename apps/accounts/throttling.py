"""Limits of requests and wrong passwords by user, address and name, set in BENCHBENCH_API_RATES."""

from contextlib import suppress
from math import ceil
from time import time

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle


def count(scope: str, client: object) -> str:
    """Count one request of `client` in a window of fixed length in Redis. Return the key for `uncount`.

    Raises Throttled above the rate of the scope. REST framework's own throttle reads a list and writes it back, so it
    counts simultaneous requests as one.
    """
    limit, seconds = settings.BENCHBENCH_API_RATES[scope]
    now = time()
    window = int(now // seconds)
    key = f"throttle:{scope}:{client}:{window}"
    if not cache.add(key, 1, timeout=2 * seconds) and cache.incr(key) > limit:
        raise Throttled(wait=max(1, ceil((window + 1) * seconds - now)))
    return key


def uncount(key: str) -> None:
    """Undo one `count`. Its window may be over: a person can spend minutes at a sign-in service."""
    with suppress(ValueError):
        cache.decr(key)


def count_guess(username: str, *, address: str) -> list[str]:
    """Count a sign-in attempt on the admin page. Return the keys for `uncount` if the password was right.

    Names are counted per address: a count over all addresses would let anyone lock a user out. Raises Throttled.
    """
    return [count("auth", address), count("name", f"{hash_name(username)}:{address}")]


def hash_name(username: str) -> str:
    """Return the keyed hash of a name, so that Redis reveals neither user names nor passwords typed as names."""
    return salted_hmac("apps.accounts", username.casefold()).hexdigest()


def find_address(request: HttpRequest | Request) -> str:
    """Return the client's address, read as BENCHBENCH_PROXIES configures."""
    return str(BaseThrottle().get_ident(request))
