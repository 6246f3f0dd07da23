"""The embedded services, seen from outside: real processes that start, leave and die in every way they can."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import dj_database_url
import psycopg
import pytest
import redis

from benchbench import embedded
from benchbench.embedded import locks
from tests.checkout import CHECKOUT
from tests.waiting import until

pytestmark = pytest.mark.thorough

USE = "from benchbench import embedded; embedded.ensure(); print('ready', flush=True); input()"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder of its own, in which the tests of this module take turns."""
    folder = tmp_path_factory.mktemp("embedded")
    yield folder
    python("-m", "benchbench.embedded", "remove", data=folder).wait(timeout=120)


@pytest.fixture
def home(data, monkeypatch):
    """That folder as this process's own, free of users before and after."""
    monkeypatch.setenv("BENCHBENCH_DATA_DIR", str(data))
    yield data
    until(lambda: not running(data))


def python(*arguments, data, **environment):
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        env=os.environ | {"BENCHBENCH_DATA_DIR": str(data)} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class User:
    """A process that uses the services until it is informed to leave."""

    def __init__(self, data, script=USE):
        self.process = python("-c", script, data=data)

    def ready(self):
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()
        return self

    def leave(self):
        self.process.communicate("\n", timeout=120)

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=120)


def running(data):
    return any(locks.is_held(data / f"{name}.lock") for name in ("postgres", "redis"))


def postmaster(data):
    return int((data / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0])


def server_ids(data):
    with redis.Redis.from_url(embedded.find_places().redis_url()) as client:
        return postmaster(data), int(client.info("server")["process_id"])


def rows(statement):
    with psycopg.connect(embedded.find_places().database_url(), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_the_addresses_touch_nothing_and_suit_the_clients(tmp_path, monkeypatch):
    deep = tmp_path / ("a folder of many letters " * 8)
    monkeypatch.setenv("BENCHBENCH_DATA_DIR", str(deep))
    options = dj_database_url.parse(embedded.find_places().database_url())["OPTIONS"]
    socket = redis.Redis.from_url(embedded.find_places().redis_url()).connection_pool.connection_kwargs["path"]
    assert len(f"{options['host']}/.s.PGSQL.{options['port']}") <= 107
    assert len(socket) <= 107
    assert not deep.exists()
    assert not Path(options["host"]).exists()


def test_processes_share_services_and_the_last_stops_them(home):
    first, second = User(home), User(home)
    first.ready(), second.ready()
    servers = server_ids(home)
    rows("CREATE EXTENSION IF NOT EXISTS vector")
    assert rows("SELECT '[1,2]'::vector <=> '[2,4]'::vector, upper('é')") == [(0.0, "É")]
    words = ["a", "B", "b", "Z", "é", "10", "9"]
    listed = ", ".join(f"('{word}')" for word in words)
    assert [word for (word,) in rows(f"SELECT word FROM (VALUES {listed}) t(word) ORDER BY word")] == sorted(words)
    first.leave()
    time.sleep(0.5)
    assert server_ids(home) == servers
    second.leave()
    until(lambda: not running(home))


def test_killed_service_restarts_while_in_use(home):
    user = User(home).ready()
    killed = server_ids(home)
    for server in killed:
        os.kill(server, signal.SIGKILL)

    def answers_again():
        try:
            return not set(server_ids(home)) & set(killed) and rows("SELECT 1") == [(1,)]
        except (redis.RedisError, psycopg.OperationalError, FileNotFoundError):
            return False

    until(answers_again)
    user.leave()
    until(lambda: not running(home))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_services_stop_however_the_last_process_dies(home, number):
    user = User(home).ready()
    user.process.send_signal(number)
    user.process.communicate(timeout=120)
    until(lambda: not running(home))


def test_killed_servers_are_started_again_with_their_data(home):
    user = User(home).ready()
    rows("CREATE TABLE kept AS SELECT 42 AS answer")
    rows("CHECKPOINT")
    for server in server_ids(home):
        os.kill(server, signal.SIGKILL)
    newcomer = User(home).ready()
    assert rows("SELECT answer FROM kept") == [(42,)]
    rows("DROP TABLE kept")
    user.leave(), newcomer.leave()


def test_leftovers_of_a_crash_do_not_prevent_startup(home):
    """As after a reboot, or in a restarted container: the files name processes that are someone else's by now."""
    User(home).ready().leave()
    until(lambda: not running(home))
    folder = Path(dj_database_url.parse(embedded.find_places().database_url())["OPTIONS"]["host"])
    cluster = home / "postgres" / "cluster"
    for file in (cluster / "postmaster.pid", folder / ".s.PGSQL.5432.lock"):
        file.write_text(f"{os.getpid()}\n{cluster}\n{int(time.time())}\n5432\n{folder}\n\n")
    (folder / ".s.PGSQL.5432").touch()
    (folder / "redis.sock").touch()
    user = User(home).ready()
    assert rows("SELECT 1") == [(1,)]
    user.leave()


def test_forked_child_neither_stops_nor_loses_the_services(home, tmp_path):
    fork = """
import os, time
from benchbench import embedded
embedded.ensure()
if os.fork() == 0:
    raise SystemExit  # leaves as a child of a worker may, exit handlers and all
os.wait()
if os.fork() == 0:
    os.close(0), os.close(1), os.close(2)
    while os.path.exists(STAYS):
        time.sleep(0.02)
    os._exit(0)
print("ready", flush=True)
input()
"""
    stays = tmp_path / "stays"
    stays.touch()
    parent = User(home, fork.replace("STAYS", repr(str(stays)))).ready()
    servers = server_ids(home)
    parent.kill()
    time.sleep(0.5)
    assert server_ids(home) == servers, "the second child still uses them"
    stays.unlink()
    until(lambda: not running(home))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="The keeper is found through /proc, which is Linux's.")
