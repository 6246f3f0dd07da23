"""Declared engines on small servers."""

import json

import pytest
from django.utils import timezone

from apps.engines import asking, sending
from apps.engines.storing import Question
from benchbench.ir.planning.engine import EngineSetting
from benchbench.process import reset_all


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch):
    monkeypatch.setitem(sending.BACKOFF, "wait_initial", 0.01)
    monkeypatch.setitem(sending.BACKOFF, "wait_jitter", 0.01)


@pytest.fixture
def declare(settings, tmp_path):
    """A function that declares engines and addresses of notices: keys of each by alias. JSON is YAML."""

    def write(engines=None, notices=None):
        path = tmp_path / "engines.yaml"
        path.write_text(json.dumps({"engines": engines or {}, "notices": notices or {}}))
        settings.BENCHBENCH_ENGINES = str(path)

    reset_all()
    yield write
    reset_all()


@pytest.fixture
def ask(declare):
    """A function that asks the engine "tried", which keys declare, one question, and returns the reply or error."""

    def ask(text, depth, *, setting="tried", vector=None, **keys):
        declare({"tried": {"version": "1", "private": True, **keys}})
        question, since = Question(text, {}, vector), timezone.now()
        return asking.ask_all(EngineSetting.parse(setting), [question], depth, since=since, check=lambda: None)[0]

    return ask
