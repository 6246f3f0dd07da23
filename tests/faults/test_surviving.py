"""What workers survive that needs nothing of a test but a fault: kinds of it by stages, each a row."""

import pytest

from tests.faults.kit import scenarios, survive

KILLED = """
    benchmark: claimed, planned, encoded, reranked, searched, commit begun, amid COPY, commit stored, committed
    benchmark: finishing, finished
    isolated: claimed, encoded, reranked, searched, amid COPY, commit stored, committed, finishing, finished
    index: claimed, chunked, encoded, commit begun, commit stored, words, finishing, finished
    resolve: claimed, decided, stored
    store: prepared, filling, searching
    tree: summarised, stored, level grown
    measure: claimed, commit begun, commit stored, finished
"""
EMPTIED = """
    benchmark: claimed, encoded, searched, commit stored, committed, finishing
    isolated: searched
    index: chunked, commit stored, finishing
    resolve: stored
"""
AHEAD = """
    benchmark: claimed, commit stored
    isolated: encoded
    index: commit stored
"""
BACK = """
    benchmark: searched, commit stored, finishing
    index: commit stored
    resolve: decided
"""
REVISED = """
    benchmark: claimed, planned, committed
    isolated: claimed
"""
# What is broken, within how many seconds of that the work ends, and where it is broken.
FAMILIES = {
    ("Worker killed: another finishes its work", 8): scenarios("kill", KILLED),
    ("Redis emptied during work: the sweep queues the batches again", 5): scenarios("flush", EMPTIED, alone=True),
    ("Worker's clock jumps by an hour: leases use the database's clock", 5): [
        *scenarios("clock an hour ahead", AHEAD),
        *scenarios("clock an hour back", BACK),
    ],
    ("Workers with two revisions of a model: the unfit one releases the batch to the other", 5): scenarios(
        "have another revision", REVISED
    ),
}


ROWS = [(family, row) for family, rows in FAMILIES.items() for row in rows]


@pytest.mark.parametrize(("family", "scenario"), ROWS, ids=[str(row) for _, row in ROWS])
def test_the_work_ends_by_itself_and_nothing_is_lost(crew, family, scenario):
    survive(crew, scenario)
