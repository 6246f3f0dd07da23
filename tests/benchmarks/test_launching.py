import math

import pytest

from apps.benchmarks.launching import BATCHES, MAX_BATCH, batch_size


@pytest.mark.parametrize(
    ("queries", "seconds", "batches"),
    [
        (300, 0.001, 1),  # a batch of less than half its time is not worth what it costs
        (300, 0.05, 6),
        (300, 0.1, BATCHES),
        (300, 1.0, 60),
        (3, 100.0, 3),
        (10_000, 0.0001, 10_000 // MAX_BATCH),
        (1, 0.0, 1),
    ],
)
def test_a_batch_takes_about_its_time(queries: int, seconds: float, batches: int, settings: object) -> None:
    settings.BENCHBENCH_BATCH_SECONDS = 5
    assert math.ceil(queries / batch_size(queries, seconds)) == batches


def test_nothing_to_do_has_a_batch_size_too() -> None:
    assert batch_size(0, 1.0) == 1
