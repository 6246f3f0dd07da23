"""An index that could not be built: its runs are there, failed, and harm no others."""

from functools import partial

import pytest

from apps.benchmarks.launching import launch, retry
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from
from apps.benchmarks.repeating.verifying import verify
from apps.mappings.models import Mapping
from apps.operations.working import OperationFailedError, wait
from apps.retrieval.availability import UnavailableError
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.errors import ConflictError
from tests.benchmarks.conftest import ENCODER, make_library
from tests.created import create_benchmark
from tests.kept import made_once


@pytest.fixture
def benchmark(transactional_db: None) -> Benchmark:
    return make_broken()


@made_once
def make_broken() -> Benchmark:
    """A completed benchmark over one index that is ready and one whose encoder names no words."""
    library = make_library()
    broken = create_index(library.collection, name="broken", encoder="keyword:")
    with pytest.raises(OperationFailedError):
        wait(build_index(broken))
    broken.refresh_from_db()
    indexes = {"keywords": library.collection.indexes.get(name="keywords"), "broken": broken}
    made = create_benchmark(library, name="b", matrix={"indexes": ["broken", "keywords"]}, indexes=indexes)
    wait(launch(made))
    made.refresh_from_db()
    return made


def test_it_makes_a_failed_run_with_the_error_of_the_index(benchmark: Benchmark) -> None:
    failed, completed = benchmark.runs.all()
    assert (benchmark.status, failed.status, completed.status) == ("completed", "failed", "completed")
    assert failed.error_message.startswith("Its index could not be built. 'keyword:' names no distinct keywords")
    assert failed.index is not None
    assert failed.index.status == Index.Status.FAILED


def test_it_is_retried_once_the_index_is_ready(benchmark: Benchmark) -> None:
    with pytest.raises(ConflictError, match="no index that is ready"):
        retry(benchmark)
    Index.objects.filter(name="broken").update(encoder=ENCODER)
    wait(build_index(Index.objects.get(name="broken")))
    wait(retry(benchmark))
    failed, completed = benchmark.runs.all()
    assert failed.status == "completed"
    assert [one.document_ids for one in failed.query_results.all()] == [
        one.document_ids for one in completed.query_results.all()
    ]


def test_an_index_that_was_built_by_a_strategy_that_is_not_here_is_not_searched(library: Mapping) -> None:
    """Sites have such, from before it was refused."""
    pending, failed = (create_benchmark(library, name=name, matrix={}) for name in ("pending", "failed"))
    failed.runs.update(status=Run.Status.FAILED)
    Index.objects.update(strategy="no_such")
    library.refresh_from_db()
    made = partial(create_benchmark, library, name="b", matrix={})
    for act in (made, partial(launch, pending), partial(retry, failed)):
        with pytest.raises(
            UnavailableError, match='"keywords" is not available here: the strategy no_such is not known'
        ):
            act()
    assert Benchmark.objects.count() == 2
    assert set(Run.objects.values_list("status", flat=True)) == {"pending", "failed"}


def test_its_manifest_reproduces_what_completed(benchmark: Benchmark) -> None:
    again = benchmark_from(manifest_of(benchmark))
    wait(launch(again))
    again.refresh_from_db()
    assert verify(again).sentence.endswith("in 1 run; 1 completed neither then nor now.")
