"""What management commands share."""

import io
from typing import Any

import pytest
from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from apps.operations.commands import Progress, UseCaseCommand
from benchbench.errors import ConflictError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_rewrites_one_line_on_a_terminal() -> None:
    clock = iter([0.0, 0.1, 2.0, 2.1, 4.0])
    terminal = Terminal()
    progress = Progress(OutputWrapper(terminal), "documents", total=5000, clock=clock.__next__)
    for done in (10, 1000, 1001, 4000):
        progress(done)
    progress.close()
    progress.close()
    assert terminal.getvalue() == (
        "\r\033[K██░░░░░░░░ 1,000 of 5,000 documents, 500 a second, 8 s left"
        "\r\033[K████████░░ 4,000 of 5,000 documents, 1,000 a second, 1 s left\n"
    )


def test_progress_writes_a_line_now_and_then_into_a_file() -> None:
    clock = iter([0.0, 5.0, 10.0, 15.0])
    file = io.StringIO()
    progress = Progress(OutputWrapper(file), "documents", clock=clock.__next__)
    for done in (500, 1000, 1500):
        progress(done)
    progress.close()
    assert file.getvalue() == "1,000 documents, 100 a second\n"


def test_errors_and_interrupts_end_a_command_with_a_sentence() -> None:
    class Failing(UseCaseCommand):
        def act(self, **options: Any) -> None:
            raise options["failure"]

    with pytest.raises(CommandError, match=r"^It is in use\.$") as caught:
        Failing().handle(failure=ConflictError("It is in use."))
    assert caught.value.returncode == 1
    with pytest.raises(CommandError, match=r"^Interrupted\.$") as caught:
        Failing().handle(failure=KeyboardInterrupt())
    assert caught.value.returncode == 130


def test_progress_tells_a_share_the_time_left_and_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    progress = Progress(OutputWrapper(stream), "benchmark", clock=lambda: 0.0)
    progress.started = -3.0
    at_work = {"queue_position": None, "waiting_for": None, "done": 3, "all": 4, "eta_seconds": None}
    for event in (
        {"queue_position": 2, "waiting_for": None},
        {"queue_position": 1, "waiting_for": None},
        {"queue_position": 0, "waiting_for": None},
        {"queue_position": None, "waiting_for": "Waits for the host."},
        {**at_work, "percent": 12.4},
        {**at_work, "percent": 50.0, "eta_seconds": 61.4},
    ):
        monkeypatch.setattr(progress, "written", -1000.0)
        progress.share(event)
    monkeypatch.setattr(progress, "written", -1000.0)
    progress.count({"queue_position": 1, "waiting_for": None}, "done", "all")
    monkeypatch.setattr(progress, "written", -1000.0)
    progress.count(at_work, "done", "all")
    assert stream.getvalue().splitlines() == [
        "waiting for a worker, queued behind 2 operations",
        "waiting for a worker, queued behind 1 operation",
        "waiting for a worker",
        "Waits for the host.",
        "12 % of the benchmark",
        "50 % of the benchmark, about 61 s left",
        "waiting for a worker, queued behind 1 operation",
        "3 of 4 benchmark, 1 a second, 1 s left",
    ]
