"""Orders of a pool, and the uniform sample that is in each of them."""

import numpy as np
import pytest

from benchbench.ir.judging.orders import (
    order_by_depth,
    order_by_query,
    order_by_weight,
    order_randomly,
    query_order,
    sample_of,
    sample_size,
    upcoming,
    whole_queries,
)
from benchbench.ir.judging.pool import Item, JudgingError, Pool

RUNS = [[list("abcd"), list("ab")], [list("cxay"), list("bz")]]


def test_pool_lists_each_pair_once_with_run_ranks():
    pool = Pool.from_rankings(RUNS, depth=3)
    assert pool.documents == (("a", "c", "b", "x"), ("b", "a", "z"))
    assert pool.size == 7
    assert pool.ranks[:, 0].tolist() == [[1, 3, 2, np.inf], [3, 1, np.inf, 2]]
    assert pool.find_cell(Item(1, "z")) == (1, 2)
    grades = pool.get_grades([{"c": 2, "q": 3, "r": 1}, {}])
    assert grades[0].tolist()[1] == 2
    assert np.isnan(grades).sum() == 7
    assert pool.list_outside([{"c": 2, "q": 3, "r": 1}, {"z": 1}]) == [[3, 1], []]


def test_queries_failed_by_a_run_are_not_compared():
    pool = Pool.from_rankings([[["a"], None], [["b"], ["c"]]])
    assert pool.answered.tolist() == [True, False]
    assert pool.size == 3


def test_invalid_pool_input_is_rejected():
    with pytest.raises(JudgingError, match="at least one run"):
        Pool.from_rankings([])
    with pytest.raises(JudgingError, match="not in the pool of query 0"):
        Pool.from_rankings(RUNS).find_cell(Item(0, "q"))
    with pytest.raises(JudgingError, match="2 queries, but truths are given for 1"):
        Pool.from_rankings(RUNS).get_grades([{}])


def test_by_depth_all_first_places_come_before_the_second():
    pool = Pool.from_rankings(RUNS)
    order = [pool.get_item(number) for number in order_by_depth(pool).tolist()]
    assert order[:4] == [(0, "a"), (0, "c"), (1, "b"), (1, "a")]
    assert order[-2:] == [(0, "d"), (0, "y")]
    assert order_by_weight([0.1, 0.3, 0.2, 0.3]).tolist() == [1, 3, 2, 0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 1.0])
def test_given_pairs_include_the_stated_share_of_sample_prefix(share):
    rng = np.random.default_rng(4)
    sample = rng.permutation(200)
    supplied: set[int] = set()
    while len(supplied) < 200:
        primary = order_by_weight(rng.random(200))  # as weights move from grade to grade
        number = next(upcoming(primary, sample, supplied, share=share))
        assert number not in supplied
        first = next(n for n in primary.tolist() if n not in supplied)
        supplied.add(number)
        due = sample[: sample_size(len(supplied), share, 200)].tolist()
        assert supplied.issuperset(due)
        assert number in due or number == first
    assert list(upcoming(sample, sample, supplied)) == []


def test_every_order_samples_pairs_with_the_stated_probability():
    """However a pair's own grade decides what is asked next."""
    pool = Pool.from_rankings([[list("abcdefghij")], [list("jihgfedcba")]])
    counts, declared = np.zeros(pool.size), []
    for seed in range(1_000):
        supplied: list[int] = []
        sample = order_randomly(pool, seed=seed)
        for _ in range(6):
            primary = order_by_weight(
                [3.0 if number % 2 == len(supplied) % 2 else number for number in range(pool.size)]
            )
            supplied.append(next(upcoming(primary, sample, supplied, share=0.4)))
        numbers = sample_of(sample, supplied, share=0.4)
        counts[numbers] += 1
        declared.append(len(numbers))
    assert set(declared) == {3}
    assert np.abs(counts / 1_000 - 0.3).max() < 0.06


def test_sample_ends_before_the_first_unjudged_pair():
    order = order_randomly(Pool.from_rankings(RUNS), seed=1)
    judged = [number for number in order.tolist() if number != order[2]]
    assert sample_of(order, judged, share=1.0).tolist() == order[:2].tolist()
    with pytest.raises(JudgingError, match="between 0 and 1"):
        sample_of(order, judged, share=1.5)


def test_sample_of_an_early_stopped_round_is_judged_pairs():
    order = order_randomly(Pool.from_rankings(RUNS), seed=1)
    assert sample_of(order, order[:1].tolist(), share=0.1).tolist() == order[:1].tolist()
    assert sample_of(order, [], share=0.1).tolist() == []


def test_query_order_groups_pairs_by_query_best_rank_first():
    pool = Pool.from_rankings(RUNS)
    order = [pool.get_item(number) for number in order_by_query(pool, np.array([1, 0])).tolist()]
    assert [item.query for item in order] == [1] * 3 + [0] * 6
    assert [item.document for item in order[:3]] == ["b", "a", "z"]
    assert order[3:] == [pool.get_item(number) for number in order_by_depth(pool).tolist() if number < 6]


def test_whole_queries_end_before_the_first_incomplete_query():
    order = np.array([3, 0, 2, 1])
    assert whole_queries(order, {2}).tolist() == [3, 0]
    assert whole_queries(order, {3, 2}).tolist() == []
    assert whole_queries(order, ()).tolist() == [3, 0, 2, 1]


def test_fully_judged_queries_and_sampled_pairs_are_uniform_samples():
    """Of a round that stops after 12 pairs, 3 of them by the sample of pairs."""
    pool = Pool.from_rankings([[list("abc")] * 8, [list("abc")] * 8])
    queries, pairs, sizes = np.zeros(8), np.zeros(pool.size), []
    for seed in range(2_000):
        order, sample = query_order(pool, seed=seed), order_randomly(pool, seed=seed)
        coming = upcoming(order_by_query(pool, order), sample, (), share=0.25)
        judged = [next(coming) for _ in range(12)]
        complete = whole_queries(
            order, {pool.get_item(number).query for number in range(pool.size) if number not in judged}
        )
        queries[complete] += 1
        sizes.append(len(complete))
        pairs[sample_of(sample, judged, share=0.25)] += 1
    assert set(sizes) == {3, 4}
    assert np.abs(queries / 2_000 - np.mean(sizes) / 8).max() < 0.04
    assert np.abs(pairs / 2_000 - 3 / 24).max() < 0.04
