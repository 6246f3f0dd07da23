"""Deadlines of requests: at its deadline a connection is shut down, so neither headers nor a body can drip longer.

The time limits of sockets concern single reads. A thread of the process shuts down what is late.
"""

import contextlib
import heapq
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

_current = threading.local()  # `deadline`: that of the request that this thread sends


class Deadline:
    """The end of a request, at its deadline or when another thread calls `expire`."""

    def __init__(self) -> None:
        self.is_over = False
        self._is_watched = False
        self._handle: socket.socket | None = None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def watch(self, seconds: float) -> Iterator[None]:
        """Limit the requests that this thread sends in the block to `seconds` in total."""
        self._is_watched = True
        _watchdog.add(time.monotonic() + seconds, self)
        _current.deadline = self
        try:
            yield
        finally:
            _current.deadline = None
            with self._lock:
                self._is_watched = False
                self._replace_handle(None)

    def attach(self, connected: socket.socket) -> None:
        """Make a connection end with this deadline.

        The deadline has a duplicate of the socket, because a connection closes its own before it reads a body without a
        length.
        """
        with self._lock:
            self._replace_handle(connected.dup())
            if self.is_over:
                self._shut_down()

    def expire(self) -> None:
        """End the request now, if it is still running."""
        with self._lock:
            if self._is_watched:
                self.is_over = True
                self._shut_down()

    def _shut_down(self) -> None:
        if self._handle is not None:
            with contextlib.suppress(OSError):  # the other side has closed it
                self._handle.shutdown(socket.SHUT_RDWR)

    def _replace_handle(self, handle: socket.socket | None) -> None:
        if self._handle is not None:
            self._handle.close()
        self._handle = handle


class WatchedConnection:
    """A mixin of urllib3's connections: the deadline of the thread's request ends them.

    The duplicate of the socket stays usable while TLS wraps the original.
    """

    _handle: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        self._handle = connected.dup()
        self._attach()
        return connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._attach()
        super().request(*args, **kwargs)  # type: ignore[misc]

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _attach(self) -> None:
        deadline: Deadline | None = getattr(_current, "deadline", None)
        if deadline is not None and self._handle is not None:
            deadline.attach(self._handle)


class _Watchdog:
    """A thread, started when it is first needed, that expires deadlines."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Deadline]] = []
        self._ordinals = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, due: float, deadline: Deadline) -> None:
        with self._changed:
            heapq.heappush(self._queue, (due, next(self._ordinals), deadline))
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            elif self._queue[0][2] is deadline:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue or self._queue[0][0] > time.monotonic():
                    self._changed.wait(self._queue[0][0] - time.monotonic() if self._queue else None)
                deadline = heapq.heappop(self._queue)[2]
            deadline.expire()


_watchdog = _Watchdog()
