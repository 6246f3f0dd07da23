"""Rounds for tests: two runs that return other documents, of a small library with texts."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from apps.benchmarks.models import Benchmark
from apps.datasets.models import Query
from apps.judging.models import Round, RoundItem
from apps.judging.opening import RoundOptions, open_round
from apps.mappings.resolving import resolve
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.kept import made_once
from tests.rankings import add_ranking

TITLES = ("Pears", "Plums", "Figs", "Apples", "Cherries", "Grapes")
FIRST = {"q1": (1, 2, 3, 4), "q2": (2, 3, 5, 6)}  # numbers of documents, best first
SECOND = {"q1": (3, 1, 5, 6), "q2": (6, 2, 4, 1)}
JUDGED = {"q1": [({"document_id": "d1"}, 2)], "q2": [({"document_id": "d2"}, 1)]}


@made_once
def make_compared() -> Benchmark:
    """Return a benchmark of two runs over two queries; of each query one document is judged."""
    documents = [{"title": title, "text": f"{title} are fruit."} for title in TITLES]
    mapping = make_mapping(make_dataset(JUDGED), make_collection("library", documents))
    resolve(mapping)
    mapping.refresh_from_db()
    benchmark = make_benchmark(mapping, [0.5, 0.6])
    ids = list(mapping.collection.documents.order_by("external_id").values_list("pk", flat=True))
    for run, rankings in zip(benchmark.runs.order_by("run_order"), (FIRST, SECOND), strict=True):
        for key, numbers in rankings.items():
            query = Query.objects.get(dataset=mapping.dataset, key=key)
            add_ranking(run, query, [ids[number - 1] for number in numbers])
    return benchmark


def make_judges(*names: str) -> list[User]:
    return [User.objects.create_user(name, is_staff=True) for name in names]


def open_for(benchmark: Benchmark, judges: Sequence[User], *, owner: User | None = None, **options: Any) -> Round:
    stated = {"name": "fruit", "order": "depth", "uniform_share": 0.0} | options
    runs = list(benchmark.runs.order_by("run_order"))
    return open_round(runs, RoundOptions(**stated), judges=judges, owner=owner)


def names_of(items: Sequence[RoundItem]) -> list[str]:
    """Return the items as `q1 d3`."""
    return [f"{item.query.key} {item.document.external_id}" for item in items]
