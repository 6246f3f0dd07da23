"""How far work is, in the same words on every page that shows it."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.operations import queueing
from apps.operations.leasing import claim
from apps.operations.models import Operation
from apps.operations.progress import compute_progress
from apps.operations.working import perform_batch
from apps.records.models import Preparation
from apps.retrieval.indexing import build_index, create_index
from tests.created import create_benchmark
from tests.library import make_library, short_batches  # noqa: F401 (a fixture)
from tests.site import results_url, text_of

WORKER = "here:1:a"


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library()


def begin(operation: Operation) -> str:
    """Do the first batch, let a worker claim the next, and return the words of the progress."""
    perform_batch(operation.batches.earliest("ordinal").pk, owner="test")
    second = operation.batches.filter(state="pending").earliest("ordinal")
    queueing.announce_worker(WORKER, [operation.queue])
    assert claim(second.pk, WORKER) is not None
    operation.refresh_from_db()
    progress = compute_progress(operation)
    return f"{progress.stage_words.capitalize()} {progress.words}"


def read(client: Client, address: str) -> str:
    return " ".join(text_of(client.get(address)).split())


@pytest.mark.usefixtures("short_batches")
def test_every_page_states_the_stage_of_benchmarks(admin_client, library):
    benchmark = create_benchmark(library, name="b", matrix={"use_reranker": [True], "top_k_values": [20]})
    operation = launch(benchmark)
    words = begin(operation)
    assert words.startswith("Evaluating ")
    assert "; reranking " in words
    pages = [
        results_url(benchmark),
        reverse("admin:index"),
        reverse("admin:workers"),
        reverse("admin:operation_progress", args=[operation.pk]),
    ]
    try:
        assert [page for page in pages if words not in read(admin_client, page)] == []
        assert f"batch 1 {words} about " in read(admin_client, reverse("admin:workers"))
    finally:
        queueing.retire_worker(WORKER, [operation.queue])


def test_evaluation_states_the_stage_of_its_index(admin_client, admin_user, library):
    index = create_index(library.collection, name="words", encoder="", strategy="flat")
    operation = build_index(index)
    preparation = Preparation.objects.create(
        started_by=admin_user, mapping=library, index_ids=[str(index.pk)], question="modes"
    )
    assert "Starting 0.0 %" in read(admin_client, reverse("admin:evaluation", args=[preparation.pk]))
    words = begin(operation)
    assert words.startswith("Storing ")
    try:
        assert words in read(admin_client, reverse("admin:evaluation", args=[preparation.pk]))
    finally:
        queueing.retire_worker(WORKER, [operation.queue])
