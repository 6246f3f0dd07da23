"""Tables and Redis emptied, and processes that work on the services of the tests."""

import contextlib
import functools
import os
import subprocess
import sys
import urllib.request
from typing import Any

import redis
from django.conf import settings
from django.db import connection, transaction

from benchbench import embedded
from benchbench.access import ROLES
from tests.ports import find_free_port
from tests.waiting import until


@functools.cache
def emptying() -> str:
    """The statements that delete all rows but content types, permissions and roles, which migrations made."""
    hits = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    roles = "SELECT id FROM auth_group WHERE name IN ({})".format(", ".join(f"'{name}'" for name in ROLES))
    beyond = {
        "auth_group": f" WHERE id NOT IN ({roles})",
        "auth_group_permissions": f" WHERE group_id NOT IN ({roles})",
    }
    deleted = sorted(hits - {"django_content_type", "auth_permission"})
    tables = [connection.ops.quote_name(name) for name in deleted]
    # The lock waits for what the last process of a test still does; a replica does not check foreign keys.
    before = f"LOCK {', '.join(tables)}", "SET LOCAL session_replication_role = replica"
    return "; ".join([*before, *(f"DELETE FROM {name}{beyond.get(name, '')}" for name in deleted)])


def empty_tables() -> None:
    """Leave no row of a test that commits to the next.

    Django truncates every table, and makes content types and permissions again: a third of a second, where this takes a
    hundredth.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(emptying())


@functools.cache
def kept_redis() -> "redis.Redis":
    return redis.Redis.from_url(settings.REDIS_URL)  # to connect takes longer than to empty


def environment_of_processes() -> dict[str, str]:
    """The environment of a process (a worker, a server) that is to work on the database and Redis of the tests."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "benchbench.settings",
        "DATABASE_URL": embedded.find_places().database_url(str(connection.settings_dict["NAME"])),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_WALL_MS": str(settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_WALL_MS),
    }


def stop(started: list["subprocess.Popen[bytes]"]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        process.kill()


def starting(processes: list["subprocess.Popen[bytes]"]) -> Any:
    """Return what starts `manage.py …` (or another module), its work cut so small that a bar moves."""
    environment = environment_of_processes() | {"BENCHBENCH_BATCH_SECONDS": "0"}

    def start(*arguments: str, **more: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, *arguments]
        processes.append(subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment | more))
        return processes[-1]

    return start


def serving(manage: Any, *options: str, **more: str) -> str:
    """Serve a site by daphne, as in production; return its address."""
    port = find_free_port()
    daphne = ("-m", "daphne", "-v", "0", "-b", "127.0.0.1", "-p", str(port), *options)
    server = manage(*daphne, "benchbench.asgi:application", **more)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/admin/login/", timeout=30):
            return True
        return False

    until(answers, "an answer of the server")
    return address
