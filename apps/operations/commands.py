"""What management commands share: errors as sentences, an owner by name, a report for people or programs, progress."""

import json
import sys
import time
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    DjangoHelpFormatter,
    OutputWrapper,
    SystemCheckError,
)

from benchbench.busy import busy
from benchbench.errors import BenchbenchError
from benchbench.printable import printable

BLOCKS = 10


class HelpFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Keeps the lines of a command's help as they are written: it teaches, with examples."""


class UseCaseCommand(BaseCommand):
    """A command that parses its options, calls one use case and presents what came of it.

    Subclasses write `act(**options)` instead of `handle`. A `BenchbenchError` becomes a sentence on stderr and exit
    status `error_status`. An option made by `add_owner_argument` arrives as `owner`: a user, or None.

    The module's docstring is the line that lists the command, `help` teaches it with examples, and `statuses`, which
    stands at the end of that, says what its exit statuses mean.
    """

    error_status = 1
    from_shell = False
    statuses = "0 done; 1 not done, for the reason on stderr; 2 wrong usage."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        epilog = f"Exit status: {self.statuses}"
        return super().create_parser(prog_name, subcommand, formatter_class=HelpFormatter, epilog=epilog, **kwargs)

    def run_from_argv(self, argv: list[str]) -> None:
        self.from_shell = True
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Do what Django does, but say an error as a sentence without the name of its class before it."""
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if not self.from_shell or options.get("traceback") or isinstance(error, SystemCheckError):
                raise
            self.stderr.write(str(error))
            sys.exit(error.returncode)

    def add_owner_argument(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--owner", metavar="USER", help="User name of the owner. Without one, the whole staff sees it."
        )

    def add_json_argument(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the report as JSON, for programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if "owner" in options:
                options["owner"] = find_owner(options["owner"])
            self.act(**options)
        except BenchbenchError as error:
            raise CommandError(printable(error.message), returncode=self.error_status) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=130) from None

    def act(self, **options: Any) -> None:
        raise NotImplementedError("A command says in act() what it does.")

    def misuse(self, sentence: str) -> CommandError:
        """Return the error of options that do not go together: wrong usage, which argparse could not know."""
        return CommandError(sentence, returncode=2)

    def report(self, facts: Mapping[str, Any], text: str, *, as_json: bool) -> None:
        """Print the outcome on stdout: `facts` as one JSON object, or `text` without what a terminal would obey."""
        self.stdout.write(json.dumps(facts, indent=2, default=str) if as_json else printable(text))

    def warn(self, sentence: str) -> None:
        """Say on stderr something that did not stop the command."""
        self.stderr.write(self.style.WARNING(printable(sentence)))

    def busy(self, what: str) -> AbstractContextManager[None]:
        """Show on a terminal that `what` goes on ("Reading the queries"), where nobody can say how far it is."""
        return busy(sys.stderr, what)

    def progress(self, noun: str, total: int | None = None) -> "Progress":
        """Return a callable that shows how much is done on stderr. `noun` is plural: "documents"."""
        return Progress(self.stderr, noun, total)


def find_owner(username: str | None) -> Any:
    """Return the user called `username`, or None when no name is given."""
    if not username:
        return None
    users = get_user_model()
    try:
        return users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist:
        raise BenchbenchError(
            f"No user is called {username!r}: make one with `manage.py createsuperuser`, or leave --owner out.",
            field="owner",
        ) from None


class Progress:
    """A line on stderr with what is done, the rate and the time left; on a terminal a bar, rewritten in place.

    Call it with the number of units done, as often as is convenient: it writes twice a second on a terminal, and every
    ten seconds into a file. `close` ends the line, so that what follows starts on a fresh one.
    """

    def __init__(
        self,
        stream: OutputWrapper,
        noun: str,
        total: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream = stream
        self.clock = clock
        self.noun = noun
        self.total = total
        self.started = self.written = clock()
        self.terminal = stream.isatty()
        self.open_line = False

    def __call__(self, done: int, total: int | None = None) -> None:
        self.total = total or self.total
        now = self.clock()
        if now - self.written < (0.5 if self.terminal else 10):
            return
        self.written = now
        self._write(self._line(done, now - self.started), done / self.total if self.total else None)

    def count(self, event: Mapping[str, Any], done: str, total: str) -> None:
        """Show the progress event of an operation: its units under these two keys, or what it waits for."""
        if not self._waits(event):
            self(event[done], event[total])

    def share(self, event: Mapping[str, Any]) -> None:
        """Show the progress event of an operation: a share of the work and the time left, or what it waits for."""
        if not self._waits(event):
            eta = event["eta_seconds"]
            left = "" if eta is None else f", about {eta:,.0f} s left"
            self._say(f"{event['percent']:.0f} % of the {self.noun}{left}", event["percent"] / 100)

    def close(self) -> None:
        if self.open_line:
            self.stream.write("")
            self.open_line = False

    def _waits(self, event: Mapping[str, Any]) -> bool:
        """Tell whether the work waits for a worker or a host, and show what for if it does."""
        position, reason = event["queue_position"], event["waiting_for"]
        if position is None and not reason:
            return False
        ahead = f", queued behind {position} operation{'s' if position > 1 else ''}" if position else ""
        self._say(reason or f"waiting for a worker{ahead}")
        return True

    def _say(self, line: str, share: float | None = None) -> None:
        now = self.clock()
        if now - self.written >= (0.5 if self.terminal else 10):
            self.written = now
            self._write(line, share)

    def _line(self, done: int, seconds: float) -> str:
        rate = done / seconds
        of_total = f" of {self.total:,}" if self.total else ""
        line = f"{done:,}{of_total} {self.noun}, {rate:,.0f} a second"
        if self.total and rate:
            line += f", {max(0, self.total - done) / rate:,.0f} s left"
        return line

    def _write(self, line: str, share: float | None) -> None:
        if self.terminal:
            bar = "" if share is None else f"{'█' * (full := int(BLOCKS * min(1, share)))}{'░' * (BLOCKS - full)} "
            self.stream.write(f"\r\033[K{bar}{line}", ending="")
            self.stream.flush()
            self.open_line = True
        else:
            self.stream.write(line)
