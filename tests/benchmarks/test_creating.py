from functools import partial
from typing import Any

import pytest
from django.db.models import Value
from django.db.models.functions import Concat

from apps.benchmarks.defining.creating import BenchmarkError
from apps.benchmarks.defining.previewing import preview
from apps.benchmarks.models import Benchmark, Run
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.planning.matrix import MatrixError
from tests.created import create_benchmark


def test_it_creates_every_run_beforehand_with_label_and_hash(library: Mapping) -> None:
    benchmark = create_benchmark(
        library, name="b", matrix={"search_modes": ["dense", "hybrid"], "rrf_k_values": [40, 60, 80]}
    )
    runs = list(benchmark.runs.all())
    assert [run.run_order for run in runs] == [1, 2, 3, 4]
    assert [run.label for run in runs] == [
        "dense · top 100",
        "hybrid · rrf 40 · top 100",
        "hybrid · rrf 60 · top 100",
        "hybrid · rrf 80 · top 100",
    ]
    assert len({run.config_hash for run in runs}) == 4
    assert {run.status for run in runs} == {Run.Status.PENDING}
    assert (benchmark.total_runs, benchmark.primary_k, benchmark.k_values) == (4, 10, [5, 10, 20])
    assert benchmark.measures[0] == "nDCG@5"


@pytest.mark.parametrize(
    ("matrix", "field"),
    [
        ({"search_modes": []}, "search_modes"),
        ({"search_modes": ["fuzzy"]}, "search_modes"),
        ({"k_values_for_metrics": [10, 20], "top_k_values": [5]}, "top_k_values"),
        ({"indexes": ["other"]}, "indexes"),
        ({"rrf_k_values": list(range(1, 50))}, "rrf_k_values"),
        (
            {"search_modes": ["hybrid"], "rrf_k_values": list(range(1, 21)), "top_k_values": list(range(20, 40))},
            "matrix",
        ),
        ({"colour": ["red"]}, "colour"),
    ],
)
def test_it_names_the_key_at_fault_and_creates_nothing(library: Mapping, matrix: dict[str, Any], field: str) -> None:
    with pytest.raises(MatrixError) as caught:
        create_benchmark(library, name="b", matrix=matrix)
    assert caught.value.field == field
    assert not Benchmark.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [{"name": " "}, {"execution": "both"}, {"unresolved": "forget"}, {"empty_queries": "one"}, {"runs_per_query": 0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_it_refuses_wrong_policies(library: Mapping, wrong: dict[str, Any]) -> None:
    with pytest.raises(BenchmarkError) as caught:
        create_benchmark(library, **{"name": "b", "matrix": {}, **wrong})
    assert caught.value.field == next(iter(wrong))


def test_it_refuses_a_mode_that_the_index_cannot_search(library: Mapping) -> None:
    from apps.operations.working import wait
    from apps.retrieval.indexing import build_index, create_index

    wait(build_index(create_index(library.collection, name="words", encoder="")))
    with pytest.raises(MatrixError, match=r"'words'.*without an encoder"):
        create_benchmark(library, name="b", matrix={"indexes": ["words"], "search_modes": ["dense"]})


def test_it_refuses_a_mapping_that_is_pending_or_stale(library: Mapping) -> None:
    library.collection.fingerprint = "0" * 64
    library.collection.save()
    with pytest.raises(ConflictError, match="resolve it again"):
        create_benchmark(library, name="b", matrix={})
    Mapping.objects.update(status="pending", dataset_version=None)
    library.refresh_from_db()
    with pytest.raises(BenchbenchError, match="resolve it first"):
        create_benchmark(library, name="b", matrix={})


def test_it_refuses_a_mapping_that_found_no_document(library: Mapping) -> None:
    library.collection.documents.update(external_id=Concat(Value("other "), "external_id"))
    resolve(library)
    library.refresh_from_db()
    assert (library.status, library.mapped_count) == ("partial", 0)
    for act in (preview, partial(create_benchmark, name="b")):
        with pytest.raises(ConflictError, match='None of the 270 judgments of "questions" found its document'):
            act(library, matrix={})
    assert create_benchmark(library, name="b", matrix={}, allow_missing=True).total_runs
