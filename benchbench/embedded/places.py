"""Folders of the embedded services of a checkout: data and sockets."""

import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from benchbench.errors import BenchbenchError

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATABASE = USER = "benchbench"
PORT = 5432  # only names the socket: no service listens on the network
FOR_ROOT = Path("/var/lib/benchbench")


@dataclass(frozen=True)
class Places:
    """The folders, sockets and locks that follow from one data folder; computing them touches nothing."""

    data: Path

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{os.geteuid()}:{self.data}".encode()).hexdigest()[:12]

    @property
    def runtime(self) -> Path:
        """Return the folder of the sockets. It is short: a socket's path is limited to 107 bytes, and Redis truncates.

        It is not under XDG_RUNTIME_DIR or TMPDIR, which differ between the shells, services and jobs of one user.
        """
        return Path("/tmp") / f"benchbench-{self.digest}"  # nosec # its owner is checked

    @property
    def redis_socket(self) -> Path:
        return self.runtime / "redis.sock"

    @property
    def postgres(self) -> Path:
        """Return the folder of the cluster and its log.

        PostgreSQL refuses to run as root. For root it runs as an unprivileged user, who may be unable to reach a
        checkout (such as one under /root). The parents' permissions are left alone, so the cluster is outside then, and
        the data folder holds a link to it.
        """
        return FOR_ROOT / self.digest if self.as_root else self.data / "postgres"

    @property
    def as_root(self) -> bool:
        return os.geteuid() == 0

    @property
    def start_lock(self) -> Path:
        """Return the lock held while services are started or stopped by hand: one process at a time."""
        return self.data / "start.lock"

    @property
    def users_lock(self) -> Path:
        """Return the lock that every process using the services holds shared. An exclusive holder may stop them."""
        return self.data / "users.lock"

    def database_url(self, database: str = DATABASE) -> str:
        return f"postgresql://{USER}@/{database}?host={self.runtime}&port={PORT}"

    def redis_url(self) -> str:
        return f"unix://{self.redis_socket}?db=0"

    def prepare(self) -> None:
        """Make the two folders. Raises EmbeddedError if either belongs to another user."""
        try:
            self.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(
                f"The data folder {self.data} cannot be created ({error.strerror}). Make it writable, "
                "or name another one in BENCHBENCH_DATA_DIR."
            ) from error
        if (owner := self.data.stat().st_uid) != os.geteuid():
            raise EmbeddedError(
                f"The data folder {self.data} belongs to user {owner}, but this process runs as user {os.geteuid()}. "
                "Run as its owner, or name another folder in BENCHBENCH_DATA_DIR."
            )
        make_private(self.runtime)


def find_places() -> Places:
    """Return the places of this checkout's data folder: BENCHBENCH_DATA_DIR, by default `.benchbench`."""
    return Places((BASE_DIR / (os.environ.get("BENCHBENCH_DATA_DIR") or ".benchbench")).resolve())


def find_account() -> tuple[int, int]:
    """Return the user and group that PostgreSQL runs as: our own, or, for root, those of the unprivileged system user.

    Raises EmbeddedError if root has no such user.
    """
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedError(
            "PostgreSQL cannot run as root, and the user named 'nobody' does not exist. Run as an "
            "ordinary user, or set DATABASE_URL."
        ) from None
    return nobody.pw_uid, nobody.pw_gid


def make_private(folder: Path) -> None:
    """Make `folder` for the service account alone. Raises EmbeddedError if another user made it first."""
    user, group = find_account()
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), user):
        raise EmbeddedError(f"{folder} was created by user {status.st_uid}, so it is not safe to use. Remove it.")
    os.chown(folder, user, group)
    folder.chmod(0o700)


class EmbeddedError(BenchbenchError):
    """An embedded service cannot be started, reached or stopped; the message ends with the last lines of its log."""

    code = "embedded"
    status = 503
