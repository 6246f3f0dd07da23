"""Pace of requests over all workers, in Redis: requests at once, and requests per second.

Times are those of the Redis server, so that the clocks of workers need not agree.
"""

import math
import random
import threading
import time
import uuid
from functools import cache

from redis.commands.core import Script

from apps.engines.records import Engine
from apps.operations.queueing import connect

SLICE_SECONDS = 1.0  # after which a thread renews its slot
POLL_SECONDS = 0.02
TOLERANCE_SECONDS = 0.05  # by which a late request does not delay all later ones
LEAST_SECONDS = 5.0  # of an open loop; queries are sent again, in random order, until it is full
PATIENCE_SECONDS = 60.0  # an open loop that cannot keep up sends for at least as long
LONGEST_LOOP = 3  # times its planned length, after which an open loop sends no more

# Takes or renews a slot under a lease: returns 1, or 0 if all are taken. Expired leases are those of killed workers.
TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
# Reserves the next moment at which a request may be sent; returns the microseconds until then.
RESERVE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local moment = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now - ARGV[2])
local following = moment + ARGV[1]
local lifetime = math.ceil(math.max(following - now, 0) / 1000) + 1000
redis.call('SET', KEYS[1], string.format('%.0f', following), 'PX', lifetime)
return math.max(0, math.floor(moment - now))
"""


class StoppedError(Exception):
    """The caller ended the work while a thread waited."""


def count_requests(queries: int, rate: float, least_seconds: float) -> int:
    """Return the requests of an open loop: every query, and more until the loop lasts for `least_seconds`."""
    return max(queries, math.ceil(rate * least_seconds))


def compute_loop_limit(requests: int, rate: float, patience: float) -> float:
    """Return the seconds after which an open loop sends nothing more, at least those of its patience."""
    return max(LONGEST_LOOP * requests / rate, patience)


@cache
def _register_scripts() -> tuple[Script, Script]:
    redis = connect()
    return redis.register_script(TAKE), redis.register_script(RESERVE)


class Slot:
    """A thread's slot among the requests that an engine takes at once. `stop` ends all waiting."""

    def __init__(self, engine: Engine, stop: threading.Event) -> None:
        self._engine, self._stop = engine, stop
        self._take, self._reserve = _register_scripts()
        self._slots, self._next = (f"benchbench:engines:{engine.alias}:{key}" for key in ("slots", "next"))
        self._lease_ms = round((SLICE_SECONDS + engine.timeouts.connect + engine.timeouts.total + 2) * 1000)
        self._member = uuid.uuid4().hex
        self._until = 0.0

    def enter(self) -> None:
        """Have a slot at the moment of the next request. Raises StoppedError and RedisError."""
        self.sleep(0)
        self._hold()
        if self._engine.rate is not None:
            arguments = [round(1e6 / self._engine.rate), round(TOLERANCE_SECONDS * 1e6)]
            self.sleep(int(self._reserve([self._next], arguments)) / 1e6)
            self._hold()

    def leave(self) -> None:
        if self._until:
            self._until = 0.0
            self._take.registered_client.zrem(self._slots, self._member)

    def sleep(self, seconds: float) -> None:
        """Wait. Raises StoppedError if the work is stopped before or meanwhile."""
        if self._stop.wait(max(0.0, seconds)):
            raise StoppedError

    def _hold(self) -> None:
        while time.monotonic() >= self._until:
            if self._take([self._slots], [self._member, self._engine.concurrency, self._lease_ms]):
                self._until = time.monotonic() + SLICE_SECONDS
            else:
                self.sleep(POLL_SECONDS * random.uniform(0.5, 1.5))  # nosec B311: not for a secret