def test_a_killed_keeper_is_replaced(home):
    user = User(home).ready()
    keepers = [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if (process / "environ").exists() and is_keeper_of(home, process)
    ]
    assert len(keepers) == 1
    os.kill(keepers[0], signal.SIGKILL)
    user.leave()
    assert running(home), "nobody is left to stop them"
    User(home).ready().leave()
    until(lambda: not running(home))


def is_keeper_of(data, process):
    try:
        arguments = (process / "cmdline").read_bytes().split(b"\0")
        environment = (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile, or is another user's
        return False
    return b"keep" in arguments and f"BENCHBENCH_DATA_DIR={data}".encode() in environment


def test_services_in_use_are_not_removed(home):
    user = User(home).ready()
    with pytest.raises(embedded.EmbeddedError, match=f"Other processes use the services in {home}"):
        embedded.remove()
    assert rows("SELECT 1") == [(1,)]
    user.leave()


def test_service_with_a_url_is_not_started(tmp_path):
    script = "from benchbench import embedded; embedded.ensure()"
    urls = {"DATABASE_URL": "postgresql://elsewhere/db", "REDIS_URL": "redis://elsewhere"}
    process = python("-c", script, data=tmp_path / "unused", **urls)
    assert process.wait(timeout=120) == 0
    assert not (tmp_path / "unused").exists()


def test_command_explains_why_a_service_cannot_start(tmp_path):
    (tmp_path / "file").touch()
    process = python("manage.py", "migrate", data=tmp_path / "file" / "inside")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert error.startswith(f"The data folder {tmp_path / 'file' / 'inside'} cannot be created (Not a directory).")
    assert "Traceback" not in error


@pytest.mark.parametrize(("name", "status"), [("gate", 2), ("createsuperuser", 1)])
def test_command_without_tables_says_to_run_migrate(home, name, status):
    process = python("manage.py", name, data=home, DJANGO_SETTINGS_MODULE="benchbench.settings")
    answer, error = process.communicate(timeout=120)
    assert (process.returncode, answer) == (status, "")
    assert re.fullmatch(
        r"The tables of the database are not up to date: \d+ migrations are not applied. Run `manage.py migrate`.\n",
        error,
    )


def test_a_script_that_sets_django_up_has_the_services(home):
    script = """
import django; django.setup()
from django.db import connection
connection.ensure_connection()
from django.core.cache import cache
cache.set("a", 1)
print("ready", flush=True); input()
"""
    environment = {"DJANGO_SETTINGS_MODULE": "benchbench.settings"}
    process = python("-c", script, data=home, **environment)
    assert process.communicate("\n", timeout=120) == ("ready\n", "")


def test_failed_server_start_shows_the_log_tail(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHBENCH_DATA_DIR", str(tmp_path))
    User(tmp_path).ready().leave()
    until(lambda: not running(tmp_path))
    with (tmp_path / "postgres" / "cluster" / "postgresql.conf").open("a") as configuration:
        configuration.write("shared_buffer = 1\n")
    _, error = python("manage.py", "migrate", data=tmp_path).communicate(timeout=120)
    assert error.startswith("The embedded PostgreSQL failed at pg_ctl.")
    assert 'unrecognized configuration parameter "shared_buffer"' in error
    embedded.remove()
