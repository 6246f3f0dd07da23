"""A worker that is told to stop."""

import signal
import sys
import threading
from typing import Any

import pytest
from rq import SimpleWorker

from apps.operations.management.commands.worker import QueueWorker, Stop


def test_one_that_is_told_again_while_it_is_told_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal tells the whole group, and the pool its worker: the second signal comes at any line of the handler."""
    monkeypatch.setattr(SimpleWorker, "request_stop", lambda *_: None)
    worker: Any = QueueWorker.__new__(QueueWorker)
    worker.stop = Stop()

    def again(*_: Any) -> None:
        sys.setprofile(None)
        worker.request_stop(signal.SIGTERM, None)
        sys.setprofile(again)

    def be_told() -> None:
        sys.setprofile(again)
        worker.request_stop(signal.SIGTERM, None)
        sys.setprofile(None)

    told = threading.Thread(target=be_told, daemon=True)
    told.start()
    told.join(10)
    assert not told.is_alive()
    assert worker.stop.told
