import numpy as np
import pytest

from benchbench.ir.statistics.frontier import Choice, Point, cheapest_not_worse, frontier
from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import compare
from tests.ir.simulated import benchmark


def points(*figures: tuple[float, float | None, float | None]) -> list[Point]:
    return [Point(quality=quality, latency_ms=ms, index_bytes=size) for quality, ms, size in figures]


class TestFrontier:
    def test_it_keeps_what_no_other_point_beats_in_every_respect(self):
        found = points((0.5, 10, 100), (0.6, 20, 100), (0.55, 20, 100), (0.4, 10, 50), (0.5, 11, 100), (0.6, 30, 90))
        assert frontier(found) == (0, 1, 3, 5)

    def test_equal_points_stay_together(self):
        assert frontier(points((0.5, 10, 100), (0.5, 10, 100), (0.5, 10, 101))) == (0, 1)

    def test_a_point_that_is_not_wholly_known_takes_no_part(self):
        assert frontier(points((0.5, 10, 100), (0.9, None, 1), (0.9, 1, None))) == (0,)
        assert frontier([]) == ()


class TestCheapestNotWorse:
    VALUES = benchmark(np.random.default_rng(3), [0, 2.5, 2.4, 2.2])
    COMPARISON = compare(VALUES, seed=0)  # runs 1, 2 and 3 cannot be told apart, run 0 is worse
    POINTS = points((0, 1, 1), (0, 90, 10), (0, 40, 30), (0, 40, 20))

    def test_it_takes_the_quickest_then_the_smallest(self):
        chosen = cheapest_not_worse(self.COMPARISON, self.POINTS)
        best = int(np.argmax(self.COMPARISON.means))
        assert isinstance(chosen, Choice)
        assert (chosen.run, chosen.best, chosen.within) == (3, best, (0, 1, 2, 3))
        assert chosen.most_lost == self.COMPARISON.pair(best, 3).simultaneous.high

    def test_no_interval_reaches_past_what_may_be_lost(self):
        """Where one query in twelve differs much, the bootstrap's interval of the pair is the farther one."""
        skewed = np.array([[1.0] + [0.5] * 11, [0.0] + [0.52] * 11])
        pair = compare(skewed, seed=0).pair(0, 1)
        chosen = cheapest_not_worse(compare(skewed, seed=0), points((0, 2, 1), (0, 1, 1)))
        assert pair.interval.high > pair.simultaneous.high
        assert (chosen.run, chosen.most_lost) == (1, pair.interval.high)

    def test_the_best_is_the_best_within_the_bounds(self):
        chosen = cheapest_not_worse(self.COMPARISON, self.POINTS, max_latency_ms=50, max_index_bytes=10)
        assert chosen == Choice(run=0, best=0, within=(0,), most_lost=0.0)
        assert cheapest_not_worse(self.COMPARISON, self.POINTS, max_latency_ms=0.5) is None

    def test_what_is_not_known_is_dearest_and_outside_any_bound(self):
        unknown = points((0, 1, 1), (0, 90, 10), (0, None, 30), (0, 50, None))
        assert cheapest_not_worse(self.COMPARISON, unknown).run == 3
        assert cheapest_not_worse(self.COMPARISON, unknown, max_latency_ms=100).within == (0, 1, 3)
        assert cheapest_not_worse(self.COMPARISON, unknown, max_index_bytes=100).within == (0, 1, 2)

    def test_it_needs_all_pairs_and_a_point_for_each_run(self):
        with pytest.raises(ComparisonError, match="from a comparison of all pairs"):
            cheapest_not_worse(compare(self.VALUES, seed=0, baseline=1), self.POINTS)
        with pytest.raises(ComparisonError, match="There are 4 runs, but 3 points"):
            cheapest_not_worse(self.COMPARISON, self.POINTS[:3])
