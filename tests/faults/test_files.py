"""Damaged files of vectors, words, tokens and stores: they are rebuilt; no figure changes."""

from dataclasses import replace

import pytest

from tests.faults.kit import Scenario, survive
from tests.faults.outages import DAMAGES

STATED_SECONDS = 5
WAYS = ("second half zeroed", "cut to half", "emptied", "bits flipped", "missing")
DAMAGED = [
    Scenario("store" if damage.startswith("sqlite") else "benchmark", "benchmark: searched", damage, alone=True)
    for damage in DAMAGES
    if damage.partition(": ")[2] in WAYS
]


@pytest.mark.parametrize("scenario", DAMAGED, ids=str)
def test_no_damage_of_a_file_changes_a_figure(crew, scenario, tmp_path):
    survive(crew, replace(scenario, settings={"BENCHBENCH_VECTOR_DIR": str(tmp_path / "vectors")}))
