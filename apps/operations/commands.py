"""What management commands share: errors as sentences, an owner by name, a report for people or programs, progress."""

import json
import time
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter, OutputWrapper

from benchbench.errors import BenchbenchError


class HelpFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Keeps the lines of a command's help as they are written: it teaches, with examples."""


class UseCaseCommand(BaseCommand):
    """A command that parses its options, calls one use case and presents what came of it.

    Subclasses write `act(**options)` instead of `handle`. A `BenchbenchError` becomes a sentence on stderr and exit
    status `error_status`. An option made by `add_owner_argument` arrives as `owner`: a user, or None.
    """

    error_status = 1

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, formatter_class=HelpFormatter, **kwargs)

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
            raise CommandError(error.message, returncode=self.error_status) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=130) from None

    def act(self, **options: Any) -> None:
        raise NotImplementedError("A command says in act() what it does.")

    def misuse(self, sentence: str) -> CommandError:
        """Return the error of options that do not go together: wrong usage, which argparse could not know."""
        return CommandError(sentence, returncode=2)

    def report(self, facts: Mapping[str, Any], text: str, *, as_json: bool) -> None:
        """Print the outcome on stdout: `facts` as one JSON object, or `text`."""
        self.stdout.write(json.dumps(facts, indent=2, default=str) if as_json else text)

    def warn(self, sentence: str) -> None:
        """Say on stderr something that did not stop the command."""
        self.stderr.write(self.style.WARNING(sentence))

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
    """A line on stderr with what is done, the rate and the time left; rewritten in place on a terminal.

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
        self._write(self._line(done, now - self.started))

    def count(self, event: Mapping[str, Any], done: str, total: str) -> None:
        """Show the progress event of an operation: its units under these two keys, or what it waits for."""
        if not self._waits(event):
            self(event[done], event[total])

    def share(self, event: Mapping[str, Any]) -> None:
        """Show the progress event of an operation: a share of the work and the time left, or what it waits for."""
        if not self._waits(event):
            eta = event["eta_seconds"]
            left = "" if eta is None else f", about {eta:,.0f} s left"
            self._say(f"{event['percent']:.0f} % of the {self.noun}{left}")

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

    def _say(self, line: str) -> None:
        now = self.clock()
        if now - self.written >= (0.5 if self.terminal else 10):
            self.written = now
            self._write(line)

    def _line(self, done: int, seconds: float) -> str:
        rate = done / seconds
        of_total = f" of {self.total:,}" if self.total else ""
        line = f"{done:,}{of_total} {self.noun}, {rate:,.0f} a second"
        if self.total and rate:
            line += f", {max(0, self.total - done) / rate:,.0f} s left"
        return line

    def _write(self, line: str) -> None:
        if self.terminal:
            self.stream.write("\r\033[K" + line, ending="")
            self.stream.flush()
            self.open_line = True
        else:
            self.stream.write(line)
