import math
from itertools import pairwise
from typing import Any

import pytest
from django.db.models.functions import Length

from apps.execution.launching import BATCHES, MAX_BATCH, choose_batch_size, split_batches
from apps.records.models import Benchmark
from apps.retrieval.encoders.encoding import compute_query_vectors
from apps.retrieval.models import CachedVector
from tests.created import create_benchmark


@pytest.fixture(autouse=True)
def short_batches(settings: Any) -> None:
    """Batches as the application cuts them, unlike elsewhere: that is what is tested here."""
    settings.BENCHBENCH_BATCH_SECONDS = 0.001


@pytest.mark.parametrize(
    ("queries", "seconds", "batches"),
    [
        (300, 0.001, 1),  # a batch of less than half its time is not worth what it costs
        (300, 0.05, 6),
        (300, 0.1, BATCHES),
        (300, 1.0, 60),
        (3, 100.0, 3),
        (10_000, 0.0001, 10_000 // MAX_BATCH),
        (1_109, 0.0001, 4),  # three would hold as much, and one of two workers would have two of them
        (1, 0.0, 1),
    ],
)
def test_a_batch_takes_about_its_time(queries, seconds, batches, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 5
    assert math.ceil(queries / choose_batch_size(queries, seconds)) == batches


def test_nothing_to_do_has_a_batch_size_too():
    assert choose_batch_size(0, 1.0) == 1


def test_the_queries_of_a_batch_are_of_like_length(library):
    """A model that pads a batch to its longest text pads little so. Batches come in the order of their queries."""
    benchmark = create_benchmark(library, name="b", matrix={})
    length_of = dict(library.dataset.queries.annotate(length=Length("text")).values_list("pk", "length"))
    batches = [batch["query_ids"] for batch, _ in split_batches(benchmark, list(benchmark.runs.all()))]
    assert len(batches) > 2
    assert sorted(pk for batch in batches for pk in batch) == sorted(length_of)
    assert batches == sorted(map(sorted, batches))
    spans = sorted((min(lengths), max(lengths)) for lengths in ([length_of[pk] for pk in batch] for batch in batches))
    assert all(shorter[1] <= longer[0] for shorter, longer in pairwise(spans))


def test_cached_query_vectors_need_no_extra_batches(library, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 5
    benchmark = create_benchmark(library, name="b", matrix={})
    runs = list(benchmark.runs.select_related("index"))
    compute_query_vectors(runs[0].index, list(library.dataset.queries.values_list("text", flat=True)))
    CachedVector.objects.update(encode_ms=5000)
    assert len(list(split_batches(benchmark, runs))) == 1
    benchmark.execution = Benchmark.Execution.ISOLATED  # encodes to see how long it takes
    assert len(list(split_batches(benchmark, runs))) == 12
    benchmark.execution = Benchmark.Execution.SHARED
    CachedVector.objects.filter(pk__in=CachedVector.objects.filter(space__kind="query").values("pk")[:5]).delete()
    assert len(list(split_batches(benchmark, runs))) > 1
