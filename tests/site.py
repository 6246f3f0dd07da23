"""Buttons of the site pressed, and its answers read."""

import re
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.datasets.models import Dataset
from apps.records.models import Benchmark
from benchbench.site.panels import build_list_url, change_url


def press(client: Client, row: Any, action: str, **more: str) -> Any:
    """Press a button of a row's page: its list's action, posted for this row."""
    fields = {"action": action, "_selected_action": str(row.pk), "next": change_url(row), **more}
    return client.post(build_list_url(type(row)), fields, follow=True)


def messages_of(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


HOSTILE = "<script>alert('x')</script>"


def results_url(benchmark: Benchmark, page: str = "results") -> str:
    return reverse(f"admin:benchmark_{page}", args=[benchmark.pk])


def text_of(response: Any) -> str:
    """Return what a reader sees of a page: its text, white space as single spaces."""
    assert response.status_code == 200
    body = re.sub(r"<script.*?</script>|<style.*?</style>", " ", response.content.decode(), flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def count_statements(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        result = act()
    assert getattr(result, "status_code", 200) == 200
    return len(captured)


def freeze_url(dataset: Dataset) -> str:
    return reverse("admin:dataset_freeze", args=[dataset.pk])


def freeze_by_page(client: Client, dataset: Dataset, **fields: str) -> Any:
    """Look at what the draft changes, and freeze that."""
    seen = client.get(freeze_url(dataset)).context["difference"].digest
    return client.post(freeze_url(dataset), {"digest": seen, **fields}, follow=True)


# What a form of a new benchmark has, but its mapping.
BENCHMARK_FORM = {
    "name": "Which?",
    "search_modes": ["dense", "sparse"],
    "top_k_values": "10, 20",
    "k_values_for_metrics": "5, 10",
    "primary_k": "10",
    "score_thresholds": "none, 0.5",
    "use_reranker": "off",
    "execution": "shared",
    "unresolved": "count",
    "empty_queries": "zero",
    "seed": "7",
}
