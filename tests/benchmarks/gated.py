"""Benchmarks to hold gates over: rankings whose measures one can predict, and runs pinned as baselines."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from apps.datasets.models import Judgment, Query
from apps.mappings.models import Mapping, Resolution
from apps.records.measuring.evaluating import evaluate_runs
from apps.records.models import Baseline, Benchmark, Evaluation, Run, StageList
from apps.verdicts.gates.baselines import approve
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.kept import made_once
from tests.rankings import build_ranking

ANSWERABLE = [f"q{n:02}" for n in range(1, 21)]
GOOD = [1] * 10 + [2] * 10
POOR = [1] * 3 + [3] * 8 + [4] * 9
BEST = [1] * 20


@made_once
def make_gated() -> Mapping:
    """Twenty queries with one relevant document each, its number theirs; `none` has no answer, q01 and q02 are hard."""
    collection = make_collection("library", [{"title": f"Document {n}"} for n in range(1, 31)])
    judged = {key: [({"document_id": f"d{n}"}, 1)] for n, key in enumerate(ANSWERABLE, start=1)}
    dataset = make_dataset(judged | {"none": []})
    Query.objects.filter(key__in=["q01", "q02"]).update(slices=["hard"], difficulty="high")
    mapping = make_mapping(dataset, collection)
    documents = dict(collection.documents.values_list("external_id", "pk"))
    Resolution.objects.bulk_create(
        Resolution(mapping=mapping, judgment=one, document_id=documents[one.doc_ref["document_id"]], outcome="resolved")
        for one in Judgment.objects.filter(query__dataset=dataset).order_by("pk")
    )
    return mapping


def search(mapping: Mapping, *runs: Sequence[int], name: str = "nightly", **fields: Any) -> Benchmark:
    """Return a benchmark of runs that find the document of query n at rank `run[n]` of ten; 0 is an error."""
    benchmark = make_benchmark(mapping, [0.0] * len(runs), name=name, **fields)
    remaining = list(mapping.collection.documents.order_by("pk").values_list("pk", flat=True))[20:]
    relevant = dict(mapping.collection.documents.values_list("external_id", "pk"))
    queries = list(mapping.dataset.queries.all())
    lists = []
    for run, ranks in zip(benchmark.runs.order_by("run_order"), runs, strict=True):
        for query in queries:
            ranking = list(remaining[:9])
            rank = 1 if query.key == "none" else ranks[int(query.key[1:]) - 1]
            if query.key != "none":
                ranking.insert(rank - 1, relevant[f"d{int(query.key[1:])}"])
            if rank:
                lists.append(build_ranking(run, query, ranking, scores=[1.0] * len(ranking)))
            else:
                lists.append(build_ranking(run, query, error="The index was away."))
    StageList.objects.bulk_create(lists)
    runs_made = benchmark.runs.order_by("run_order")
    runs_made.update(timing={"total_ms": 12.5, "samples": 21, "execution": "shared"})
    Evaluation.objects.filter(run__benchmark=benchmark).delete()
    evaluate_runs(benchmark, runs_made, version=benchmark.dataset_version)
    return benchmark


def pinned(run: Run, name: str = "main") -> Baseline:
    user, _ = User.objects.get_or_create(username="ada")
    return approve(run, name=name, reason="Because.", by=user)
