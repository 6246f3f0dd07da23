"""The site and a worker as processes beside the demo."""

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from django.conf import settings
from django.contrib.auth.models import User

from benchbench.errors import BenchbenchError

HOST = "127.0.0.1"
USERNAME = "demo"
START_SECONDS = 60


def give_login() -> str:
    """Return a fresh password for the staff user `demo`, who is made if need be."""
    password = secrets.token_urlsafe(9)
    user, _ = User.objects.get_or_create(username=USERNAME, defaults={"is_staff": True, "is_superuser": True})
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def free_port(first: int) -> int:
    """Return the first port from `first` on that nobody listens on."""
    for port in range(first, min(first + 100, 65_536)):
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port
    raise BenchbenchError(f"No port from {first} to {first + 99} is free: name another with --port.")


@contextmanager
def site_and_worker(port: int) -> Iterator[None]:
    """Run the web server and a worker, and stop both at the end."""
    web = f"-m daphne -b {HOST} -p {port} --verbosity 0 benchbench.asgi:application"
    commands = [[sys.executable, *options.split()] for options in (web, "manage.py worker")]
    # A session of their own: Ctrl-C reaches the demo alone, which then stops them in order.
    processes = [subprocess.Popen(command, cwd=settings.BASE_DIR, start_new_session=True) for command in commands]
    try:
        _await_site(port, processes[0])
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()


def _await_site(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.2)
    raise BenchbenchError(f"The web server did not start on port {port}; its own message is above.")
