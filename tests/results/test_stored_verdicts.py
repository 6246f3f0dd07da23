"""Verdicts that lists show: stored at the end of a benchmark, renewed once their basis has changed."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.editing.drafts import freeze
from apps.datasets.models import Query
from apps.execution.launching import delete_benchmark
from apps.mappings.resolving import resolve
from apps.operations.timing import list_timed_jobs
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, BenchmarkVerdict, RoundVerdict
from apps.verdicts import stored
from apps.verdicts.comparing import compare_runs
from apps.verdicts.stored import annotate_stamps, get_current, load_verdict, store_verdict
from benchbench.site.panels import build_list_url
from tests.drafts import set_judgment
from tests.results.compared import make_compared, make_finished, make_queries, noisy


@pytest.fixture
def compared(db: None) -> Benchmark:
    return make_compared(make_queries(40), noisy([0.3, 0.5, 0.49], 40), completed_at="2026-01-02T03:04:05Z")


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


def is_current(benchmark: Benchmark) -> bool:
    return get_current(annotate_stamps(Benchmark.objects.select_related("verdict")).get(pk=benchmark.pk)) is not None


def list_waiting() -> list[str]:
    return [job.argument for job in list_timed_jobs() if job.name.endswith("store_verdict")]


def test_a_sweep_stores_the_verdict_of_an_ended_benchmark(compared: Benchmark) -> None:
    assert list_waiting() == [str(compared.pk)]
    store_verdict(str(compared.pk))
    verdict = BenchmarkVerdict.objects.get()
    assert verdict.words == "2 of 3 not distinguishable"
    assert verdict.sentence.startswith("top 20 beats 1 of the other runs but is not distinguishable from top 30.")
    assert (list_waiting(), is_current(compared)) == ([], True)


def test_a_benchmark_deleted_meanwhile_has_no_verdict(finished: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    def compare_and_delete(*arguments: object, **options: object) -> object:
        delete_benchmark(finished)
        return compare_runs(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(stored, "compare_runs", compare_and_delete)
    store_verdict(str(finished.pk))
    assert (Benchmark.objects.exists(), BenchmarkVerdict.objects.exists()) == (False, False)


def test_a_list_shows_the_stored_verdict_without_further_requests(compared: Benchmark, admin_client: Client) -> None:
    placeholder = f"{reverse('admin:benchmark_verdict', args=[compared.pk])}?brief=words"
    assert placeholder in admin_client.get(build_list_url(Benchmark)).content.decode()
    assert "2 of 3 not distinguishable" in admin_client.get(placeholder).content.decode()
    html = admin_client.get(build_list_url(Benchmark)).content.decode()
    assert "2 of 3 not distinguishable</button>" in html
    assert "top 20 beats 1 of the other runs" in html
    assert placeholder not in html


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda benchmark: benchmark.runs.filter(run_order=3).delete(), id="a run is gone"),
        pytest.param(lambda benchmark: benchmark.runs.filter(run_order=3).update(status="failed"), id="a run fails"),
        pytest.param(lambda benchmark: benchmark.mapping.save(), id="its mapping is resolved again"),
    ],
)
def test_a_verdict_with_another_basis_is_not_shown(
    compared: Benchmark, admin_client: Client, change: Callable[[Benchmark], object]
) -> None:
    load_verdict(compared)
    change(compared)
    assert not is_current(compared)
    html = admin_client.get(build_list_url(Benchmark)).content.decode()
    assert "not distinguishable" not in html
    load_verdict(compared)
    assert is_current(compared)


def test_measuring_on_a_later_version_renews_the_verdict(finished: Benchmark) -> None:
    before = load_verdict(finished)
    assert before is not None
    set_judgment(finished.mapping.dataset, Query.objects.order_by("key")[0].key, {"document_id": "d3"}, 2)
    freeze(finished.mapping.dataset)
    resolve(finished.mapping)
    assert not is_current(finished)
    rescore(finished)
    after = load_verdict(finished)
    assert after is not None
    assert (after.words, after.sentence) == (f"{before.words}, on v2", f"On version 2: {before.sentence}")


def test_a_closed_round_renews_the_verdict(compared: Benchmark) -> None:
    load_verdict(compared)
    RoundVerdict.objects.create(
        dataset_version=compared.dataset_version, name="fruit", measure="P@5", run_ids=[], grades=1, record={}
    )
    assert not is_current(compared)
