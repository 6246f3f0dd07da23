"""The base of management commands: errors as sentences, `--owner`, reports as text or JSON, and progress."""

import json
import sys
import time
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TextIO

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter, SystemCheckError
from django.db import DataError, Error, InterfaceError, OperationalError
from redis.exceptions import RedisError

from benchbench import SOFTWARE
from benchbench.busy import busy, clean_line, clean_text
from benchbench.database.failures import find_failure, was_ended
from benchbench.durations import estimate_left, format_duration
from benchbench.errors import BenchbenchError

FILE_SECONDS = 10
ESTIMATING = ", estimating…"  # the remaining time

# Fields of errors that are options of the same name, never keys of a file that the command reads.
OPTION_FIELDS = ("mapping", "collection", "dataset", "benchmark", "baseline", "run", "measures")


class HelpFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """A formatter that keeps the line breaks of help texts, which contain examples."""


class UseCaseCommand(BaseCommand):
    """A command that parses its options, calls one use case and presents the outcome.

    Subclasses define `act(**options)` instead of `handle`. A `BenchbenchError` becomes a sentence on stderr and exit
    status `error_status`, or 2 if it is a misuse. `add_owner_argument` passes `owner`: a user, or None.

    The module's docstring describes the command in the list of commands. `help` explains it with examples, and ends
    with `statuses`, the meanings of its exit statuses.
    """

    error_status = 1
    from_shell = False
    statuses = "0 done; 1 failed, with the reason on stderr; 2 wrong usage."

    def get_version(self) -> str:
        return SOFTWARE

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        epilog = f"Exit status: {self.statuses}"
        kwargs |= {"formatter_class": HelpFormatter, "epilog": epilog}
        self.parser = super().create_parser(prog_name, subcommand, **kwargs)
        return self.parser

    def run_from_argv(self, argv: list[str]) -> None:
        self.from_shell = True
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Execute as Django does, but print an error as a sentence without the name of its class."""
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if not self.from_shell or options.get("traceback") or isinstance(error, SystemCheckError):
                raise
            self.stderr.write(str(error))
            sys.exit(error.returncode)

    def add_owner_argument(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--owner", metavar="USER", help="User name of the owner (default: none, visible to all staff)."
        )

    def add_json_argument(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the report as JSON, for programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if "owner" in options:
                options["owner"] = find_owner(options["owner"])
            self.act(**options)
        except BenchbenchError as error:
            status = 2 if error.is_misuse else self.error_status
            raise CommandError(clean_text(self._prefix_option(error, options)), returncode=status) from error
        except RedisError as error:
            sentence = (
                f"Redis does not answer: {error} Start it, or correct REDIS_URL; a worker continues work that has "
                "begun."
            )
            raise CommandError(clean_text(sentence), returncode=self.error_status) from error
        except (DataError, InterfaceError, OperationalError) as error:
            raise CommandError(_describe_error(error), returncode=self.error_status) from error
        except UnicodeEncodeError as error:
            sentence = (
                f"{error.object!a} is not text in UTF-8: correct it, or set PYTHONUTF8=1 if the terminal sends UTF-8."
            )
            raise CommandError(clean_text(sentence), returncode=self.error_status) from error
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            name = f"{str(error.filename)[:200]} cannot be used" if error.filename else "The command failed"
            message = f"{name}: {error.strerror or error}."
            raise CommandError(clean_text(message), returncode=self.error_status) from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=130) from None

    def _prefix_option(self, error: BenchbenchError, options: Mapping[str, object]) -> str:
        """Return the message, prefixed with the option that it concerns if that was given and is not named in it."""
        field = error.field if error.field in OPTION_FIELDS else None
        actions = self.parser._actions if field and options.get(field) else []
        option = next((name for action in actions if action.dest == field for name in action.option_strings), "")
        message = f"{error.message} ({error.by_command})" if error.by_command else error.message
        return message if not option or option in message else f"{option}: {message.removeprefix(f'{field}: ')}"

    def act(self, **options: Any) -> None:
        raise NotImplementedError("A command says in act() what it does.")

    def misuse(self, sentence: str) -> CommandError:
        """Return the error for options that conflict in a way that argparse cannot check. Exit status 2."""
        return CommandError(sentence, returncode=2)

    def report(self, facts: Mapping[str, object], text: str, *, as_json: bool) -> None:
        """Print the outcome on stdout: `facts` as a JSON object, or `text` without terminal control characters."""
        self.stdout.write(json.dumps(facts, indent=2, default=str) if as_json else clean_text(text))

    def warn(self, sentence: str) -> None:
        """Print a warning on stderr; the command continues."""
        self.stderr.write(self.style.WARNING(clean_text(sentence)))

    def busy(self, work: str) -> AbstractContextManager[None]:
        """Show on a terminal that `work` is running ("Reading the queries"), for work without measurable progress."""
        return busy(sys.stderr, work)

    def progress(self, noun: str, total: int | None = None) -> "Progress":
        """Return a context manager that shows progress on stderr. `noun` is plural: "documents"."""
        return Progress(sys.stderr, noun, total)


def _describe_error(error: Error) -> str:
    """Return a message for an error of PostgreSQL, with its remedy."""
    if failure := find_failure(error):
        return clean_line(failure.message)
    text = clean_line(str(error))
    text += "" if text.endswith((".", "?")) else "."
    if not was_ended(error):
        return f"PostgreSQL reported an error: {text} See its log for details."
    return (
        f"PostgreSQL does not answer: {text} Start it, or correct DATABASE_URL; a worker continues work that has begun."
    )


def _render_eta(seconds: float | None) -> str:
    return "" if seconds is None else f", {format_duration(seconds)} left"


def find_owner(username: str | None) -> User | None:
    """Return the user called `username`, or None without a name. Raises BenchbenchError for an unknown name."""
    if not username:
        return None
    users = get_user_model()
    try:
        return users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist:
        raise BenchbenchError(
            f"The user {username!r} does not exist: create one with `manage.py createsuperuser`, or leave --owner out.",
            field="owner",
        ) from None


class Progress:
    """Units done and remaining time: a progress bar on a terminal, elsewhere a line every ten seconds.

    Enter it, and call it with the number of units done as often as convenient; then it shows their rate too, for which
    the events of an operation are too few. On a terminal the elapsed time also advances between calls.
    """

    def __init__(
        self, stream: TextIO, noun: str, total: int | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from rich import progress  # imported here: most commands show no progress
        from rich.console import Console

        columns = (
            progress.BarColumn(bar_width=20),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
        )
        console = Console(file=stream, force_terminal=stream.isatty())
        self.bar = progress.Progress(
            *columns, console=console, disable=not console.is_interactive, get_time=clock, redirect_stdout=False
        )
        self.bar.add_task(noun, total=total)
        (self.task,) = self.bar.tasks
        self.stream = stream
        self.noun, self.described = noun, ""
        self.last_written = clock()

    def __enter__(self) -> "Progress":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def __call__(self, done_units: int, total: int | None = None) -> None:
        line = self._render_units(done_units, total)
        rate = f", {self.task.speed:,.0f} a second" if self.task.speed else ""
        self._show(line + rate + _render_eta(self._estimate_left()))

    def show_units(self, event: Mapping[str, Any], done_key: str, total_key: str) -> None:
        """Show the progress event of an operation: its units under these two keys, or what it waits for.

        Once all units are done it shows "finishing…": concluding the work is not counted and may take long.
        """
        if not self._show_waiting(event):
            line = self._render_units(event[done_key], event[total_key])
            is_counted = self.task.total is not None and self.task.completed >= self.task.total
            left = event.get("eta_seconds") or self._estimate_left()
            self._show(line + (", finishing…" if is_counted else _render_eta(left) or ESTIMATING))

    def show_documents(self, event: Mapping[str, object]) -> None:
        """Show the progress event of an operation that builds an index."""
        self.show_units(event, "processed_documents", "total_documents")

    def show_percent(self, event: Mapping[str, Any]) -> None:
        """Show the progress event of an operation: its stage, its progress and the time left, or what it waits for."""
        if not self._show_waiting(event):
            if event["percent"] >= self.task.completed:
                self.described = f"{event['stage']}: {event['words']}"
            self._advance(event["percent"], 100)
            self._show(self.described + (_render_eta(event["eta_seconds"]) or ESTIMATING))

    def _estimate_left(self) -> float | None:
        """Return the seconds left at the latest rate, which a wait for a worker does not slow down."""
        speed = self.task.speed
        return estimate_left(self.task.completed, self.task.total, self.task.completed / speed if speed else None)

    def _render_units(self, done_units: int, total: int | None) -> str:
        self._advance(done_units, total)
        of_total = f" of {self.task.total:,.0f}" if self.task.total else ""
        return f"{self.task.completed:,.0f}{of_total} {self.noun}"

    def _show_waiting(self, event: Mapping[str, Any]) -> bool:
        """Return whether the work waits for a worker or a host. If so, show the reason."""
        position, reason = event["queue_position"], event["waiting_for"]
        if position is None and not reason:
            return False
        ahead = f", queued behind {position} operation{'s' if position > 1 else ''}" if position else ""
        self._show(reason or f"waiting for a worker{ahead}")
        return True

    def _advance(self, completed: float, total: float | None) -> None:
        """Advance the bar, never back: a worker that takes over a batch repeats units that another had counted."""
        self.bar.update(self.task.id, completed=max(completed, self.task.completed), total=total or None)

    def _show(self, line: str) -> None:
        self.bar.update(self.task.id, description=line)
        now = self.bar.get_time()
        if self.bar.disable and now - self.last_written >= FILE_SECONDS:
            self.last_written = now
            self.stream.write(f"{line}\n")
