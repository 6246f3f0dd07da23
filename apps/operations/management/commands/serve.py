"""Serve the site with a worker until stopped."""

import signal
import time
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandParser
from django.db import DatabaseError, close_old_connections, connection

from apps.operations.commands import UseCaseCommand
from apps.operations.models import Operation, Status
from apps.operations.progress import compute_each_progress
from benchbench.database.tables import explain_unusable
from benchbench.database.upgrading import upgrade
from benchbench.durations import format_duration
from benchbench.errors import BenchbenchError
from benchbench.site.serving import Processes, ServingError, find_free_port, give_login, serve_site

USERNAME = "admin"
LOOK_SECONDS, SHOW_SECONDS = 1.0, 10.0


class Command(UseCaseCommand):
    help = """Serve the site with a worker until stopped (Ctrl-C), and print what the worker does.

On the embedded services this command updates the database of an older version, after a backup that it restores if the
update fails, and makes the first user. Work that Ctrl-C interrupts continues at the next start.

  benchbench serve
  benchbench serve 127.0.0.1:8080 --workers 2
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "address", nargs="?", default="127.0.0.1:8000", help="PORT or HOST:PORT (default: 127.0.0.1:8000)."
        )
        parser.add_argument("--workers", type=int, default=1, metavar="N", help="Workers to start (default: 1).")

    def act(self, **options: Any) -> None:
        host, _, port = options["address"].rpartition(":")
        host = host or "127.0.0.1"
        if not port.isdecimal() or not 0 < int(port[:9]) < 65_536 or options["workers"] < 0:
            raise self.misuse("The address must be PORT or HOST:PORT, and --workers a number from 0.")
        find_free_port(host, [int(port)])
        if settings.EMBEDDED:
            upgrade(self.print_line)
        elif not connection.introspection.table_names():
            call_command("migrate", verbosity=0)
        if sentence := explain_unusable("benchbench"):
            raise BenchbenchError(sentence)
        for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first otherwise
            signal.signal(number, signal.default_int_handler)
        login = self.make_login()
        with serve_site(host, int(port), workers=options["workers"], environment={}) as processes:
            self.print_line(f"The site is at http://{host}:{port}/  {login}\nCtrl-C stops it.")
            try:
                self.follow(processes)
            except KeyboardInterrupt:
                self.print_line("\nStopping. Unfinished work continues at the next start.")

    def make_login(self) -> str:
        """Return how to log in for the first time, in words; "" if a superuser exists."""
        if get_user_model().objects.filter(is_superuser=True, is_active=True).exists():
            return ""
        if settings.EMBEDDED:
            return f"user: {USERNAME}   password: {give_login(USERNAME)}   (shown once)"
        return "Make the first user in another terminal: benchbench createsuperuser"

    def follow(self, processes: Processes) -> None:
        """Print the beginning, the progress and the end of operations. Raises ServingError when a process ends."""
        latest: dict[UUID, float] = {}
        while all(process.poll() is None for process in processes):
            try:
                close_old_connections()
                self.show_operations(latest)
            except DatabaseError:  # it may have restarted; the site and the workers wait for it too
                pass
            time.sleep(LOOK_SECONDS)
        raise ServingError("The web server or a worker ended; see its message above.")

    def show_operations(self, latest: dict[Any, float]) -> None:
        """Print a line for each operation that began, ended, or had none for SHOW_SECONDS; `latest` has their times."""
        now = time.monotonic()
        active = list(Operation.objects.filter(status__in=Status.active()))
        ended = Operation.objects.filter(pk__in=latest.keys() - {operation.pk for operation in active})
        progress = compute_each_progress(active)
        for operation in active:
            if now - latest.get(operation.pk, 0.0) >= SHOW_SECONDS:
                latest[operation.pk] = now
                current = progress[operation]
                left = "" if current.eta_seconds is None else f", about {format_duration(current.eta_seconds)} left"
                self.print_line(f"{describe(operation)}: {current.stage_words}, {current.words}{left}")
        for operation in ended:
            del latest[operation.pk]
            self.print_line(f"{describe(operation)}: {operation.status_word}. {operation.error}".rstrip())

    def print_line(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()


def describe(operation: Operation) -> str:
    return f"{operation.get_kind_display().capitalize()} of {operation.subject or 'a deleted object'}"
