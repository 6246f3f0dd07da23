"""What a comparison comes to, and how runs differ, as people read it."""

from typing import Any

import numpy as np
import pytest
from django.template.loader import render_to_string
from django.urls import reverse

from apps.datasets.models import Dataset
from apps.records.models import Run
from apps.results.comparison.panels import build_rows
from apps.retrieval.models import Index
from apps.verdicts.comparing import RunComparison, compare_runs
from apps.verdicts.configurations import find_varying, list_phrases, list_shared
from apps.verdicts.describing import Bounds, compute_costs, compute_index_bytes
from apps.verdicts.sentences import (
    describe_choice,
    describe_disorder,
    describe_family,
    describe_left_out,
    describe_verdict,
)
from benchbench.ir.planning.matrix import Configuration
from tests.results.compared import make_compared, make_queries, noisy
from tests.site import results_url, text_of

pytestmark = pytest.mark.django_db


def compared(values: Any, **requested: Any) -> RunComparison:
    mapping = make_queries(len(values[0]), name=f"dataset {Dataset.objects.count()}")
    runs = list(make_compared(mapping, values).runs.order_by("run_order"))
    baseline = requested.pop("baseline", None)
    return compare_runs(runs, baseline=None if baseline is None else runs[baseline], **requested)


def test_a_winner_beats_every_other_run():
    comparison = compared(noisy([0.2, 0.9, 0.3], 50))
    answer = "top 20 beats every other run: the difference is significant."
    assert describe_verdict(comparison) == answer
    assert describe_verdict(compared(noisy([0.2, 0.9], 50))).startswith("top 20 beats top 10:")


def test_verdict_counts_indistinguishable_runs_and_the_queries_needed():
    comparison = compared(noisy([0.5, 0.52, 0.51, 0.1], 50))
    assert comparison.verdict.settled_by == 9_200, "more than ten times as many"
    assert describe_verdict(comparison) == (
        f"{comparison.labels[comparison.reference]} beats 1 of the other runs "
        "but is not distinguishable from the other 2. "
        "About 350 more queries would settle some of it; no realistic number would settle the rest."
    )


def test_equal_runs_are_settled_by_no_number_of_queries():
    values = noisy([0.5], 50)[0]
    assert describe_verdict(compared([values, values])) == (
        "top 10 and top 20 are not distinguishable. No realistic number of queries would settle it."
    )


def test_verdict_against_a_baseline_names_no_best_run():
    comparison = compared(noisy([0.5, 0.9, 0.1, 0.8], 50), baseline=0)
    assert describe_verdict(comparison) == "Against the baseline top 10: top 20 and top 40 are better; top 30 is worse."


def test_sentences_name_the_tests_and_the_omitted_queries():
    values = noisy([0.5, 0.6, 0.7], 50)
    values[0, :2] = np.nan
    comparison = compared(values)
    assert describe_family(comparison) == (
        "nDCG@10 of all 3 pairs of 3 runs, paired by query over 48 queries; 10,000 sign flips, seed 42, family-wise "
        "error at most 5 % by max-|t|, power 80 %."
    )
    assert describe_left_out(comparison) == "Queries left out: 2 without an answer from every run."
    few = compared(noisy([0.5, 0.6], 8), baseline=1)
    assert "of 1 run against the baseline" in describe_family(few)
    assert "all 128 sign patterns" in describe_family(few)


def test_cheapest_good_run_is_named_with_its_possible_loss():
    result = compared(noisy([0.1, 0.5, 0.51], 50))  # in order of latency: 10, 20 and 30 ms
    costs = compute_costs(result, Bounds())
    assert (costs.choice.run, costs.choice.best) == (1, 2)
    pair = result.comparison.get_pair(2, 1)
    assert describe_choice(result, costs) == (
        "top 20 is the cheapest run that is not significantly worse than the best, top 30; it loses at most "
        f"{f'{pair.simultaneous.high:.4f}'.removeprefix('0')} nDCG@10, with 95 % confidence."
    )
    within = compute_costs(result, Bounds(latency_ms=15))
    assert describe_choice(result, within) == "top 10 is the best within the bounds, and also the cheapest."
    assert describe_choice(result, compute_costs(result, Bounds(latency_ms=1))) == "No run is within these bounds."
    dear = compared(noisy([0.1, 0.9], 50))
    assert describe_choice(dear, compute_costs(dear, Bounds())).endswith(
        "and every cheaper run is significantly worse."
    )


def test_few_changed_queries_have_no_possible_loss():
    values = noisy([0.5], 50)[0]
    second = values.copy()
    second[:4] += [0.2, 0.1, -0.1, 0.3]
    comparison = compared([values, second])
    assert describe_choice(comparison, compute_costs(comparison, Bounds())) == (
        "top 10 is the cheapest run that is not significantly worse than the best, top 20. "
        "Only 4 of 50 queries changed, too few for an interval."
    )
    (row,) = [row for row in build_rows(comparison, comparison.order) if row["pair"]]
    cells = render_to_string("results/comparison/pair.html", {**row, "tested": True})
    assert "too few for an interval" in cells
    assert "[" not in cells, "the sentence replaces the interval"
    assert row["bar"].low == row["bar"].centre == row["bar"].high


