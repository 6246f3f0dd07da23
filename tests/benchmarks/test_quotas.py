from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.quotas import QuotaError
from apps.operations.models import Operation, Status
from tests.benchmarks.conftest import make_library


def test_a_user_runs_so_many_benchmarks_at_once(db: None, settings: Any) -> None:
    settings.BENCHMARK_MAX_RUNNING_PER_USER = 2
    ada = User.objects.create_user("ada")
    mapping = make_library(documents=4, queries=1)
    for status in (Status.RUNNING, Status.PENDING, Status.COMPLETED):
        Operation.objects.create(kind=Operation.Kind.BENCHMARK, subject_id=uuid4(), owner=ada, status=status)
    benchmark = create_benchmark(mapping, name="third", matrix={"search_modes": ["sparse"]}, owner=ada)
    with pytest.raises(QuotaError, match="ada has 2 benchmarks running, and at most 2 may"):
        launch(benchmark)
    benchmark.refresh_from_db()
    assert benchmark.status == Status.PENDING
    Operation.objects.filter(status=Status.PENDING).update(status=Status.CANCELLED)
    assert launch(benchmark).is_active
