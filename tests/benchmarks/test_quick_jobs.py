"""A real worker at a long batch: tried queries are answered meanwhile, by a second process that ends with it."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from apps.execution.launching import launch
from apps.operations import queueing
from apps.operations.models import Batch
from tests.benchmarks.shop_server import Shop
from tests.created import create_benchmark
from tests.site import text_of
from tests.waiting import until

pytestmark = pytest.mark.thorough
MATRIX = {"search_modes": ["engine"], "engines": ["shop"], "top_k_values": [20]}


@pytest.fixture
def ending(shop: Shop) -> Iterator[threading.Event]:
    """What lets a batch end that waits for the engine."""
    event = threading.Event()
    shop.unavailable = lambda number: not event.wait(120)
    yield event
    event.set()


@pytest.fixture
def start_batch(shop: Shop, shop_library: Any, manage: Any, ending: threading.Event) -> Callable[..., Batch]:
    """Start a worker with further settings; return its batch, which does not end."""

    def start(**more: str) -> Batch:
        operation = launch(create_benchmark(shop_library, name="slow", matrix=MATRIX))
        manage("manage.py", "worker", BENCHBENCH_ENGINES=settings.BENCHBENCH_ENGINES, **more)
        until(lambda: shop.asked, "the batch")
        return operation.batches.get(state=Batch.State.RUNNING)

    return start


@pytest.fixture
def try_query(admin_client: Client, shop_library: Any) -> Callable[[str], str]:
    """Ask for the answer to a query; return the text of the page."""
    index = shop_library.collection.indexes.get()
    page = reverse("admin:collection_try_answer", args=[shop_library.collection.pk, 0])

    def ask(text: str) -> str:
        values = {"q": text, "index": index.pk, "way": "hybrid", "top_k": 5, "lexical": "bm25"}
        return text_of(admin_client.post(f"{page}?{urlencode(values)}"))

    return ask


def is_running(batch: Batch) -> bool:
    return Batch.objects.get(pk=batch.pk).state == Batch.State.RUNNING


def find_quick(*killed: int) -> int:
    """Return the process for quick jobs alone, or 0. A killed one leaves its sign of life."""
    quick = queueing.find_workers(queueing.QUICK) - queueing.find_workers("default")
    return max({int(name.split(":")[1]) for name in quick} - {*killed}, default=0)


def test_quick_jobs_do_not_wait_for_batches(start_batch, try_query):
    batch = start_batch()
    until(find_quick, "the process for quick jobs")
    until(lambda: "BM25" in try_query("pear plum"), "the answer")
    assert is_running(batch)

    os.kill(killed := find_quick(), signal.SIGKILL)
    until(lambda: find_quick(killed), "its successor")
    until(lambda: "BM25" in try_query("fig"), "its answer")
    assert is_running(batch)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Processes are found through /proc, which is Linux's.")
def test_quick_processes_end_with_their_worker(start_batch, processes):
    start_batch()
    until(find_quick, "the process for quick jobs")
    process = Path(f"/proc/{find_quick()}")
    processes[-1].kill()
    until(lambda: not process.exists(), "its end")


def test_page_says_that_a_batch_is_ahead(start_batch, try_query, ending):
    start_batch(BENCHBENCH_QUICK_PROCESSES="0")
    assert "1 batch ahead" in try_query("pear plum")
    ending.set()
    until(lambda: "BM25" in try_query("pear plum"), "the answer")
