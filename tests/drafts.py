"""Judgments that tests state in drafts."""

from typing import Any

from apps.datasets.editing import judgments
from apps.datasets.editing.drafts import freeze
from apps.datasets.models import Dataset, DatasetVersion, Judgment
from apps.datasets.records import JudgmentRecord
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.records.models import Benchmark


def set_judgment(
    dataset: Dataset, query_key: str, doc_ref: dict[str, Any], grade: int, *, judged_by: Any = None, **declared: Any
) -> Judgment:
    """State a judgment, a person's unless `stated` has another source, in the draft."""
    record = JudgmentRecord(doc_ref, grade, **{"source": Judgment.Source.HUMAN, **declared})
    return judgments.set_judgment(dataset, query_key, record, judged_by=judged_by)


def turn(benchmark: Benchmark, *, queries: int = 1) -> None:
    """Judge what the dense run has first for some queries to be not relevant, in the draft."""
    run = benchmark.runs.filter(config__search_mode="dense")[0]
    for query in benchmark.dataset_version.queries.order_by("key")[:queries]:
        first = run.query_results.get(query=query).document_ids[0]
        name = benchmark.mapping.collection.documents.get(pk=first).external_id
        set_judgment(benchmark.mapping.dataset, query.key, {"document_id": name}, 0)


def freeze_and_resolve(mapping: Mapping) -> DatasetVersion:
    version = freeze(mapping.dataset)
    resolve(mapping)
    mapping.refresh_from_db()
    return version
