"""A client of the earlier benchmark API v2: written to that API's description alone, it knows nothing of this one.

Plain httpx and websockets, one helper for each line of the description, and what it says of every answer.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
from websockets.sync.client import connect

SECONDS = 60
METRICS = "mrr ap precision recall ndcg"
# Names with the types of their values: text where nothing is said, and "?" where null may stand instead.
ANSWERS = {
    "dataset": "id:uuid name description owner_id:int query_count:int schema_version created_at:time updated_at:time",
    "mapping": "id:uuid dataset_id:uuid collection_id:uuid mapping_status:pending|resolved|partial mapped_count:int "
    "total_count:int created_at:time resolved_at:time?",
    "resolution": "id:uuid dataset_id:uuid collection_id:uuid mapping_status:pending|resolved|partial mapped_count:int "
    "total_count:int created_at:time resolved_at:time? operation_uuid:uuid? unresolved:list",
    "benchmark": "id:uuid name description owner_id:int mapping_id:uuid "
    "status:pending|running|completed|failed|cancelled total_runs:int completed_runs:int failed_runs:int "
    "created_at:time started_at:time? completed_at:time? operation_uuid:uuid?",
    "start": "id:uuid status:running operation_uuid:uuid message",
    "results": "benchmark_id:uuid primary_k:int k_values_for_metrics:list runs:list summary:object total_runs:int",
    "run": "id:uuid run_order:int config_hash config:object "
    "status:pending|indexing|evaluating|completed|failed|cancelled error_message:text? metrics:object "
    "metrics_flat:object timing:object",
    "timing": "indexing_ms:int? evaluation_ms:int? total_ms:int?",
    "summary": "total_runs:int completed_runs:int failed_runs:int best_run:uuid? best_primary_metric:number?",
    "queries": "run_id:uuid results:list total:int page:int per_page:int",
    "query": "query_id:int query_key query_text retrieved_doc_ids:list precision_at_k:number? recall_at_k:number? "
    "reciprocal_rank:number? ndcg_at_k:number? search_time_ms:number? rerank_time_ms:number?",
    "benchmark_progress": "operation_id:uuid collection_id:uuid benchmark_id:uuid "
    "status:pending|running|completed|failed|cancelled total_runs:int completed_runs:int failed_runs:int "
    "primary_k:int k_values_for_metrics:list stage:starting|indexing|evaluating|completed|failed|cancelled "
    "current_run:object? last_completed_run:object?",
    "current_run": "run_id:uuid run_order:int config:object total_queries:int completed_queries:int stage",
    "last_completed_run": "status:completed|failed metrics:object metrics_flat:object timing:object "
    "error_message:text?",
    "benchmark_mapping_resolution_progress": "operation_id:uuid mapping_id:uuid dataset_id:uuid collection_id:uuid "
    "stage:starting|loading_documents|resolving|finalizing|completed|failed total_refs:int processed_refs:int "
    "resolved_refs:int ambiguous_refs:int unresolved_refs:int",
}
KINDS: dict[str, Any] = {"text": str, "int": int, "list": list, "object": dict}


def faults(kind: str, told: dict[str, Any]) -> list[str]:
    """Return what of an answer is not as it was described; what it says besides is no fault."""
    found = []
    for field in ANSWERS[kind].split():
        name, _, stated = field.partition(":")
        if name not in told:
            found.append(f"{kind} has no {name}")
        elif not (told[name] is None and stated.endswith("?")) and not _is(told[name], stated.rstrip("?") or "text"):
            found.append(f"{kind}.{name} is {told[name]!r}, not {stated or 'text'}")
    return found


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return type(value) in (int, float)
    if kind in KINDS:
        return type(value) is KINDS[kind]
    if not isinstance(value, str):
        return False
    if kind == "uuid":
        return str(UUID(value)) == value
    if kind == "time":
        return datetime.fromisoformat(value).utcoffset() is not None
    return value in kind.split("|")


@dataclass
class EarlierClient:
    """Asks the API at `address` (http://…) with a bearer token, and holds each answer against its description."""

    address: str
    token: str

    def ask(self, method: str, path: str, kind: str = "", *, status: int = 200, **content: Any) -> Any:
        """Return the JSON of an answer of that status and kind; lists of things are "<kind>s of <key>"."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.address}/api/v2{path}"
        answer = httpx.request(method, url, headers=headers, timeout=SECONDS, trust_env=False, **content)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        told = answer.json() if answer.content else None
        if kind:
            assert faults(kind, told) == []
        return told

    def pages(self, path: str, key: str, kind: str, **query: Any) -> list[Any]:
        """Return the rows of a list, which has `{<key>, total, page, per_page}`."""
        told = self.ask("GET", path, params={"page": 1, "per_page": 50, **query})
        assert {key, "total", "page", "per_page"} <= set(told)
        assert (told["page"], told["per_page"], told["total"]) == (1, 50, len(told[key]))
        assert [fault for row in told[key] for fault in faults(kind, row)] == []
        return list(told[key])

    def watch(self, operation: str) -> Iterator[dict[str, Any]]:
        """Yield the messages about an operation until one says that it is over, as its stage."""
        address = re.sub("^http", "ws", self.address) + f"/ws/operations/{operation}"
        offered = f"access_token.{self.token}"
        with connect(address, subprotocols=[offered], proxy=None, open_timeout=SECONDS) as socket:
            assert socket.subprotocol == offered
            while True:
                message = json.loads(socket.recv(timeout=SECONDS))
                assert {"timestamp", "type", "data"} == set(message)
                yield message
                told = message["data"].get("progress", message["data"])
                if told["stage"] in ("completed", "failed", "cancelled"):
                    return
