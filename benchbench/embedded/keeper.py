"""The process that keeps the embedded services running while they are used, and stops them afterwards.

Twice a second it tries to hold alone the lock that every user of the services holds shared. So it does not matter how
the last one leaves: it may return, be terminated, be killed or be a forked child that outlived its parent. An exit
handler would miss all but the first. Until then it starts again whichever service was killed.
"""

import os
import subprocess
import sys
import time

from benchbench.embedded import locks
from benchbench.embedded.places import BASE_DIR, EmbeddedError, Places, here
from benchbench.embedded.postgres import Postgres
from benchbench.embedded.redis_server import Redis

LOOK_SECONDS = 0.5


def start(places: Places) -> None:
    """Return when a keeper lives, having started one if need be."""
    lock = locks.try_exclusive(places.data / "keeper.lock")
    if lock is None:
        return
    with locks.holding(lock), (places.data / "keeper.log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "benchbench.embedded", "keep", str(lock)],
            cwd=BASE_DIR,
            env=os.environ | {"BENCHBENCH_DATA_DIR": str(places.data)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C and a closed terminal are for the process that started it
            pass_fds=(lock,),
            check=True,
        )


def keep(own_lock: int) -> None:
    """Wait, stop the services, end. `own_lock` is the descriptor that tells others a keeper lives."""
    if os.fork():
        os._exit(0)  # the child belongs to nobody: its starter is not left with a process to wait for
    places = here()
    while (users := locks.try_exclusive(places.users_lock)) is None:
        revive(places)
        time.sleep(LOOK_SECONDS)
    with locks.holding(users):
        os.close(own_lock)  # before the users' lock: whoever comes next must not take this one for theirs
        for service in (Redis(places), Postgres(places)):
            service.stop()


def revive(places: Places) -> None:
    """Start again each service that ran and of which no process is left, unless somebody starts or stops them now."""
    lock = locks.try_exclusive(places.start_lock)
    if lock is None:
        return
    with locks.holding(lock):
        for service in (Postgres(places), Redis(places)):
            if service.lock.exists() and not locks.is_held(service.lock):
                try:
                    service.start()
                except EmbeddedError as error:  # such as a full disk: it may be mended
                    print(error, flush=True)
