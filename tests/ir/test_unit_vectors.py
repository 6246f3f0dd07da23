import numpy as np
import pytest

from benchbench.ir.ranking import flaws, shape_flaw

SOUND = np.eye(4, 8, dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_each_row_is_told_what_is_wrong_with_it(dtype):
    vectors = np.tile(np.full(8, 8**-0.5), (6, 1)).astype(dtype)
    vectors[1, 3] = np.nan
    vectors[2, 0] = np.inf
    vectors[3] = vectors[5] = 0
    vectors[5, 0] = 0.5
    assert flaws(vectors) == {1: "not finite", 2: "not finite", 3: "zero", 5: "of length 0.5 instead of 1"}
    assert flaws(vectors, unit=False) == {1: "not finite", 2: "not finite", 3: "zero"}


def test_sound_vectors_have_no_flaw():
    assert flaws(SOUND) == flaws(SOUND[:0]) == flaws(np.empty((0, 0), np.float16)) == {}


def test_a_shape_is_told_beside_the_one_that_was_wanted():
    assert shape_flaw(SOUND, 4, 8) == ""
    assert shape_flaw(SOUND, 5, 8) == "(4, 8), not (5, 8)"
    assert shape_flaw(SOUND[0], 1, 8) == "(8,), not (1, 8)"
