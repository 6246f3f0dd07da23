"""PostgreSQL stopped, restarted or out of connections: workers reconnect and lose nothing committed."""

import pytest
from django.db import connection

from tests.faults.kit import call_session, scenarios, survive, until

STATED_SECONDS = 10
POINTS = """
    benchmark: claimed, planned, encoded, searched, commit begun, amid COPY, commit stored, committed, finishing
    isolated: searched, commit stored
    index: chunked, encoded, commit stored, words
    resolve: decided, stored
"""
CROWDED = """
    benchmark: claimed, searched, commit stored
    index: encoded
    resolve: decided
"""
STOPPED = """
    benchmark: searched, amid COPY, finishing
    index: commit stored
"""
CUT_OFF = scenarios("cut off", POINTS, alone=True)
CROWDED_OUT = scenarios("crowd out", CROWDED, alone=True)
RESTARTED = scenarios("stop postgres", STOPPED, alone=True)


@pytest.mark.parametrize("scenario", CUT_OFF + CROWDED_OUT, ids=str)
def test_a_worker_whose_sessions_are_ended_begins_new_ones(crew, scenario):
    survive(crew, scenario)


@pytest.mark.parametrize("scenario", RESTARTED, ids=str)
def test_committed_data_survives_an_immediate_stop(crew, scenario):
    survive(crew, scenario, connect_again)


def connect_again() -> None:
    """Wait for the keeper of the embedded PostgreSQL to start it again."""
    connection.close()
    until(lambda: call_session() is None, "PostgreSQL")
