"""A benchmark that ended long ago, and what retention would delete of it."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.operations.models import Operation
from apps.records.models import Benchmark
from apps.results.retention import sizes
from apps.results.retention.policies import POLICIES
from apps.results.retention.pruning import list_due
from apps.retrieval.models import Index
from apps.verdicts.ranked_runs import load_leaderboard
from tests.created import run_benchmark
from tests.kept import made_once
from tests.library import make_library

LONG_AGO = timedelta(days=100)
RANKINGS, INDEXES, VECTORS, LLM_ANSWERS, ENGINE_ANSWERS, OPERATIONS, _ = (policy.name for policy in POLICIES)


@made_once
def make_ended() -> Benchmark:
    matrix = {"search_modes": ["dense", "sparse"]}
    benchmark = run_benchmark(make_library(), name="Which?", matrix=matrix)
    Benchmark.objects.update(completed_at=timezone.now() - LONG_AGO)
    Operation.objects.update(finished_at=timezone.now() - LONG_AGO)
    Index.objects.update(updated_at=timezone.now() - LONG_AGO)
    benchmark.refresh_from_db()
    return benchmark


def due() -> dict[str, int]:
    return {policy.name: number for policy, _, number, _ in list_due(sizes.load_sizes()) if number}


def figures(benchmark: Benchmark) -> Any:
    return [(row.run.pk, row.rank, row.values) for row in load_leaderboard(benchmark).rows]
