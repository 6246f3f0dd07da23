"""PostgreSQL stopped, restarted, or out of connections: workers connect again and lose nothing that was committed."""

import pytest
from django.db import connection

from tests.faults.kit import Crew, Scenario, call_session, survive, until

STATED_SECONDS = 10
POINTS = [
    ("benchmark", "claimed"),
    ("benchmark", "benchmark: planned"),
    ("benchmark", "benchmark: encoded"),
    ("benchmark", "benchmark: searched"),
    ("benchmark", "benchmark: commit begun"),
    ("benchmark", "benchmark: amid COPY"),
    ("benchmark", "benchmark: commit stored"),
    ("benchmark", "benchmark: committed"),
    ("benchmark", "benchmark: finishing"),
    ("isolated", "isolated: searched"),
    ("isolated", "benchmark: commit stored"),
    ("index", "index: chunked"),
    ("index", "index: encoded"),
    ("index", "index: commit stored"),
    ("index", "index: words"),
    ("resolve", "resolve: decided"),
    ("resolve", "resolve: stored"),
]
CROWDED = [
    ("benchmark", "claimed"),
    ("benchmark", "benchmark: searched"),
    ("benchmark", "benchmark: commit stored"),
    ("index", "index: encoded"),
    ("resolve", "resolve: decided"),
]
STOPPED = [
    ("benchmark", "benchmark: searched"),
    ("benchmark", "benchmark: amid COPY"),
    ("benchmark", "benchmark: finishing"),
    ("index", "index: commit stored"),
]
CUT_OFF = [Scenario(kind, point, "cut off", alone=True) for kind, point in POINTS]
CROWDED_OUT = [Scenario(kind, point, "crowd out", alone=True) for kind, point in CROWDED]
RESTARTED = [Scenario(kind, point, "stop postgres", alone=True) for kind, point in STOPPED]


@pytest.mark.parametrize("scenario", CUT_OFF + CROWDED_OUT, ids=str)
def test_a_worker_whose_sessions_are_ended_begins_new_ones(crew: Crew, scenario: Scenario) -> None:
    survive(crew, scenario)


@pytest.mark.parametrize("scenario", RESTARTED, ids=str)
def test_what_was_committed_outlives_an_immediate_stop(crew: Crew, scenario: Scenario) -> None:
    survive(crew, scenario, connect_again)


def connect_again() -> None:
    """Wait for the keeper of the embedded PostgreSQL to start it again."""
    connection.close()
    until(lambda: call_session() is None, "PostgreSQL")
