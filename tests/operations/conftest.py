"""The handler that adds, registered, and its watchers."""

import pytest
from django.contrib.auth.models import User

from apps.operations import consumers, handlers, models
from tests.operations.adding import Adding
from tests.sockets import make_watcher

adding = Adding()


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Adding:
    adding.__init__()
    monkeypatch.setitem(handlers.HANDLERS, Adding.kind, adding)
    monkeypatch.setitem(models.SUBJECTS, Adding.kind, Adding.subject)
    return adding


@pytest.fixture
def staff() -> User:
    return make_watcher("ada")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_SECONDS", 0.2)
