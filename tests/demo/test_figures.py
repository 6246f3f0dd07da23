"""The demo's lexical figures through the product: collection, dataset, mapping, index, benchmark."""

import pytest

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Evaluation
from apps.demo import preparing
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from tests.created import create_benchmark

FIGURES = {"nDCG@10": 0.3568, "P@10": 0.1802, "R@10": 0.4013, "RR": 0.4990, "AP": 0.3197}


@pytest.mark.django_db(transaction=True)
def test_bm25_reaches_these_figures() -> None:
    collection = preparing.prepare_collection(None)
    mapping = preparing.prepare_mapping(collection, None)
    assert mapping.status == "resolved"
    wait(build_index(create_index(collection, name="words")))
    wait(launch(create_benchmark(mapping, name="BM25", matrix={"search_modes": ["sparse"]})))
    means = {name: round(value, 4) for name, value in Evaluation.objects.get().means.items()}
    assert {name: means[name] for name in FIGURES} == FIGURES
