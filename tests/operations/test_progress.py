import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.operations.models import Batch, Operation, Status
from apps.operations.progress import progress_of


@pytest.mark.parametrize(
    ("done", "seconds", "eta"),
    [
        (0, 300, None),
        (10, 30, None),  # 1 % after half a minute: models were being loaded
        (10, 120, 11_880.0),
        (100, 30, 270.0),
        (1000, 30, None),  # what concludes the work is not counted
    ],
)
def test_it_says_how_long_it_takes_once_the_pace_tells_something(
    db: None, done: int, seconds: int, eta: float | None
) -> None:
    running = {"kind": "index", "subject_id": uuid.uuid4(), "status": Status.RUNNING}
    operation = Operation.objects.create(**running, total_units=1000)
    begun = timezone.now() - timedelta(seconds=seconds)
    Batch.objects.create(operation=operation, ordinal=0, units=1000, done_units=done, started_at=begun)
    found = progress_of(operation).eta_seconds
    assert found is None if eta is None else found == pytest.approx(eta, rel=0.01)
