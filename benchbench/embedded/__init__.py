"""PostgreSQL with pgvector and Redis, started from wheels where no server is configured.

For development and evaluation: one command on a fresh machine, and the same two services as in production. The first
call of `ensure()` starts them. They serve all processes of the checkout on Unix sockets and stop with the last one.
If DATABASE_URL and REDIS_URL are set, as in production, this package does nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchbench.embedded import locks, places
from benchbench.embedded.places import EmbeddedError, find_places
from benchbench.embedded.postgres import Postgres
from benchbench.embedded.service import Redis, Service, wait_until

__all__ = ["EmbeddedError", "ensure", "find_places", "remove", "stop"]

# The locks of this process, by data folder, held until it ends. A forked child shares them and so uses the services
# too. A started program does not and calls `ensure()` itself.
_in_use: dict[Path, int] = {}


def ensure() -> None:
    """Start each service without a URL in the environment, and keep it running while this process lives.

    Returns when the services answer: after about a second, or a few milliseconds if they run. May be called often, by
    many processes at once, and after any crash. Raises EmbeddedError.
    """
    paths = places.find_places()
    services: list[Service] = []
    if not os.environ.get("DATABASE_URL"):
        services.append(Postgres(paths))
    if not os.environ.get("REDIS_URL"):
        services.append(Redis(paths))
    if not services:
        return
    paths.prepare()
    with locks.holding(locks.lock_exclusive(paths.start_lock)):
        if paths.data not in _in_use:
            _in_use[paths.data] = locks.lock_shared(paths.users_lock)  # waits for a keeper that is stopping them
        _start_keeper(paths)
        for service in services:
            service.start()


def stop() -> None:
    """Stop both services. Raises `EmbeddedError` if another process uses them."""
    paths = places.find_places()
    if not paths.data.exists():
        return
    paths.prepare()
    with locks.holding(locks.lock_exclusive(paths.start_lock)):
        if not wait_until(lambda: not locks.is_held(paths.users_lock), patience_s=3):
            raise EmbeddedError(
                f"Other processes use the services in {paths.data}: stop the site, the workers and the tests first."
            )
        # A process that starts now waits for the start lock.
        with locks.holding(locks.lock_exclusive(paths.users_lock)):
            for service in (Redis(paths), Postgres(paths)):
                service.stop()


def remove() -> None:
    """Stop both services and delete their data."""
    stop()
    paths = places.find_places()
    for folder in (paths.postgres, paths.runtime):
        shutil.rmtree(folder, ignore_errors=True)


def _start_keeper(paths: places.Places) -> None:
    """Start a keeper unless one runs; return when it runs."""
    lock = locks.try_exclusive(paths.data / "keeper.lock")
    if lock is None:
        return
    with locks.holding(lock), (paths.data / "keeper.log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "benchbench.embedded", "keep", str(lock)],
            cwd=places.BASE_DIR,
            env=os.environ | {"BENCHBENCH_DATA_DIR": str(paths.data)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C and a closed terminal are for the process that started it
            pass_fds=(lock,),
            check=True,
        )
