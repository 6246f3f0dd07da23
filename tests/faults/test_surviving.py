"""What workers survive that needs nothing of a test but a fault: kinds of it by stages, each a row."""

import pytest

from tests.faults.kit import Crew, Scenario, survive

KILLED = [
    ("benchmark", "claimed"),
    ("benchmark", "benchmark: planned"),
    ("benchmark", "benchmark: encoded"),
    ("benchmark", "benchmark: reranked"),
    ("benchmark", "benchmark: searched"),
    ("benchmark", "benchmark: commit begun"),
    ("benchmark", "benchmark: amid COPY"),
    ("benchmark", "benchmark: commit stored"),
    ("benchmark", "benchmark: committed"),
    ("benchmark", "benchmark: finishing"),
    ("benchmark", "benchmark: finished"),
    ("isolated", "claimed"),
    ("isolated", "benchmark: encoded"),
    ("isolated", "benchmark: reranked"),
    ("isolated", "isolated: searched"),
    ("isolated", "benchmark: amid COPY"),
    ("isolated", "benchmark: commit stored"),
    ("isolated", "benchmark: committed"),
    ("isolated", "benchmark: finishing"),
    ("isolated", "benchmark: finished"),
    ("index", "claimed"),
    ("index", "index: chunked"),
    ("index", "index: encoded"),
    ("index", "index: commit begun"),
    ("index", "index: commit stored"),
    ("index", "index: words"),
    ("index", "index: finishing"),
    ("index", "index: finished"),
    ("resolve", "claimed"),
    ("resolve", "resolve: decided"),
    ("resolve", "resolve: stored"),
    ("store", "benchmark: prepared"),
    ("store", "store: filling"),
    ("store", "store: searching"),
    ("tree", "tree: summarised"),
    ("tree", "tree: stored"),
    ("tree", "tree: level grown"),
    ("measure", "claimed"),
    ("measure", "measure: commit begun"),
    ("measure", "measure: commit stored"),
    ("measure", "measure: finished"),
]
EMPTIED = [
    ("benchmark", "claimed"),
    ("benchmark", "benchmark: encoded"),
    ("benchmark", "benchmark: searched"),
    ("benchmark", "benchmark: commit stored"),
    ("benchmark", "benchmark: committed"),
    ("benchmark", "benchmark: finishing"),
    ("isolated", "isolated: searched"),
    ("index", "index: chunked"),
    ("index", "index: commit stored"),
    ("index", "index: finishing"),
    ("resolve", "resolve: stored"),
]
JUMPED = [
    ("benchmark", "claimed", "ahead"),
    ("benchmark", "benchmark: searched", "back"),
    ("benchmark", "benchmark: commit stored", "ahead"),
    ("benchmark", "benchmark: commit stored", "back"),
    ("benchmark", "benchmark: finishing", "back"),
    ("isolated", "benchmark: encoded", "ahead"),
    ("index", "index: commit stored", "ahead"),
    ("index", "index: commit stored", "back"),
    ("resolve", "resolve: decided", "back"),
]
# What is broken, within how many seconds of that the work ends, and where it is broken.
FAMILIES = {
    ("A worker killed: another ends what it began", 8): [Scenario(kind, point, "kill") for kind, point in KILLED],
    ("Redis emptied in mid-work: the sweep queues the batches again", 5): [
        Scenario(kind, point, "flush", alone=True) for kind, point in EMPTIED
    ],
    ("A worker's clock jumps by an hour: leases are kept by the database's", 5): [
        Scenario(kind, point, f"clock an hour {way}") for kind, point, way in JUMPED
    ],
    ("Workers of two revisions of a model: who may not do a batch leaves it to the other", 5): [
        Scenario("benchmark", "claimed", "have another revision"),
        Scenario("benchmark", "benchmark: planned", "have another revision"),
        Scenario("benchmark", "benchmark: committed", "have another revision"),
        Scenario("isolated", "claimed", "have another revision"),
    ],
}


ROWS = [(family, row) for family, rows in FAMILIES.items() for row in rows]


@pytest.mark.parametrize(("family", "scenario"), ROWS, ids=[str(row) for _, row in ROWS])
def test_the_work_ends_by_itself_and_nothing_is_lost(crew: Crew, family: tuple[str, float], scenario: Scenario) -> None:
    survive(crew, scenario)
