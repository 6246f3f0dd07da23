"""What approximate search loses: by the judgments whose values are shown, and by the chunks that exact search found."""

import re
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.editing.drafts import freeze
from apps.datasets.models import DatasetVersion
from apps.mappings.resolving import resolve
from apps.records.measuring.again import rescore
from apps.records.measuring.approximations import build_ann
from apps.records.models import Benchmark, Evaluation, Run
from apps.retrieval.search.approximate import ApproximateView
from benchbench.decimals import signed
from benchbench.ir.records import ScoredList
from tests.benchmarks.approximated import NARROW, run_matrix, run_of
from tests.created import run_benchmark
from tests.drafts import set_judgment
from tests.retrieval.arms import require_installed

pytestmark = pytest.mark.django_db(transaction=True)


def judge_what_was_missed_as_useless(benchmark: Benchmark) -> DatasetVersion:
    """Freeze a version by which the approximate run has missed nothing, and resolve it."""
    exact, narrow = (run_of(benchmark, ann) for ann in ("exact", NARROW))
    mapping, documents = benchmark.mapping, benchmark.mapping.collection.documents
    for query in benchmark.dataset_version.queries.order_by("key"):
        hits = set(narrow.query_results.get(query=query).document_ids)
        for pk in exact.query_results.get(query=query).document_ids:
            name = documents.get(pk=pk).external_id
            set_judgment(mapping.dataset, query.key, {"document_id": name}, 1 if pk in hits else 0)
    version = freeze(mapping.dataset)
    resolve(mapping)
    return version


def mean_of(run: Run, version: DatasetVersion) -> float | None:
    means: dict[str, float | None] = Evaluation.objects.get(run=run, dataset_version=version).means
    return means["nDCG@10"]


def losses_on_page(client: Client, benchmark: Benchmark, version: DatasetVersion) -> list[str]:
    page = client.get(reverse("admin:benchmark_results", args=[benchmark.pk]), {"version": version.number})
    return re.findall(r"against exact search[^<]*", page.content.decode())


def test_loss_uses_the_judgments_of_the_shown_values(library, admin_client):
    benchmark = run_matrix(library, ann=["exact", NARROW])
    first, second = benchmark.dataset_version, judge_what_was_missed_as_useless(benchmark)
    rescore(Benchmark.objects.get(pk=benchmark.pk))
    for version in (first, second):
        exact, narrow = (run_of(benchmark, ann) for ann in ("exact", NARROW))
        values = mean_of(narrow, version), mean_of(exact, version)
        evaluation = Evaluation.objects.get(run=narrow, dataset_version=version)
        ndcg = build_ann(narrow, evaluation.truth_hash)["ndcg"]
        assert (ndcg["approximate"], ndcg["exact"]) == pytest.approx(values)
        assert ndcg["cost"] > 0 or version == second
        (text,) = losses_on_page(admin_client, benchmark, version)
        assert f"nDCG@10 {signed(-ndcg['cost'])}" in text


def test_no_loss_is_shown_for_unmeasured_judgments(library):
    ann = build_ann(run_of(run_matrix(library, ann=["exact", NARROW]), NARROW), "another")
    assert ann["ndcg"] == {"measure": "nDCG@10", "approximate": None, "exact": None, "cost": None}
    assert ann["recall"]


def farthest(nearest: Any) -> Any:
    """Return what finds the last of few positions that a strategy continues with, and not the nearest."""

    def search(self: Any, queries: Any, depth: int, *, mask: Any = None) -> list[ScoredList]:
        if mask is None or mask.sum() > 3:
            return list(nearest(self, queries, depth, mask=mask))
        last = np.sort(np.flatnonzero(mask)[-depth:])
        return [ScoredList(last, np.zeros(len(last)))]

    return search


def test_other_chunks_count_as_missed(measured, monkeypatch):
    require_installed("sqlite_vec:exact")
    (lod,) = measured.mapping.collection.indexes.filter(strategy="lod_embed")
    monkeypatch.setattr(ApproximateView, "find_nearest", farthest(ApproximateView.find_nearest))
    ks = {"top_k_values": [1], "k_values_for_metrics": [1], "primary_k": 1}
    matrix = {"indexes": [lod.name], "ann": ["exact", "sqlite_vec:exact"], **ks}
    exact, store = run_benchmark(measured.mapping, name="through a store", matrix=matrix).runs.order_by("run_order")
    hits = [[row.chunk_ids for row in run.query_results.order_by("query_id")] for run in (exact, store)]
    assert not any(set(one) & set(another) for one, another in zip(*hits, strict=True))
    at_one = store.provenance["ann"]["recall"][0]
    assert (at_one["k"], at_one["mean"]) == (1, pytest.approx(1 / 3)), "one is as near to the last bit"
    assert any("compares all chunks but found others than exact search" in warning for warning in store.warnings)
