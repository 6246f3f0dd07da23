"""Bodies of requests, and the rows that they make."""

from typing import Any

from apps.collections.models import Collection
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Query
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from tests.api.callers import Caller, checked_json
from tests.factories import make_collection, make_dataset

BENCHMARKS = "/benchmarks"
HALF = {"search_modes": ["sparse"], "top_k_values": [20], "k_values_for_metrics": [5]}


def benchmark_body(mapping: Mapping, matrix: Any = HALF, **declared: Any) -> dict[str, Any]:
    return {"name": "which", "mapping_id": str(mapping.pk), "config_matrix": matrix} | declared


def post_benchmark(caller: Caller, mapping: Mapping, matrix: Any = HALF, **declared: Any) -> Benchmark:
    return Benchmark.objects.get(
        pk=checked_json(caller.post(BENCHMARKS, benchmark_body(mapping, matrix, **declared)), 201)["id"]
    )


DATASETS = "/benchmark-datasets"


def questions(*keys: str, version: str = "") -> dict[str, Any]:
    """A file of schema 1.0 with a query for each key."""
    judged = [{"doc_ref": {"uri": "file:///a"}, "relevance_grade": 3}]
    return {
        "schema_version": "1.0",
        "metadata": {"version": version} if version else {},
        "queries": [{"query_key": key, "query_text": f"What is {key}?", "relevant_docs": judged} for key in keys],
    }


CORPUS = '{"_id": "d1", "title": "Red", "text": "apple"}\n{"_id": "d2", "text": "plum"}\n'


def owned_collection(caller: Caller, name: str = "library", documents: Any = ()) -> Collection:
    return make_collection(name, documents, owner=caller.user)


def record(external_id: str, text: str = "apple", **fields: Any) -> dict[str, Any]:
    return {"external_id": external_id, "text": text, **fields}


LIBRARY = [
    {"external_id": "a", "uri": "file:///a.md"},
    {"external_id": "c/README.md", "file_name": "README.md", "title": "Third"},
    {"external_id": "b/README.md", "file_name": "README.md", "title": "Second"},
]
JUDGED = {"q1": [({"document_id": "a"}, 3), ({"file_name": "README.md"}, 2)], "q2": [({"uri": "file:///gone.md"}, 1)]}


def owned_pair(caller: Caller, judged: Any = JUDGED, name: str = "mine") -> tuple[Dataset, Collection]:
    return make_dataset(judged, name=name, owner=caller.user), make_collection(name, LIBRARY, owner=caller.user)


def mapped(caller: Caller, judged: Any = JUDGED) -> tuple[Mapping, str]:
    """Return a mapping of the caller's, pending, and its path."""
    dataset, collection = owned_pair(caller, judged)
    checked_json(caller.post(f"/benchmark-datasets/{dataset.pk}/mappings", {"collection_id": str(collection.pk)}), 201)
    mapping = Mapping.objects.get()
    return mapping, f"/benchmark-datasets/{dataset.pk}/mappings/{mapping.pk}"


APPLE, PEAR = {"document_id": "apple"}, {"document_id": "pear"}
RECORD = DatasetRecord(
    "fruit",
    [QueryRecord("red", "red fruit", [JudgmentRecord(APPLE, 3)], category="colour"), QueryRecord("sour", "sour fruit")],
)


def fruit(caller: Caller) -> tuple[Dataset, str]:
    """Return a dataset of the caller's with a frozen version, and its path."""
    dataset = import_dataset(RECORD, owner=caller.user).version.dataset
    return dataset, f"/benchmark-datasets/{dataset.pk}"


def path_of(path: str, key: str = "red") -> str:
    return f"{path}/queries/{Query.objects.get(key=key, until=None).pk}"