def test_against_a_baseline_no_cheapest_run_is_chosen():
    comparison = compared(noisy([0.1, 0.5], 50), baseline=0)
    assert "choose no baseline" in describe_choice(comparison, compute_costs(comparison, Bounds()))


def test_index_size_includes_the_approximate_index():
    assert compute_index_bytes(Run()) is None
    facts = {"ann": {"index": "vectors_1_hnsw", "bytes": 20}}
    assert compute_index_bytes(Run(index=Index(stats={"bytes": 100}), provenance=facts)) == 120


ODD = np.arange(50) % 2
BEST = noisy([0.6], 50)[0]
STEADY, ERRATIC = BEST - 0.05 + 0.01 * ODD, BEST - 0.06 + np.where(ODD, 0.5, -0.5)


def test_worse_run_above_an_indistinguishable_one_is_explained():
    disorder = describe_disorder(compared([BEST, STEADY, ERRATIC]))
    assert disorder.startswith("top 20 is significantly worse, but top 30, whose mean is lower, is not: significance")
    assert describe_disorder(compared([BEST, STEADY])) == ""


def test_out_of_order_runs_are_explained_on_both_pages(admin_client):
    comparison = compared([BEST, STEADY, ERRATIC])
    disorder = describe_disorder(comparison)
    assert disorder
    benchmark = comparison.runs[0].benchmark
    for address in (results_url(benchmark, "verdict"), f"{reverse('admin:run_compare')}?benchmark={benchmark.pk}"):
        assert disorder in text_of(admin_client.get(address))


DENSE = Configuration(search_mode="dense").as_dict()
HYBRID = Configuration(search_mode="hybrid", rrf_k=20, top_k=50).as_dict()


def test_varying_keys_have_a_fixed_order():
    assert find_varying([DENSE, HYBRID]) == ["search_mode", "top_k"]
    assert find_varying([HYBRID, {**HYBRID, "rrf_k": 40}]) == ["rrf_k"]
    assert find_varying([DENSE]) == []
    assert find_varying([DENSE, {**DENSE, "candidates": 500}]) == ["candidates"]


def test_key_that_does_not_affect_a_run_is_ignored():
    assert find_varying([DENSE, {**DENSE, "rrf_k": 40}]) == []
    assert list_phrases(DENSE, ["search_mode", "rrf_k", "reranker"]) == ["dense"]


def test_it_says_configurations_in_words():
    config = Configuration(
        index="minilm", search_mode="sparse", use_reranker=True, reranker="models/tiny", score_threshold=0.5
    ).as_dict()
    keys = ["index", "search_mode", "use_reranker", "reranker", "top_k", "score_threshold"]
    assert list_phrases(config, keys) == ["index minilm", "lexical", "reranked", "tiny", "top 100", "score ≥ 0.5"]
    fields = {**DENSE, "ann": "hnsw", "query_prefix": "a"}
    assert list_phrases(fields, ["ann", "query_prefix", "score_threshold"]) == [
        "hnsw",
        "query prefix a",
        "no threshold",
    ]
    weighted = Configuration(search_mode="hybrid", fusion="weighted", weights=(0.7, 0.3), lexical="fts").as_dict()
    keys = ["lexical", "fusion", "weights", "rrf_k"]
    assert list_phrases(weighted, keys) == ["full text", "weighted fusion", "weights 0.7 + 0.3"]


def test_shared_settings_do_not_depend_on_run_order():
    short = Configuration(search_mode="dense", dimensions=64).as_dict()
    lexical = Configuration(search_mode="sparse").as_dict()
    fused = Configuration(search_mode="hybrid", rrf_k=20).as_dict()
    assert "RRF k 20 where it applies" in list_shared([DENSE, fused])
    assert sorted(list_shared([fused, DENSE])) == sorted(list_shared([DENSE, fused]))
    assert "64 dimensions where it applies" in list_shared([short, lexical])
    assert sorted(list_shared([lexical, short])) == sorted(list_shared([short, lexical]))
    assert "top 100" in list_shared([short, lexical])
    assert not any("RRF" in one for one in list_shared([short, lexical]))
    assert "RRF k 20" in list_shared([fused, {**fused, "top_k": 50}])
    assert not any("RRF" in one for one in list_shared([fused, HYBRID, {**HYBRID, "rrf_k": 7}, DENSE]))


def test_run_without_configuration_shares_no_settings():
    assert list_shared([DENSE, {}]) == list_shared([]) == []
