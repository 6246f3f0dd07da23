"""What a comparison comes to, as people read it."""

from typing import Any

import numpy as np
import pytest

from apps.datasets.models import Dataset
from apps.results.comparison.comparing import RunComparison, compare_runs
from apps.results.comparison.describing import Bounds, costs_of, index_bytes
from apps.results.comparison.sentences import (
    choice_sentence,
    disorder_sentence,
    family_sentence,
    left_out_sentence,
    verdict_sentence,
)
from apps.retrieval.models import Index
from tests.results.compared import make_compared, make_queries, noisy

pytestmark = pytest.mark.django_db


def compared(values: Any, **asked: Any) -> RunComparison:
    mapping = make_queries(len(values[0]), name=f"dataset {Dataset.objects.count()}")
    runs = list(make_compared(mapping, values).runs.order_by("run_order"))
    baseline = asked.pop("baseline", None)
    return compare_runs(runs, baseline=None if baseline is None else runs[baseline], **asked)


def test_a_winner_beats_every_other_run() -> None:
    found = compared(noisy([0.2, 0.9, 0.3], 50))
    assert (
        verdict_sentence(found) == "top 20 beats every other run: the difference is more than the luck of the queries."
    )
    two = compared(noisy([0.2, 0.9], 50))
    assert verdict_sentence(two).startswith("top 20 beats top 10:")


def test_runs_that_cannot_be_told_from_the_best_are_counted_with_what_would_settle_it() -> None:
    found = compared(noisy([0.5, 0.52, 0.51, 0.1], 50))
    assert found.verdict.settled_by is not None
    assert verdict_sentence(found) == (
        f"2 runs cannot be told apart from the best, {found.labels[found.reference]}; it beats the other 1. "
        f"About {found.verdict.settled_by:,} more queries would settle it."
    )


def test_equal_runs_are_settled_by_no_number_of_queries() -> None:
    values = noisy([0.5], 50)[0]
    assert verdict_sentence(compared([values, values])) == (
        "top 10 and top 20 cannot be told apart. No realistic number of queries would settle it."
    )


def test_against_a_baseline_nothing_is_said_of_which_is_best() -> None:
    found = compared(noisy([0.5, 0.9, 0.1, 0.8], 50), baseline=0)
    assert verdict_sentence(found) == "Against the baseline top 10: top 20 and top 40 are better; top 30 is worse."


def test_it_says_what_was_tested_and_what_was_left_out() -> None:
    values = noisy([0.5, 0.6, 0.7], 50)
    values[0, :2] = np.nan
    found = compared(values)
    assert family_sentence(found) == (
        "nDCG@10 of all 3 pairs of 3 runs, paired by query over 48 queries; 10,000 sign flips, seed 42, family-wise "
        "error at most 5% by max-|t|, power 80%."
    )
    assert left_out_sentence(found) == "Queries left out: 2 that some run did not answer."
    few = compared(noisy([0.5, 0.6], 8), baseline=1)
    assert "of 1 run against the baseline" in family_sentence(few)
    assert "all 128 patterns of signs" in family_sentence(few)


def test_the_cheapest_good_run_is_named_with_what_it_may_lose() -> None:
    found = compared(noisy([0.1, 0.5, 0.51], 50))  # in order of latency: 10, 20 and 30 ms
    costs = costs_of(found, Bounds())
    assert costs.choice is not None
    assert (costs.choice.run, costs.choice.best) == (1, 2)
    pair = found.comparison.pair(2, 1)
    assert pair.simultaneous is not None
    assert choice_sentence(found, costs) == (
        "top 20 is the cheapest run that is not significantly worse than the best, top 30; it loses at most "
        f"{f'{pair.simultaneous.high:.4f}'.removeprefix('0')} nDCG@10 to it, with 95 % confidence."
    )
    within = costs_of(found, Bounds(latency_ms=15))
    assert choice_sentence(found, within) == "top 10 is the best within the bounds, and the cheapest too."
    assert choice_sentence(found, costs_of(found, Bounds(latency_ms=1))) == "No run is within these bounds."
    dear = compared(noisy([0.1, 0.9], 50))
    assert choice_sentence(dear, costs_of(dear, Bounds())).endswith("and every cheaper run is significantly worse.")


def test_against_a_baseline_no_cheapest_run_is_chosen() -> None:
    found = compared(noisy([0.1, 0.5], 50), baseline=0)
    assert "choose no baseline" in choice_sentence(found, costs_of(found, Bounds()))


def test_the_size_of_what_is_searched_counts_the_approximate_index() -> None:
    run = compared(noisy([0.1, 0.5], 50)).runs[0]
    assert index_bytes(run) is None
    run.index, run.provenance = Index(stats={"bytes": 100}), {"ann": {"index": "vectors_1_hnsw", "bytes": 20}}
    assert index_bytes(run) == 120


def test_a_worse_run_above_one_that_is_not_distinguishable_is_explained() -> None:
    best = noisy([0.6], 50)[0]
    odd = np.arange(50) % 2
    steady, erratic = best - 0.05 + 0.01 * odd, best - 0.06 + np.where(odd, 0.5, -0.5)
    said = disorder_sentence(compared([best, steady, erratic]))
    assert said.startswith("top 20 is worse and top 30, whose mean is lower, is not distinguishable: significance")
    assert disorder_sentence(compared([best, steady])) == ""
