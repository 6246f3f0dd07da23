"""Answers of a site, field by field, as in docs/openapi.yaml.

Ids (UUIDs) and times (ISO 8601, UTC) are strings.
"""

from typing import Any, Literal, TypedDict

Status = Literal["pending", "running", "completed", "failed", "cancelled"]
Outcome = Literal["passed", "failed", "undecided"]


class Collection(TypedDict):
    id: str
    name: str
    description: str
    kind: Literal["documents", "external"]
    owner_id: int | None
    document_count: int
    fingerprint: str
    created_at: str
    updated_at: str


class Dataset(TypedDict):
    id: str
    name: str
    description: str
    owner_id: int | None
    query_count: int
    schema_version: str
    created_at: str
    updated_at: str


class Uploaded(Dataset):
    warnings: list[str]


class Mapping(TypedDict):
    id: str
    name: str
    dataset_id: str
    dataset_version: int | None
    collection_id: str
    mapping_status: Literal["pending", "partial", "resolved"]
    mapped_count: int
    total_count: int
    counts: dict[str, int]
    created_at: str
    resolved_at: str | None


class Benchmark(TypedDict):
    id: str
    name: str
    description: str
    owner_id: int | None
    mapping_id: str
    status: Status
    total_runs: int
    completed_runs: int
    failed_runs: int
    created_at: str
    started_at: str | None
    completed_at: str | None
    operation_uuid: str | None


class Started(TypedDict):
    id: str
    status: Status
    operation_uuid: str
    message: str


class Operation(TypedDict):
    """`progress` is the data of a message of the WebSocket, whose type is `event`: docs/events.md."""

    operation_id: str
    kind: Literal["index", "resolve", "benchmark", "llm_judging", "measure"]
    subject_id: str
    owner_id: int | None
    started_by: str | None
    queue: str
    status: Status
    error: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    event: str
    progress: dict[str, Any]


class Metrics(TypedDict):
    """Means over the queries, None where no query counts; at cutoffs as {"10": 0.4}. Others have their own names."""

    mrr: float | None
    ap: float | None
    precision: dict[str, float | None]
    recall: dict[str, float | None]
    ndcg: dict[str, float | None]


class Timing(TypedDict):
    indexing_ms: int | None
    evaluation_ms: int | None
    total_ms: int | None
    per_query: dict[str, Any]


class Run(TypedDict):
    id: str
    run_order: int
    config_hash: str
    config: dict[str, Any]
    status: Literal["pending", "indexing", "evaluating", "completed", "failed", "cancelled"]
    error_message: str | None
    metrics: Metrics
    metrics_flat: dict[str, float | None]
    timing: Timing
    label: str
    failed_queries: int
    unranked: str | None
    warnings: list[str]


class Summary(TypedDict):
    total_runs: int
    completed_runs: int
    failed_runs: int
    best_run: str | None
    best_primary_metric: float | None


class Results(TypedDict):
    benchmark_id: str
    dataset_version: int
    duration_ms: int | None
    primary_k: int
    k_values_for_metrics: list[int]
    runs: list[Run]
    summary: Summary
    total_runs: int


class Answer(TypedDict):
    """What a run answered to a query. Values are at the primary k, None where the query failed."""

    query_id: int
    query_key: str
    query_text: str
    retrieved_doc_ids: list[str]
    precision_at_k: float | None
    recall_at_k: float | None
    reciprocal_rank: float | None
    ndcg_at_k: float | None
    rewrite_time_ms: float | None
    search_time_ms: float | None
    rerank_time_ms: float | None
    total_time_ms: float | None
    execution: str | None
    embed_calls: int | None
    llm_calls: int | None
    llm_cached: int | None
    fallback_used: bool | None
    error: str | None
    metrics_flat: dict[str, float | None]


class Check(TypedDict):
    """What came of one rule of a gate."""

    name: str
    wanted: str
    found: str
    outcome: Outcome
    n: int | None
    value: float | None
    mean: Literal["benchmark", "macro", "weighted"] | None
    note: str


class RunVerdict(TypedDict):
    id: str
    run_order: int
    label: str
    config: dict[str, Any]
    outcome: Outcome
    checks: list[Check]


class GatedBenchmark(TypedDict):
    id: str
    name: str


class GateBaseline(TypedDict):
    id: str
    name: str
    run: str
    label: str


class Gate(TypedDict):
    outcome: Outcome
    benchmark: GatedBenchmark
    dataset_version: str
    baseline: GateBaseline | None
    alpha: float
    chosen: str
    warnings: list[str]
    runs: list[RunVerdict]
    markdown: str
