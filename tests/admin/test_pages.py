"""Every page: what it asks of the database with 64 runs, and that it offers a viewer nothing that would be refused."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.db import connection, transaction
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve as resolve_path
from django.urls import reverse

from apps.accounts.tokens import issue_token
from apps.execution.launching import launch
from apps.judging.models import RoundItem
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, QueryResult, Run
from benchbench.site.history import note
from tests.admin.addresses import make_world, paths
from tests.benchmarks.gated import pinned
from tests.created import create_benchmark
from tests.factories import add_judgment, add_version, ensure_preparation, make_deletion, make_round, make_schedule
from tests.pages import Address, addresses
from tests.staff import APPS

pytestmark = pytest.mark.thorough

MOST_STATEMENTS = 26
RUNS = 64
OTHER_ROWS = 8
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
    created = create_benchmark(library, name="all", matrix=MATRIX)
    assert created.total_runs == RUNS
    wait(launch(created))
    for number in range(OTHER_ROWS):
        smaller = create_benchmark(library, name=f"benchmark {number}", matrix=MATRIX | {"top_k_values": [10]})
        launch(smaller)
    query = library.dataset.queries.order_by("id")[0]
    add_judgment(query, {"document_id": "nowhere"}, 2, since=2)
    add_version(library.dataset)
    resolve(library)
    rescore(created)
    for run in created.runs.order_by("run_order")[:OTHER_ROWS]:
        pinned(run, f"baseline {run.run_order}")
        make_round(run)
    make_schedule(created, repeats=3)
    issue_token(User.objects.get(username="ada"), name="of ada")
    make_deletion(User.objects.get(username="ada"))
    Group.objects.create(name="search")
    note(User.objects.get(username="ada"), [created], "Looked at.")
    created.refresh_from_db()
    return created


def asked_of(address: Address, benchmark: Benchmark) -> Iterator[str]:
    """Yield the query strings with which a page is asked for: as it is, and with all that it can be asked."""
    first, second, *_ = (str(run.pk) for run in benchmark.runs.order_by("run_order"))
    of_two = {"run": [first, second], "version": 2}
    another = {"against": second, "version": 2}
    requests: dict[str, list[dict[str, Any]]] = {
        "admin:benchmark_results": [{}, {"version": 2, "slice": "relevant documents: 1", "k": 5}],
        "admin:run_compare": [{"benchmark": benchmark.pk}, {"benchmark": benchmark.pk, "baseline": first}, of_two],
        "admin:benchmarks_run_change": [{}, another | {"q": "a", "cause": "any"}],
        "admin:run_side_by_side": [{}, {"against": second, "query": "q000", "version": 2}],
    }
    yield from (urlencode(one, doseq=True) for one in requests.get(address.name, [{}]))


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
        "preparation_id": ensure_preparation().pk,
    }


def result_of(benchmark: Benchmark) -> QueryResult:
    return benchmark.runs.get(run_order=1).query_results.order_by("pk")[0]


def row_of(address: Address, benchmark: Benchmark) -> Any:
    """Return the row that an address shows: of the large benchmark, where it has such."""
    result = result_of(benchmark)
    of_it = {Benchmark: benchmark, Run: result.run, QueryResult: result}
    return of_it.get(address.model) or address.model._default_manager.order_by("pk").first()


def test_no_page_takes_more_than_26_statements(
    admin_client: Client, benchmark: Benchmark, values: dict[str, Any]
) -> None:
    taken, displayed = {}, 0
    for address in addresses():
        if address.name.startswith("django_rq:"):  # not ours
            continue
        recognised = values | (
            {"object_id": row_of(address, benchmark).pk} if "object_id" in address.parameters else {}
        )
        for requested in asked_of(address, benchmark):
            cache.clear()
            with CaptureQueriesContext(connection) as captured:
                answer = admin_client.get(f"{address.url(recognised.__getitem__)}?{requested}")
            assert answer.status_code in (200, 302, 403), (address, requested, answer.status_code)
            displayed += answer.status_code == 200
            taken[address.name, requested] = len(captured)
    assert displayed > 100
    assert {page: count for page, count in taken.items() if count > MOST_STATEMENTS} == {}


REFUSED = "No action selected"  # what Django answers to an action that the user may not take


class Offers(HTMLParser):
    """What a page offers: addresses that links and fragments get, and buttons that post, with what they send."""

    def __init__(self, page: str, text: str) -> None:
        super().__init__()
        self.page = page
        self.links: set[str] = set()
        self.posts: list[tuple[str, dict[str, str]]] = []
        self._form: dict[str, str] | None = None
        self._sent: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        supplied = {name: value or "" for name, value in attributes}
        for name in ("href", "hx-get"):
            if name in supplied and (tag == "a" or name == "hx-get"):
                self.links.add(urljoin(self.page, supplied[name].partition("#")[0]))
        if tag == "form":
            self._form, self._sent = supplied, {}
        if self._form is None or self._form.get("method", "").lower() != "post":
            return
        if tag == "input" and supplied.get("type") == "hidden":
            self._sent[supplied.get("name", "")] = supplied.get("value", "")
        if supplied.get("type", "submit" if tag == "button" else "") == "submit":
            self.posts.append((urljoin(self.page, self._form.get("action", "")), self._sent))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None


@pytest.fixture
def viewer(transactional_db: None) -> User:
    """Staff who see every row and change none, on a site where there is one of everything."""
    make_world(User.objects.create_superuser("ada"))
    user = User.objects.create_user("vera", is_staff=True)
    seen = Permission.objects.filter(content_type__app_label__in=APPS, codename__startswith="view_")
    user.user_permissions.set(seen)
    return user


@pytest.mark.long
def test_nothing_that_a_page_offers_is_refused(client: Client, viewer: User) -> None:
    client.force_login(viewer)
    answers = {path: client.get(path) for path in paths(User.objects.get(username="ada")).values()}
    offered = {
        path: Offers(path, answer.content.decode()) for path, answer in answers.items() if answer.status_code == 200
    }
    assert len(offered) > 60
    tried = {kind_of(path) for path in offered}
    refused = []
    for path, offers in offered.items():
        refused += [(path, link) for link in fresh(offers.links, tried) if answers_403(client, link)]
        refused += [(path, post) for post in offers.posts if is_refused(client, *post)]
    assert not refused, "\n".join(map(str, refused))


def fresh(links: set[str], tried: set[Any]) -> Iterator[str]:
    """Yield the links of this site of a kind that was not tried."""
    for link in sorted(links):
        address = urlsplit(link)
        if not address.netloc and address.path.startswith("/admin/") and kind_of(link) not in tried:
            tried.add(kind_of(link))
            yield link


def kind_of(link: str) -> tuple[Any, ...]:
    """Return what links have in common that lead to one page, with the same parameters."""
    address = urlsplit(link)
    match = resolve_path(address.path)
    return (match.view_name, getattr(match.func, "model_admin", None), *sorted(parse_qs(address.query)))


def answers_403(client: Client, link: str) -> bool:
    """Return whether a link is refused, and so before its page is made, which takes most of the time."""
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        return client.get(link).status_code == 403


def is_refused(client: Client, action: str, sent: dict[str, str]) -> bool:
    """Return whether a form is refused that is sent as it is; what it does is undone."""
    if urlsplit(action).path == reverse("admin:logout"):
        return False
    with transaction.atomic():
        answer = client.post(action, sent, follow=True)
        transaction.set_rollback(True)
    return answer.status_code == 403 or REFUSED in answer.content.decode()
