"""Faults of what a worker depends on: Redis, PostgreSQL, clock, disk, files, model. See `planting.py`."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import redis
from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.retrieval.encoders.registry import KeywordEncoder
from benchbench.local_files.packs import OVERHEAD
from benchbench.local_files.sealed import SEAL_BYTES
from tests.faults.planting import ACTIONS, action
from tests.faults.small_disk import mount
from tests.files.samples import Spoil, spoil, ways

THE_TEST = "the test of faults"  # how its session is called in PostgreSQL, which these faults leave alone
FULL_SECONDS = 3
DISK_BYTES = 4096


@action
def flush() -> None:
    redis.Redis.from_url(settings.REDIS_URL).flushall()


def _tell_redis(subject: signal.Signals) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        os.kill(client.info("server")["process_id"], subject)


action(partial(_tell_redis, signal.SIGKILL), name="kill Redis")
action(partial(_tell_redis, signal.SIGSTOP), name="freeze Redis")


@action
def cut_off() -> None:
    """Break off every session of the database, as where PostgreSQL is restarted."""
    with psycopg.connect(**_database(), autocommit=True) as personal:
        personal.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND application_name <> %s",
            [THE_TEST],
        )


@action
def crowd_out() -> None:
    """Take every connection that PostgreSQL has, for a while."""
    cut_off()
    taken = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(psycopg.connect(**_database()))

    def leave() -> None:
        time.sleep(FULL_SECONDS)
        for each in taken:
            each.close()

    threading.Thread(target=leave, daemon=True).start()


@action
def stop_postgres() -> None:
    """Stop the whole of PostgreSQL at once, as a power cut does: its keeper starts it again."""
    with psycopg.connect(**_database()) as personal:
        (folder,) = personal.execute("SHOW data_directory").fetchone() or ("",)
    postmaster = int(Path(folder, "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGQUIT)
    while Path(f"/proc/{postmaster}").exists():
        time.sleep(0.01)


def _database() -> dict[str, Any]:
    chosen = connection.get_connection_params()
    return {name: chosen[name] for name in ("dbname", "user", "password", "host", "port") if name in chosen}


def _jump(seconds: float) -> None:
    read, read_date = time.time, timezone.now
    time.time = lambda: read() + seconds
    timezone.now = lambda: read_date() + timedelta(seconds=seconds)


action(partial(_jump, 3600), name="clock an hour ahead")
action(partial(_jump, -3600), name="clock an hour back")


@action
def have_another_revision() -> None:
    KeywordEncoder.revision = "another"


@action
def fill_disk() -> None:
    """Give this process, as its folder of vectors, a disk without room for anything."""
    folder = Path(settings.BENCHBENCH_VECTOR_DIR)
    mount(folder, DISK_BYTES)
    (folder / "full").write_bytes(bytes(DISK_BYTES))


def _damage(ending: str, way: Spoil | None) -> None:
    """Spoil every file of a kind; without a way, delete it."""
    files = list(Path(settings.BENCHBENCH_VECTOR_DIR).rglob(f"*.{ending}"))
    if not files:
        os.killpg(0, signal.SIGKILL)  # nothing would be tested
    for file in files:
        file.unlink() if way is None else spoil(file, way)


LAYOUTS = {
    "vectors": {"row": 44, "header": slice(-SEAL_BYTES, None)},
    "counts": {"row": 8, "header": slice(-SEAL_BYTES, None)},
    "sqlite": {"row": 44, "header": slice(0, 100)},
    "pack": {"row": 8, "header": slice(0, OVERHEAD)},
}
DAMAGES: dict[str, Spoil | None] = {
    f"{ending}: {name}": way
    for ending, layout in LAYOUTS.items()
    for name, way in {**ways(**layout), "missing": None}.items()
}
for name, way in DAMAGES.items():
    action(partial(_damage, name.partition(":")[0], way), name=name)


def flaw(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Register what becomes of the vectors (n, d) that a model made."""
    ACTIONS[change.__name__.replace("_", " ")] = change
    return change


@flaw
def raises(created: Any) -> Any:
    raise RuntimeError("CUDA error: device-side assert triggered")


@flaw
def not_a_number(created: Any) -> Any:
    return np.full_like(created, np.nan)


@flaw
def zeros(created: Any) -> Any:
    return np.zeros_like(created)


@flaw
def another_dimension(created: Any) -> Any:
    return created[:, 1:]


@flaw
def too_few_vectors(created: Any) -> Any:
    return created[1:]
