"""What every page asks of the database, with 64 runs: whichever page is added is asked for here too."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.tokens import issue_token
from apps.benchmarks.launching import launch
from apps.benchmarks.measuring.again import rescore
from apps.benchmarks.models import Benchmark, QueryResult, Run
from apps.judging.models import RoundItem
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from benchbench.site.history import note
from tests.benchmarks.gated import pinned
from tests.created import create_benchmark
from tests.factories import add_judgment, add_version, make_round
from tests.pages import Address, addresses

pytestmark = pytest.mark.thorough

MOST = 25
RUNS = 64
OTHERS = 8
MATRIX = {
    "search_modes": ["hybrid"],
    "k_values_for_metrics": [5, 10],
    "top_k_values": [10, 20, 30, 40],
    "rrf_k_values": [10, 20, 40, 60],
    "candidates": [None, 100],
    "score_thresholds": [None, 0.1],
}


@pytest.fixture
def benchmark(library: Mapping) -> Benchmark:
    """64 runs over six queries, measured on two versions of their dataset; and a few rows of everything else."""
    made = create_benchmark(library, name="all", matrix=MATRIX)
    assert made.total_runs == RUNS
    wait(launch(made))
    for number in range(OTHERS):
        smaller = create_benchmark(library, name=f"benchmark {number}", matrix=MATRIX | {"top_k_values": [10]})
        launch(smaller)
    query = library.dataset.queries.order_by("id")[0]
    add_judgment(query, {"document_id": "nowhere"}, 2, since=2)
    add_version(library.dataset)
    resolve(library)
    rescore(made)
    for run in made.runs.order_by("run_order")[:OTHERS]:
        pinned(run, f"baseline {run.run_order}")
        make_round(run)
    issue_token(User.objects.get(username="ada"), name="of ada")
    Group.objects.create(name="search")
    note(User.objects.get(username="ada"), [made], "Looked at.")
    made.refresh_from_db()
    return made


def asked_of(address: Address, benchmark: Benchmark) -> Iterator[str]:
    """Yield the query strings with which a page is asked for: as it is, and with all that it can be asked."""
    first, second, *_ = (str(run.pk) for run in benchmark.runs.order_by("run_order"))
    of_two = {"run": [first, second], "version": 2}
    other = {"against": second, "version": 2}
    asked: dict[str, list[dict[str, Any]]] = {
        "admin:benchmark_results": [{}, {"version": 2, "slice": "relevant documents: 1", "k": 5}],
        "admin:run_compare": [{"benchmark": benchmark.pk}, {"benchmark": benchmark.pk, "baseline": first}, of_two],
        "admin:benchmarks_run_change": [{}, other | {"q": "a", "cause": "any"}],
        "admin:benchmarks_queryresult_change": [{}, other],
    }
    yield from (urlencode(one, doseq=True) for one in asked.get(address.name, [{}]))


@pytest.fixture
def values(benchmark: Benchmark) -> dict[str, Any]:
    """The values of the parameters that addresses have, but for the rows that `object_id` means."""
    result = result_of(benchmark)
    user = User.objects.get(username="ada")
    return {
        "query_id": result.query_id,
        "document_id": result.document_ids[0],
        "item_id": RoundItem.objects.order_by("round_id")[0].pk,
        "id": user.pk,
        "app_label": "benchmarks",
    }


def result_of(benchmark: Benchmark) -> QueryResult:
    return benchmark.runs.get(run_order=1).query_results.order_by("pk")[0]


def row_of(address: Address, benchmark: Benchmark) -> Any:
    """Return the row that an address shows: of the large benchmark, where it has such."""
    result = result_of(benchmark)
    of_it = {Benchmark: benchmark, Run: result.run, QueryResult: result}
    return of_it.get(address.model) or address.model._default_manager.order_by("pk").first()


def test_no_page_takes_more_than_25_statements(
    admin_client: Client, benchmark: Benchmark, values: dict[str, Any]
) -> None:
    taken, shown = {}, 0
    for address in addresses():
        if address.name.startswith("django_rq:"):  # not ours
            continue
        known = values | ({"object_id": row_of(address, benchmark).pk} if "object_id" in address.parameters else {})
        for asked in asked_of(address, benchmark):
            cache.clear()
            with CaptureQueriesContext(connection) as captured:
                answer = admin_client.get(f"{address.url(known.__getitem__)}?{asked}")
            assert answer.status_code in (200, 302, 403), (address, asked, answer.status_code)
            shown += answer.status_code == 200
            taken[address.name, asked] = len(captured)
    assert shown > 100
    assert {page: count for page, count in taken.items() if count > MOST} == {}
