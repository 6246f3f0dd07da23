"""What management commands share."""

import io
import re
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import CommandParser
from django.db import InterfaceError, OperationalError

from apps.operations.commands import Progress, UseCaseCommand
from benchbench.errors import BenchbenchError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines_on(terminal: Terminal) -> list[str]:
    """What a terminal was informed to show, without colours and movements."""
    return re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()))


class Clock:
    """Is frozen until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    clock, terminal = Clock(), Terminal()
    with Progress(terminal, "[bold] documents", total=5000, clock=clock) as progress:
        for clock.now, finished in ((2.0, 1000), (4.0, 4000)):
            progress(finished)
        monkeypatch.setattr(clock, "now", 65.0)  # and no call since
    *_, last = filter(None, lines_on(terminal))
    assert re.fullmatch(r"━+╺?━+ 4,000 of 5,000 \[bold\] documents, 1,500 a second, 1 s left 0:01:05 *", last)


def test_progress_keeps_to_the_width_of_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    with Progress(terminal := Terminal(), "documents that are read", total=1_000_000) as progress:
        progress(1)
    assert max(map(len, lines_on(terminal))) == 40


def test_progress_writes_occasional_lines_to_a_file():
    clock, file = Clock(), io.StringIO()
    with Progress(file, "documents", clock=clock) as progress:
        for clock.now, finished in ((0.0, 1), (5.0, 500), (10.0, 1001), (15.0, 1500)):
            progress(finished)
    assert file.getvalue() == "1,001 documents, 100 a second\n"


def lost() -> OperationalError:
    error = OperationalError("the connection is lost\nIs the server running?\n")
    error.__cause__ = psycopg.OperationalError()
    return error


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (
            lost(),
            "PostgreSQL does not answer: the connection is lost Is the server running? Start it, or correct "
            "DATABASE_URL; a worker continues work that has begun.",
        ),
        (
            InterfaceError("the connection is closed"),
            "PostgreSQL does not answer: the connection is closed. Start it, or correct DATABASE_URL; a worker "
            "continues work that has begun.",
        ),
        (
            OperationalError("could not extend file: No space left on device"),
            "PostgreSQL reported an error: could not extend file: No space left on device. See its log for details.",
        ),
    ],
)
def test_postgresql_failure_ends_a_command_with_a_message(failure, sentence):
    class Failing(UseCaseCommand):
        def act(self, **options: Any) -> None:
            raise failure

    with pytest.raises(CommandError) as caught:
        Failing().handle()
    assert (str(caught.value), caught.value.returncode) == (sentence, 1)


@pytest.mark.parametrize(
    ("field", "sentence", "message"),
    [
        ("mapping", "No mapping is called 'x'.", "--mapping: No mapping is called 'x'."),
        ("mapping", "mapping: It is stale.", "--mapping: It is stale."),
        ("mapping", "Leave --mapping out.", "Leave --mapping out."),
        ("dataset", "It is stale.", "It is stale."),  # an argument, which has no name
        ("run", "It has no run 7.", "It has no run 7."),  # not given
        ("name", "q.json: name is 7.", "q.json: name is 7."),  # of a file
    ],
)
def test_an_error_names_the_option_that_it_is_about(field, sentence, message):
    class Failing(UseCaseCommand):
        def add_arguments(self, parser: CommandParser) -> None:
            parser.add_argument("dataset")
            for option in ("--mapping", "--run", "--name"):
                parser.add_argument(option)

        def act(self, **options: Any) -> None:
            raise BenchbenchError(sentence, field=field)

    with pytest.raises(CommandError) as caught:
        call_command(Failing(), "d", mapping="x", name="n")
    assert str(caught.value) == message


PAIRS = "reranking 3,200 of at most 18,000 pairs"


def test_progress_shows_percentage_time_left_and_wait_reason():
    clock, stream = Clock(), io.StringIO()
    at_work = {"queue_position": None, "waiting_for": None, "all": 4, "eta_seconds": None, "stage": "evaluating"}
    with Progress(stream, "benchmark", clock=clock) as progress:
        for event in (
            {"queue_position": 2, "waiting_for": None},
            {"queue_position": 1, "waiting_for": None},
            {"queue_position": 0, "waiting_for": None},
            {"queue_position": None, "waiting_for": "Waits for the host."},
            {**at_work, "percent": 12.4, "words": f"12.4 %, 4 of 33 rankings; {PAIRS}"},
            {**at_work, "percent": 50.0, "words": "50.0 %", "eta_seconds": 61.4},
        ):
            clock.now += 10
            progress.show_percent(event)
    with Progress(stream, "references", clock=clock) as progress:
        for event in ({"queue_position": 1, "waiting_for": None}, {**at_work, "done": 0}, {**at_work, "done": 1}):
            clock.now += 10
            progress.show_units(event, "done", "all")
        clock.now += 5
        progress.show_units({**at_work, "done": 2}, "done", "all")
        clock.now += 10
        progress.show_units({**at_work, "done": 3}, "done", "all")
    assert stream.getvalue().splitlines() == [
        "waiting for a worker, queued behind 2 operations",
        "waiting for a worker, queued behind 1 operation",
        "waiting for a worker",
        "Waits for the host.",
        f"evaluating: 12.4 %, 4 of 33 rankings; {PAIRS}, estimating…",
        "evaluating: 50.0 %, 1 min 1 s left",
        "waiting for a worker, queued behind 1 operation",
        "0 of 4 references, estimating…",
        "1 of 4 references, estimating…",
        "3 of 4 references, 8 s left",
    ]


def test_progress_never_decreases_or_shows_zero_seconds_left():
    """As the events of a build came while its summaries grew, and of a benchmark whose batch another worker took."""
    clock, stream = Clock(), io.StringIO()
    common = {"queue_position": None, "waiting_for": None, "all": 150}
    with Progress(stream, "documents indexed", clock=clock) as progress:
        for finished in (100, 150, 142, 148, 94, 150):
            clock.now += 10
            progress.show_units({**common, "done": finished}, "done", "all")
    lines = stream.getvalue().splitlines()
    assert [int(line.partition(" of 150")[0]) for line in lines] == [100, 150, 150, 150, 150, 150]
    assert all(line.endswith("finishing…") for line in lines[1:])
    assert " 0 s left" not in stream.getvalue()
    stream = io.StringIO()
    with Progress(stream, "benchmark", clock=clock) as progress:
        for percent, eta in ((40.0, 30.0), (20.0, None), (50.0, 25.0)):
            clock.now += 10
            progress.show_percent(
                {**common, "stage": "evaluating", "percent": percent, "words": f"{percent:.1f} %", "eta_seconds": eta}
            )
    messages = [
        "evaluating: 40.0 %, 30 s left",
        "evaluating: 40.0 %, estimating…",
        "evaluating: 50.0 %, 25 s left",
    ]
    assert stream.getvalue().splitlines() == messages
