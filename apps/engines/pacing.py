"""Pace of requests over all workers, in Redis: requests at once, and requests per second.

Times are those of the Redis server, so that the clocks of workers need not agree.
"""

import random
import threading
import time
import uuid

import django_rq

SLICE_SECONDS = 1.0  # for which a thread has a slot; then one that waits in another worker takes its turn
POLL_SECONDS = 0.02
TOLERANCE_SECONDS = 0.05  # by which a late request does not delay all later ones

# Takes or renews a slot under a lease: returns 1, or 0 if all are taken. Expired leases are those of killed workers.
TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    if redis.call('EXISTS', KEYS[2]) == 1 then
        redis.call('ZREM', KEYS[1], ARGV[1])
        return 0
    end
elseif redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
    redis.call('SET', KEYS[2], 1, 'PX', 200)
    return 0
end
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


class Pacer:
    """The pace of one engine. Threads share it; each has a `Slot`."""

    def __init__(
        self, alias: str, *, concurrency: int, rate: float | None, request_seconds: float, stop: threading.Event
    ) -> None:
        self._redis = django_rq.get_connection("default")
        self._take, self._reserve = self._redis.register_script(TAKE), self._redis.register_script(RESERVE)
        self._slots, self._waiting, self._next = (
            f"benchbench:engines:{alias}:{key}" for key in ("slots", "waiting", "next")
        )
        self._concurrency, self._rate = concurrency, rate
        self._lease_ms = round((SLICE_SECONDS + request_seconds + 2) * 1000)
        self._stop = stop

    def take(self, member: str) -> None:
        """Wait until `member` has a slot. Raises StoppedError and RedisError."""
        while not self._take([self._slots, self._waiting], [member, self._concurrency, self._lease_ms]):
            self.sleep(POLL_SECONDS * random.uniform(0.5, 1.5))  # nosec B311: not for a secret

    def release(self, member: str) -> None:
        self._redis.zrem(self._slots, member)

    def wait_for_turn(self) -> None:
        """Wait for the moment of the next request, if the engine has a rate. Raises StoppedError and RedisError."""
        if self._rate is not None:
            microseconds = self._reserve([self._next], [round(1e6 / self._rate), round(TOLERANCE_SECONDS * 1e6)])
            self.sleep(int(microseconds) / 1e6)

    def sleep(self, seconds: float) -> None:
        if seconds > 0 and self._stop.wait(seconds):
            raise StoppedError


class Slot:
    """A thread's slot among the requests that an engine takes at once."""

    def __init__(self, pacer: Pacer) -> None:
        self._pacer = pacer
        self._member = uuid.uuid4().hex
        self._until = 0.0

    def enter(self) -> None:
        """Have a slot, and wait for the moment of the next request."""
        if time.monotonic() >= self._until:
            self._pacer.take(self._member)
            self._until = time.monotonic() + SLICE_SECONDS
        self._pacer.wait_for_turn()

    def leave(self) -> None:
        self._until = 0.0
        self._pacer.release(self._member)
