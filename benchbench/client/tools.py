"""Tools for assistants, by the Model Context Protocol: a client's reads, and the steps from a preview to a gate.

They have the rights of the client's token, delete nothing, and their answers are short.
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec

from benchbench.client.client import Answer, Client
from benchbench.client.commands import find_benchmark
from benchbench.client.connection import ClientError

LONGEST_ANSWER = 20_000  # characters
MOST_ROWS = 128  # of a list in a long answer, with texts of 16 times as many characters
PER_PAGE = 20
MOST_SECONDS = 300.0
Parameters = ParamSpec("Parameters")


class Tools:
    """The tools of a client, a method each; its docstring describes it to the assistant. They raise ClientError.

    Benchmarks are named by id or name, datasets, mappings and runs by id.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def list_datasets(self, page: int = 1) -> Answer:
        """List datasets of judged queries, newest first."""
        return self._list("/benchmark-datasets", page=page)

    def read_dataset(self, dataset_id: str) -> Answer:
        """Read a dataset, with its mappings to collections. A benchmark needs the id of a mapping."""
        mappings = self._get(f"/benchmark-datasets/{dataset_id}/mappings")
        return {**self._get(f"/benchmark-datasets/{dataset_id}"), "mappings": mappings}

    def list_benchmarks(self, page: int = 1) -> Answer:
        """List benchmarks, newest first."""
        return self._list("/benchmarks", page=page)

    def list_runs(self, benchmark: str) -> Answer:
        """List the runs of a benchmark: id, number, label, status, primary value and warnings."""
        results = self._client.results(self._find(benchmark))
        primary = f"ndcg@{results['primary_k']}"
        runs = [
            {
                "id": run["id"],
                "number": run["run_order"],
                "label": run["label"],
                "status": run["status"],
                primary: run["metrics_flat"].get(primary),
                "warnings": run["warnings"],
            }
            for run in results["runs"]
        ]
        return {"benchmark": results["name"], "status": results["status"], "runs": runs}

    def read_verdict(self, benchmark: str) -> str:
        """Read the verdict on a benchmark, what supports it, and its leaderboard, as Markdown."""
        return shorten(self._client.export(self._find(benchmark), "markdown").decode(), LONGEST_ANSWER)

    def list_lost_documents(self, run_id: str, cause: str = "", page: int = 1) -> Answer:
        """List relevant documents that a run lost, the worst query first, each with its cause and remedy."""
        return self._list(f"/runs/{run_id}/triage/documents", page=page, **({"cause": cause} if cause else {}))

    def read_query(self, benchmark: str, run_id: str, query_key: str) -> Answer:
        """Read a run's ranking and values for one query, and the stage at which it lost relevant documents."""
        for row in self._client.queries(self._find(benchmark), run_id):
            if row["query_key"] == query_key:
                lost = self._client.rows(f"/runs/{run_id}/triage/documents")
                return {**row, "lost": [document for document in lost if document["query_key"] == query_key]}
        raise ClientError(f"The run has no query with the key {query_key[:200]!r}.", code="not_found")

    def preview_benchmark(self, mapping_id: str, config_matrix: dict[str, Any]) -> Answer:
        """Show the runs, the time and the warnings of a matrix of configurations; creates nothing."""
        body = {"mapping_id": mapping_id, "config_matrix": config_matrix}
        return dict(self._client.ask("POST", "/benchmarks/preview", reads=True, json=body))

    def create_benchmark(self, name: str, mapping_id: str, config_matrix: dict[str, Any]) -> Answer:
        """Create a benchmark with a run for each configuration of the matrix; it does not start yet."""
        return self._client.create_benchmark(name, mapping_id, config_matrix)

    def start_benchmark(self, benchmark: str) -> Answer:
        """Start a benchmark."""
        return self._client.start(self._find(benchmark))

    def wait_for_benchmark(self, benchmark: str, seconds: float = 60.0) -> Answer:
        """Wait for a benchmark, at most `seconds` (up to 300), and return its progress; call it again if it runs."""
        started = self._find(benchmark)
        try:
            return self._client.wait(started, timeout=min(max(seconds, 0.0), MOST_SECONDS))
        except ClientError as error:
            if error.code != "timeout":
                raise
            return self._client.operation(started)

    def check_gate(self, benchmark: str, rules: str, baseline: str = "", run: str = "") -> Answer:
        """Judge a benchmark by rules in YAML, such as `floors: {ndcg@10: 0.6}`; `run` is a number or "all"."""
        number = int(run) if run.isdecimal() else run or None
        return self._client.gate(self._find(benchmark), rules, baseline=baseline or None, run=number)

    def _find(self, benchmark: str) -> Answer:
        return find_benchmark(self._client, benchmark)

    def _get(self, path: str) -> Any:
        return self._client.ask("GET", path)

    def _list(self, path: str, **params: object) -> Answer:
        return dict(self._client.ask("GET", path, params=params | {"per_page": PER_PAGE}))


READS = ("list_", "read_", "preview_", "wait_", "check_")  # the others create and start


def list_tools(tools: Tools) -> dict[str, Callable[..., str]]:
    """Return the tools by name, whose answers are texts of at most LONGEST_ANSWER characters."""
    names = [name for name in vars(Tools) if not name.startswith("_")]
    return {name: _limit(getattr(tools, name)) for name in names}


def _limit(tool: Callable[Parameters, object]) -> Callable[Parameters, str]:
    @wraps(tool)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> str:
        return render_answer(tool(*args, **kwargs))

    return call


def render_answer(answer: object) -> str:
    """Return an answer as JSON, in which texts and lists are cut as far as needed; a text remains one."""
    if isinstance(answer, str):
        return shorten(answer, LONGEST_ANSWER)
    rows, text = MOST_ROWS, json.dumps(answer, ensure_ascii=False)
    while len(text) > LONGEST_ANSWER and rows:
        text = json.dumps(_cut(answer, rows), ensure_ascii=False)
        rows //= 2
    return shorten(text, LONGEST_ANSWER)


def _cut(value: object, rows: int) -> Any:
    if isinstance(value, str):
        return shorten(value, 16 * rows)
    if isinstance(value, Mapping):
        return {key: _cut(item, rows) for key, item in value.items()}
    if isinstance(value, list):
        left_out = [f"{len(value) - rows:,} more are left out"] * (len(value) > rows)
        return [_cut(item, rows) for item in value[:rows]] + left_out
    return value


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
