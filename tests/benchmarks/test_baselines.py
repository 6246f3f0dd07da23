"""Which run others are held against, and who said so."""

import pytest
from django.contrib.auth.models import User

from apps.benchmarks.gates.baselines import BaselineError, approve, baseline_names, find_baseline, retire
from apps.benchmarks.launching import delete_benchmark
from apps.benchmarks.models import Baseline, Benchmark
from benchbench.errors import BenchbenchError, ConflictError
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return make_benchmark(make_mapping(make_dataset({"q": []}), make_collection()), [0.5, 0.6, None])


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", is_staff=True)


def test_the_newest_approval_of_a_name_is_current_and_the_others_stay_as_history(
    benchmark: Benchmark, ada: User
) -> None:
    first, second, _ = benchmark.runs.all()
    old = approve(first, name="main", reason="The release of May.", by=ada)
    other = approve(first, name="lexical", reason="What BM25 does.", by=ada)
    new = approve(second, name=" main ", reason="The release of June.", by=ada)
    old.refresh_from_db()
    assert (old.retired_by, new.retired_at, new.approved_by, new.name) == (ada, None, ada, "main")
    assert old.retired_at is not None
    dataset = benchmark.dataset_version.dataset
    assert find_baseline("main", dataset) == new
    assert find_baseline(str(other.pk), dataset) == other
    assert baseline_names(benchmark) == {first.pk: ["lexical"], second.pk: ["main"]}


def test_only_a_completed_run_with_a_reason_is_approved(benchmark: Benchmark, ada: User) -> None:
    good, _, failed = benchmark.runs.all()
    with pytest.raises(BaselineError, match="is failed: only a completed run"):
        approve(failed, name="main", reason="Because.", by=ada)
    with pytest.raises(BenchbenchError, match="needs a reason"):
        approve(good, name="main", reason="  ", by=ada)
    approve(good, name="main", reason="Because.", by=ada)
    with pytest.raises(BaselineError, match="already"):
        approve(good, name="main", reason="Again.", by=ada)
    assert Baseline.objects.filter(retired_at=None).count() == 1


def test_it_is_retired_once_and_then_not_found(benchmark: Benchmark, ada: User) -> None:
    baseline = approve(benchmark.runs.get(run_order=1), name="main", reason="Because.", by=ada)
    retire(baseline, by=ada)
    assert baseline.retired_by == ada
    with pytest.raises(BaselineError, match="retired already"):
        retire(baseline, by=ada)
    for named in ("main", str(baseline.pk), "other"):
        with pytest.raises(BenchbenchError, match="has no current baseline"):
            find_baseline(named, baseline.dataset)


def test_a_benchmark_whose_run_is_a_baseline_is_not_deleted(benchmark: Benchmark, ada: User) -> None:
    approve(benchmark.runs.get(run_order=1), name="main", reason="Because.", by=ada)
    with pytest.raises(ConflictError, match="baseline"):
        delete_benchmark(benchmark)
