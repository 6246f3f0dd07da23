from collections.abc import Iterator
from typing import Any

import django_rq
import pytest
from django.contrib.auth.models import User
from rq import Queue

from apps.judging.llm.calibration import draw_sample
from apps.judging.models import LLMJudge, Round
from apps.operations import queueing
from apps.records.models import Benchmark
from tests.judging.rounds import (
    SIZE,
    grade_sample,
    judged_by_model,
    make_compared,
    make_judges,
    make_simulated,
    open_for,
)
from tests.retrieval.llm_server import LLMServer, known_server


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return make_compared()


@pytest.fixture
def simulated(db: None) -> Benchmark:
    return make_simulated()


@pytest.fixture
def ada(db: None) -> User:
    (user,) = make_judges("ada")
    return user


@pytest.fixture
def grace(db: None) -> User:
    (user,) = make_judges("grace")
    return user


@pytest.fixture
def round_of_ada(benchmark: Benchmark, ada: User) -> Round:
    """A round in the order of depth that only ada judges, who owns it."""
    return open_for(benchmark, [ada], owner=ada)


@pytest.fixture
def opened(simulated: Benchmark, ada: User) -> Round:
    return open_for(simulated, [ada], owner=ada, order="random", measure="P@5", seed=3)


@pytest.fixture
def calibrated(opened: Round, ada: User, server: LLMServer) -> LLMJudge:
    """A model that judged the whole round, of which a person judged the sample."""
    draw_sample(opened, SIZE, ada)
    grade_sample(opened, ada)
    return judged_by_model(opened)


@pytest.fixture
def server(db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[LLMServer]:
    """A server of language models, under the names of both kinds."""
    with known_server(settings, monkeypatch) as created:
        yield created


@pytest.fixture
def quick(db: None) -> Iterator[Queue]:
    """The queue of quick jobs, which a worker serves that never comes to it."""
    queue = django_rq.get_queue(queueing.QUICK)
    queue.empty()
    queueing.announce_worker("a worker", [queueing.QUICK])
    yield queue
    queueing.retire_worker("a worker", [queueing.QUICK])
    queue.empty()
    for key in queue.connection.scan_iter("benchbench:waits:*"):
        queue.connection.delete(key)
