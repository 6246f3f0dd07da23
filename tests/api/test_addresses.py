"""What holds for every address of the API, whichever are added: how it is nested, and what it lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.api import urls
from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from apps.datasets.models import Dataset, Judgment, Query
from apps.judging.models import Grade, Round
from apps.mappings.models import Mapping, Resolution
from apps.operations.models import Operation
from apps.retrieval.models import Index
from tests.api.callers import ROOT, Callers
from tests.api.test_isolation import addresses, world
from tests.api.worlds import measured
from tests.benchmarks.gated import pinned
from tests.factories import add_judgment, add_version, make_benchmark, make_collection, make_mapping, make_round

OPEN = {"sign_in", "refresh", "sign_out", "schema"}  # the first three are for whoever has no token yet
MAKE_NOTHING = {"check_mapping", "preview", "gate_benchmark", "gate_run", "index_grid_preview", "llm_cost"} | {
    "next_items"  # asked again it renews what is held; an answer that was kept would be out of date
}
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
MOST_QUERIES = 9  # of a personal token, as here: a JWT, or a session, takes one more
WORKED_OUT = "/runs/{run_id}/triage/documents"  # has rows only where something was searched: see test_triage.py
ROWS = 3


def test_every_address_is_in_the_matrix_or_is_known_to_be_open() -> None:
    named = {str(pattern.name) for pattern in urls.urlpatterns if pattern.name}
    assert named == {address.name for address in addresses()} | OPEN
    assert [pattern for pattern in urls.urlpatterns if not pattern.name] == [urls.urlpatterns[-1]], "a catch-all"


def test_what_is_nested_is_not_found_under_another_parent(callers: Callers) -> None:
    """Whatever part of the address is of the one world, and the rest of the other, of one owner."""
    one, other = (world(callers.owner.user, name) for name in ("one", "other"))
    tried = set()
    nested = [at for at in addresses() if len(at.parameters) > 1 and "number" not in at.parameters]
    for address in nested:  # a version has its number in every dataset
        for cut in range(1, len(address.parameters)):
            mixed = one | {name: other[name] for name in address.parameters[cut:]}
            for method in address.acts:
                answer = callers.owner.ask(method, address.path(mixed.__getitem__), {} if method != "GET" else None)
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (address, method, cut)
                tried.add((address.name, method))
    assert len(tried) >= 20


def test_every_post_that_makes_or_starts_something_takes_a_key() -> None:
    without = set()
    for pattern in urls.urlpatterns:
        post = getattr(getattr(pattern.callback, "view_class", None), "post", None)
        if post is not None and not getattr(post, "idempotent", False):
            without.add(pattern.name)
    assert without == (OPEN - {"schema"}) | MAKE_NOTHING


def test_lists_leave_out_what_others_own(callers: Callers) -> None:
    crowded(callers.owner.user)
    roots = [path for path, _ in lists() if "{" not in path and "comparison" not in path]
    assert set(roots) == {"/benchmark-datasets", "/benchmarks", "/collections", "/judging-rounds", "/operations"}
    for path in roots:
        totals = [getattr(callers, name).get(path).json()["total"] for name in ("owner", "reader", "overseer", "other")]
        assert totals[0] >= ROWS, path
        assert totals == [totals[0]] * 3 + [0], path


@pytest.mark.thorough
def test_lists_take_few_queries_whatever_they_hold_and_however_narrowed(callers: Callers) -> None:
    values = crowded(callers.owner.user)
    first, second = values["run"]
    callers.owner.get("/collections")  # the first request of a token notes that it was used
    for path, filters in lists():
        needed = {"run": first, "baseline": second} if path.startswith("/comparison") else {}
        for narrowed in ({}, *filters):
            stated = needed | {name: values.get(name, value) for name, value in narrowed.items()}
            few, _ = asked(callers, path.format(**values), stated | {"per_page": 1})
            many, total = asked(callers, path.format(**values), stated | {"per_page": 100})
            assert many <= MOST_QUERIES, (path, stated, many)
            assert few == many or total <= 1, (path, stated, few, many)
            assert narrowed or path == WORKED_OUT or total >= ROWS, f"{path}: make {ROWS} of them in `crowded`."


def asked(callers: Callers, path: str, query: dict[str, Any]) -> tuple[int, int]:
    """Return how many queries a list took, and how many rows it has in all."""
    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        answer = callers.owner.get(path, **query)
    assert answer.status_code == 200, (path, query, answer.content)
    return len(captured), answer.json()["total"]


def lists() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the path of each list of the schema, and each of its filters with a value: the first that may be chosen."""
    whole = yaml.load(SCHEMA.read_text(), yaml.CSafeLoader)
    for path, methods in whole["paths"].items():
        stated = {one["name"]: one for one in methods.get("get", {}).get("parameters", []) if one["in"] == "query"}
        if "per_page" in stated:
            filters = [
                one for name, one in stated.items() if name not in ("page", "per_page") and not one.get("required")
            ]
            yield path.removeprefix(ROOT), [{one["name"]: value} for one in filters for value in choices(one["schema"])]


def choices(schema: dict[str, Any]) -> list[Any]:
    """Return the values of a filter that are tried; of one that may be anything, a placeholder for a world's value."""
    if "enum" in schema:
        return schema["enum"]
    return ["true", "false"] if schema.get("type") == "boolean" else [""]


def crowded(owner: User) -> dict[str, Any]:
    """Return a world of the owner's, by parameter, in which every list has at least three rows."""
    User.objects.create_user("ada", is_staff=True, is_superuser=True)  # who approves baselines
    values, _ = measured()
    mapping = Mapping.objects.get(pk=values["mapping_id"])
    dataset, collection = mapping.dataset, mapping.collection
    query = Query.objects.get(pk=values["query_id"])
    benchmark = Benchmark.objects.get(pk=values["benchmark_id"])
    for number in range(ROWS):
        add_judgment(query, {"document_id": f"d2{number}"}, 1, since=2)
        lost = make_mapping(dataset, make_collection(f"shelf {number}"), name=f"on shelf {number}")
        index = Index.objects.create(collection=collection, name=f"index {number}", encoder="keyword:a")
        Operation.objects.create(kind="index", subject_id=index.pk)
        Dataset.objects.create(name=f"dataset {number}")
        make_benchmark(mapping, [0.5, None], name=f"benchmark {number}")
        pinned(benchmark.runs.get(run_order=1), f"of {number}")
        add_version(dataset)
        judged = make_round(benchmark.runs.get(run_order=1), judges=[owner], items=ROWS)
    for item in judged.items.all():
        row = {"judge": owner, "judge_name": owner.username, "graded_at": timezone.now()}
        Grade.objects.create(item=item, grade=1, **row)
    for model in (Collection, Dataset, Mapping, Benchmark, Index, Round):
        model.objects.update(owner=owner)
    for judgment in Judgment.objects.filter(query__dataset=dataset, since=1)[:ROWS]:
        Resolution.objects.create(mapping=lost, judgment=judgment, outcome="ambiguous", key="document_id")
    filters = {
        "query_key": query.key,
        "external_id": "d1",
        "version": 1,
        "measure": "ndcg@10",
        "slice": "relevant documents: 1",
    }
    return values | filters | {"mapping_id": str(lost.pk), "round_id": str(judged.pk), "state": "open"}
