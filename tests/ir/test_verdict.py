import numpy as np
import pytest

from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import more_queries, verdict
from tests.ir.simulated import benchmark


def values(abilities: list[float], queries: int = 100) -> np.ndarray:
    return benchmark(np.random.default_rng(3), abilities, queries)


class TestWinner:
    def test_it_beats_every_other_run(self):
        told = verdict(compare(values([0, 2.5, 0.1, 0.2]), seed=0))
        assert (told.reference, told.winner, told.group) == (1, 1, (1,))
        assert set(told.worse) == {0, 2, 3}
        assert told.settled_by == 0

    def test_there_is_none_beside_its_equal(self):
        twins = values([0, 2.5, 0.1])[[0, 1, 1, 2]]
        told = verdict(compare(twins, seed=0))
        assert told.winner is None
        assert told.group == (1, 2)
        assert told.more_queries == (None,)
        assert told.settled_by is None

    def test_otherwise_the_group_is_what_cannot_be_told_from_the_best(self):
        comparison = compare(values([0, 2.5, 2.4, 2.2, -1]), seed=0)
        told = verdict(comparison)
        assert told.winner is None
        assert set(told.group) == {1, 2, 3}
        assert [comparison.means[run] for run in told.group] == sorted(
            (comparison.means[run] for run in told.group), reverse=True
        )
        assert told.worse == (0, 4)

    def test_runs_are_named_alike_in_any_order(self):
        order = [3, 1, 4, 0, 2]
        found = values([0, 2.5, 2.4, 2.2, -1])
        one, other = (verdict(compare(rows, seed=0)) for rows in (found, found[order]))
        assert [order[run] for run in other.group] == list(one.group)
        assert other.more_queries == one.more_queries


class TestBaseline:
    def test_it_sorts_runs_by_how_they_stand_to_it(self):
        told = verdict(compare(values([1, 1.05, 3, -1.5, 3.2]), seed=0, baseline=0))
        assert (told.reference, told.winner) == (0, None)
        assert set(told.better) == {2, 4}
        assert told.worse == (3,)
        assert told.undecided == (1,)
        assert len(told.more_queries) == 1


class TestMoreQueries:
    def test_it_is_the_n_at_which_the_observed_difference_would_be_detectable(self):
        comparison = compare(values([0, 0.3]), seed=0)
        [pair] = comparison.pairs
        more = more_queries(pair, comparison)
        exact = 100 * (pair.detectable / pair.difference) ** 2 - 100
        assert exact <= more <= exact * 1.1
        assert more == float(f"{more:.1e}")

    def test_with_so_many_more_the_difference_is_found_with_the_power(self):
        comparison = compare(np.tile([[0.4, 0.5, 0.6, 0.9], [0.2, 0.6, 0.7, 0.7]], 10), seed=0)
        [pair] = comparison.pairs
        assert not pair.significant
        more = more_queries(pair, comparison)
        larger = compare(np.tile([[0.4, 0.5, 0.6, 0.9], [0.2, 0.6, 0.7, 0.7]], 10 + more // 4), seed=0)
        assert larger.pairs[0].detectable == pytest.approx(pair.difference, rel=0.1)

    def test_no_realistic_number_is_none(self):
        d = np.array([1.0, -1.0] * 50)
        for difference in (d, d + 1e-3):
            comparison = compare(np.array([difference, np.zeros(100)]), seed=0)
            assert more_queries(comparison.pairs[0], comparison) is None

    def test_too_few_queries_to_show_anything_still_have_a_number(self):
        comparison = compare(np.array([[1, 0.9, 0.3, 0.8], [0.0, 0, 0, 0]]), seed=0)
        assert comparison.critical is None
        assert 1 <= more_queries(comparison.pairs[0], comparison) < 20
