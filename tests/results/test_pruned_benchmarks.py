"""A benchmark whose rankings were deleted shows the same values; what needs rankings refuses."""

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.execution.launching import retry
from apps.judging.opening import RoundOptions, open_round
from apps.operations.models import Status
from apps.records.lists.reading import RankingsDeletedError
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, QueryResult, Run
from apps.results.exporting import export, list_exporters
from apps.results.retention.pruning import prune_for
from apps.results.tasks import prune
from apps.results.triage.updating import find_outdated
from apps.verdicts.gates.baselines import approve
from tests.factories import (
    add_version,
)
from tests.results.pruned import (
    figures,
)
from tests.sessions import elsewhere, until_waited_for


def test_pruned_benchmark_shows_the_same_values(ended: Benchmark, retention: None, admin_client: Client) -> None:
    first, second = ended.runs.order_by("run_order")
    compare = f"{reverse('admin:run_compare')}?run={first.pk}&run={second.pk}"
    before, api = figures(ended), admin_client.get(f"/api/v1/benchmarks/{ended.pk}/results").json()
    verdict = admin_client.get(reverse("admin:benchmark_verdict", args=[ended.pk])).content
    prune("hourly")
    ended.refresh_from_db()
    assert not QueryResult.objects.exists()
    assert figures(ended) == before
    assert admin_client.get(f"/api/v1/benchmarks/{ended.pk}/results").json() == api
    assert admin_client.get(reverse("admin:benchmark_verdict", args=[ended.pk])).content == verdict
    assert admin_client.get(compare).status_code == 200
    query = ended.dataset_version.queries.first()
    assert query
    pages = [
        reverse("admin:benchmark_results", args=[ended.pk]),
        reverse("admin:benchmarks_run_change", args=[first.pk]),
        reverse("admin:run_side_by_side", args=[first.pk]),
        reverse("admin:run_coverage", args=[first.pk]),
        reverse("admin:collections_document_change", args=[ended.mapping.collection.documents.first().pk]),
        reverse("admin:datasets_query_change", args=[query.pk]),
    ]
    for page in pages:
        assert "To get rankings again, clone it" in admin_client.get(page).content.decode(), page
    text = admin_client.get(reverse("admin:datasets_query_change", args=[query.pk])).content.decode()
    assert "ranking deleted" in text
    assert "not searched" not in text


def test_what_needs_rankings_refuses_by_name(ended: Benchmark, retention: None, admin_user: Any) -> None:
    prune_for()
    ended.refresh_from_db()
    run = ended.runs.get(run_order=1)
    Run.objects.filter(pk=run.pk).update(failed_queries=1)
    for act in (
        lambda: retry(ended),
        lambda: rescore(ended),
        lambda: approve(run, name="main", reason="good", by=admin_user),
    ):
        with pytest.raises(RankingsDeletedError, match="clone it and start the clone"):
            act()
    ended.refresh_from_db()
    assert ended.status == Status.COMPLETED


def test_exports_of_a_pruned_benchmark_are_unchanged_or_refused(ended: Benchmark, retention: None) -> None:
    subjects = [ended, ended.runs.get(run_order=1)]
    before = {(row.pk, one.name): _exported(row, one.name) for row in subjects for one in list_exporters(row)}
    prune_for()
    refused = set()
    for subject in (Benchmark.objects.get(), Run.objects.get(run_order=1)):
        for exporter in list_exporters(subject):
            after = _exported(subject, exporter.name)
            if after is None:
                refused.add(exporter.name)
            else:
                assert after == before[subject.pk, exporter.name], exporter.name
    assert {"trec-run", "spec-002", "flowbaby-run", "html"} <= refused
    assert not {"json", "csv", "markdown", "latex"} & refused


def _exported(subject: Any, name: str) -> list[Any] | None:
    try:
        return list(export(subject, name))
    except RankingsDeletedError:
        return None


@pytest.mark.parametrize("act", ["baseline", "round"])
def test_what_keeps_rankings_waits_for_their_deletion(ended: Benchmark, admin_user: Any, act: str) -> None:
    runs = list(ended.runs.order_by("run_order"))
    options = RoundOptions(name="fruit", order="depth", depth=30, uniform_share=0.0)
    acts = {
        "baseline": lambda: approve(runs[0], name="main", reason="good", by=admin_user),
        "round": lambda: open_round(runs, options, judges=[admin_user], owner=admin_user),
    }
    with transaction.atomic():
        Benchmark.objects.update(rankings_deleted_at=timezone.now())
        second = elsewhere(acts[act])
        until_waited_for(second)
    assert isinstance(second.exception(timeout=60), RankingsDeletedError)


def test_update_leaves_out_benchmarks_without_rankings(ended: Benchmark, retention: None, admin_user: Any) -> None:
    dataset = ended.dataset_version.dataset
    add_version(dataset)
    outdated = find_outdated(dataset, admin_user, 2).benchmarks
    assert outdated.count() == 1
    prune_for()
    assert outdated.count() == 0
