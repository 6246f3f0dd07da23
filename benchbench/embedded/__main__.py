"""Commands of the embedded services: `remove` is for `make clean`, `keep` starts a keeper.

The keeper is the process that keeps the services running while they are used, and stops them afterwards. Twice a second
it tries to take an exclusive lock that every process using the services holds shared. So it does not matter how the
last one ends: it may return, be terminated, be killed or be a forked child that outlived its parent. An exit handler
would miss all but the first. Until then the keeper restarts services that were killed.
"""

import os
import sys
import time

from benchbench import embedded
from benchbench.busy import open_outputs
from benchbench.embedded import locks
from benchbench.embedded.places import EmbeddedError, Places, find_places
from benchbench.embedded.postgres import Postgres
from benchbench.embedded.service import Redis

LOOK_SECONDS = 0.5


def keep(own_lock: int) -> None:
    """Wait, stop the services, end. `own_lock` is the descriptor of the lock that shows a running keeper."""
    if os.fork():
        os._exit(0)  # the child is orphaned, so that its starter has no process to wait for
    places = find_places()
    while (users := locks.try_exclusive(places.users_lock)) is None:
        revive(places)
        time.sleep(LOOK_SECONDS)
    with locks.holding(users):
        os.close(own_lock)  # before the users' lock: the next process must not mistake this keeper for its own
        for service in (Redis(places), Postgres(places)):
            service.stop()


def revive(places: Places) -> None:
    """Restart each service that ran and has no process left, unless another process is starting or stopping them."""
    lock = locks.try_exclusive(places.start_lock)
    if lock is None:
        return
    with locks.holding(lock):
        for service in (Postgres(places), Redis(places)):
            if service.lock.exists() and not locks.is_held(service.lock):
                try:
                    service.start()
                except EmbeddedError as error:  # such as a full disk, which may pass
                    print(error, flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["keep", lock]:
            keep(int(lock))
        case ["remove"]:
            # The data folder of each test run is inside this checkout's own.
            for lock_file in sorted(embedded.find_places().data.rglob("start.lock")):
                os.environ["BENCHBENCH_DATA_DIR"] = str(lock_file.parent)
                embedded.remove()
        case _:
            sys.exit("Usage: python -m benchbench.embedded remove")


open_outputs()
try:
    main()
except EmbeddedError as error:
    sys.exit(str(error))
