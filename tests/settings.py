"""The settings of the tests: the site's own, on services that no site uses.

Django reads settings before pytest reads any conftest, so the choice of services is here. Tests never use the
servers that DATABASE_URL and REDIS_URL name: they empty both.
"""

import os
from pathlib import Path

from benchbench.embedded import locks, postgres

TEST_RUNS = Path(__file__).resolve().parent.parent / ".benchbench" / "tests"


def claim() -> Path:
    """Return the data folder of the first free slot, ours until this process ends: two test runs share nothing."""
    TEST_RUNS.mkdir(parents=True, exist_ok=True)
    slot = 1
    while locks.try_exclusive(TEST_RUNS / f"{slot}.lock") is None:
        slot += 1
    return TEST_RUNS / str(slot)


os.environ.pop("DATABASE_URL", None)
os.environ.pop("REDIS_URL", None)
# A process that a test starts with these settings finds the slot of its parent.
if "BENCHBENCH_TEST_DATA_DIR" not in os.environ:
    os.environ["BENCHBENCH_TEST_DATA_DIR"] = str(claim())
data_dir = Path(os.environ["BENCHBENCH_TEST_DATA_DIR"])
# Each of pytest-xdist's workers, gw0 and up, has services of its own in the slot: tests empty Redis and start workers.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    data_dir /= worker
os.environ["BENCHBENCH_DATA_DIR"] = str(data_dir)
os.environ["BENCHBENCH_LOCK_DIR"] = str(data_dir)  # no site's benchmark must hold up a test
# What a crash of the machine would lose is of no use after it.
postgres.OPTIONS |= {"fsync": "off", "full_page_writes": "off"}
# Of torch and NumPy, also in processes that a test starts. On small models, and where other tests keep the other cores
# busy, threads wait for each other for longer than they work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchbench.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
WHITENOISE_AUTOREFRESH = True  # else each test client reads where all 264 static files lie, for a tenth of a second
# The thread that renews leases sees nothing of a transaction in which a test runs, and would take the lease for lost at
# its first look: it must not come to one while a busy machine works. Tests of leases set their own.
BENCHBENCH_LEASE_SECONDS = 3600
# What takes long on a busy machine is resolved at once all the same; the test of that limit sets its own.
BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_WALL_MS = 600_000
BENCHBENCH_API_RATES = dict.fromkeys(BENCHBENCH_API_RATES, (100000, 60))  # noqa: F405 (tests ask often)
