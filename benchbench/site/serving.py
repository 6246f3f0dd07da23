"""The site and its workers as processes of a command, which stops them when it ends."""

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress

from django.conf import settings
from django.contrib.auth import get_user_model

from benchbench.errors import BenchbenchError

START_SECONDS, STOP_SECONDS = 60, 8
Processes = list["subprocess.Popen[bytes]"]


class ServingError(BenchbenchError):
    """The site cannot be served at this address."""

    code = "serving"


def find_free_port(host: str, ports: Sequence[int]) -> int:
    """Return the first free port. Raises ServingError."""
    for port in ports:
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return port
    tried = f"The port {ports[0]} is not" if len(ports) == 1 else f"No port from {ports[0]} to {ports[-1]} is"
    raise ServingError(f"{tried} free at {host}: stop what listens there, or choose another port.")


def give_login(username: str) -> str:
    """Set and return a new password for a superuser, who is created if missing."""
    password = secrets.token_urlsafe(9)
    user, _ = get_user_model().objects.get_or_create(
        username=username, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


@contextmanager
def serve_site(host: str, port: int, *, workers: int, environment: Mapping[str, str]) -> Iterator[Processes]:
    """Run the web server and workers, and stop them at the end; they have STOP_SECONDS together.

    Another worker takes over what a stopped one had begun. They are in sessions of their own, so that Ctrl-C reaches
    only this process, which then stops them in order. Raises ServingError if the web server does not start.
    """
    web = ["-m", "daphne", "-b", host, "-p", str(port), "--verbosity", "0", "benchbench.asgi:application"]
    declared = ["env", *(f"{name}={value}" for name, value in environment.items()), sys.executable]
    commands = [[*declared, *arguments] for arguments in [web, *[["manage.py", "worker"]] * workers]]
    processes = [subprocess.Popen(each, cwd=settings.BASE_DIR, start_new_session=True) for each in commands]
    try:
        _await_site(host, port, processes[0])
        yield processes
    finally:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(deadline - time.monotonic(), 0))
            process.kill()


def _await_site(host: str, port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.2)
    raise ServingError(f"The web server did not start on port {port}; see its message above.")
