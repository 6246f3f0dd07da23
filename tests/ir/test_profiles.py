import math

import numpy as np
import pytest

from benchbench.ir.profiles import FLOWBABY_1_0, FLOWBABY_1_1, PLAIN, PROFILES, Mean, Profile, ProfileError

VALUES = np.array([1.0, 0.5, 0.0])


def test_names_parse_back():
    assert [str(Profile.parse(name)) for name in PROFILES] == ["plain", "flowbaby-1.0", "flowbaby-1.1"]
    with pytest.raises(ProfileError, match=r"no aggregation profile 'fancy'; there are plain, flowbaby-1\.0"):
        Profile.parse("fancy")


def test_queries_weigh_the_same_or_by_their_judgments_at_least_one():
    judgments = [3, 0, 1]
    assert Mean.BENCHMARK.of(VALUES, judgments) == Mean.MACRO.of(VALUES, judgments) == 0.5
    assert Mean.WEIGHTED.of(VALUES, judgments) == 3.5 / 5
    assert (PLAIN.mean, FLOWBABY_1_0.mean, FLOWBABY_1_1.mean) == (Mean.MACRO, Mean.MACRO, Mean.WEIGHTED)


def test_a_query_without_a_value_does_not_weigh():
    assert Mean.WEIGHTED.of(np.array([1.0, np.nan, 0.0]), [1, 7, 3]) == 0.25
    assert math.isnan(Mean.MACRO.of(np.array([np.nan]), [1]))
    assert math.isnan(Mean.MACRO.of(np.array([]), []))


def test_a_query_counts_in_its_first_slice_or_in_every_one():
    assert FLOWBABY_1_0.slices_of(("a", "b")) == ("a",)
    assert FLOWBABY_1_1.slices_of(("a", "b")) == PLAIN.slices_of(("a", "b")) == ("a", "b")
