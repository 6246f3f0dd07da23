"""How often a gate passes a loss of .05 where it allows one of .01, on benchmarks of which the truth is known."""

import pytest

from benchbench.ir.gate import Outcome
from tests.ir.losses import GAINS, LOSS, judge_few_losses, judge_losses


@pytest.mark.parametrize("name", GAINS)
def test_gate_seldom_passes_a_loss_that_is_there(name):
    strict = judge_losses(GAINS[name], LOSS, lenient=False, runs=200)
    lenient = judge_losses(GAINS[name], LOSS, lenient=True, runs=200)
    assert strict[Outcome.PASSED] <= 10, "5 %"
    assert lenient[Outcome.PASSED] >= 100, "why it is not the default"
    assert strict[Outcome.FAILED] == lenient[Outcome.FAILED], "neither rule fails more often"


@pytest.mark.parametrize(("queries", "size"), [(100, 0.1), (300, 0.2), (300, 0.5)])
def test_few_changed_queries_seldom_pass(queries, size):
    """Comparisons show no interval of 1 to 9 changed queries; gates may judge by it, as `perf/gates.py` measures."""
    few = judge_few_losses(queries, size, runs=200)[True]
    assert few.total() >= 10
    assert few[Outcome.PASSED] <= 10, "5 % of all gates"
