"""The client of the API: a benchmark from upload to verdict, a method for each step."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from benchbench.client.connection import ClientError, Connection
from benchbench.client.progress import ACTIVE_STATUSES, render_progress, require_success

ADDRESS = "BENCHBENCH_URL"
TOKEN = "BENCHBENCH_TOKEN"
PER_PAGE = 100
FIRST_LOOK = 0.2  # seconds before the second look of `wait`; the pauses grow to `every`
Answer = dict[str, Any]  # the site's answer, described in docs/openapi.yaml; ids and times are strings
Thing = Mapping[str, Any] | UUID | str  # an answer that has an id, or the id


class Client:
    """The use cases of BenchBench on the site at `address` (https://bench.example.org, with or without /api/v2).

    `token` is a personal token or an access token. Defaults come from the environment: BENCHBENCH_URL and
    BENCHBENCH_TOKEN. Methods return the site's JSON: ids and times are strings. Where a method takes a thing, its id
    suffices. Every method may raise ClientError. Threads may share a client. As a context manager it closes its
    connections.
    """

    def __init__(self, address: str | None = None, *, token: str | None = None) -> None:
        address = os.environ.get(ADDRESS, "") if address is None else address
        if not address:
            raise ClientError(f"The address of the site is missing: give it, or set {ADDRESS}.", code="no_address")
        self._site = Connection(address, token=os.environ.get(TOKEN, "") if token is None else token)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._site.close()

    def _ask(self, method: str, path: str, **content: Any) -> Answer:
        answer: Answer = self._site.ask(method, path, **content)
        return answer

    def _call_round(self, method: str, round: Thing, path: str, **content: object) -> Answer:
        return self._ask(method, f"/judging-rounds/{get_id(round)}/{path}", **content)

    def upload(
        self, file: str | Path, *, name: str, description: str = "", format: str = "", split: str = ""
    ) -> Answer:
        """Upload judged queries and return their dataset.

        Uploading the same content under the same name again succeeds. Other content under a name needs a new
        `metadata.version` in the file and becomes the next version of the dataset.
        """
        fields = {"name": name, "description": description, "format": format, "split": split}
        form = {key: value for key, value in fields.items() if value}
        with Path(file).open("rb") as content:
            files = {"file": (Path(file).name, content)}
            return self._ask("POST", "/benchmark-datasets", once=True, data=form, files=files)

    def find_collection(self, name: str) -> Answer:
        """Return the collection of a name. Raises ClientError if you see none, or several of different owners."""
        return self._find("collection", name)

    def find_benchmark(self, name: str) -> Answer:
        """Return the benchmark of a name. Raises ClientError if you see none, or several."""
        return self._find("benchmark", name)

    def _find(self, kind: str, name: str) -> Answer:
        matching = [row for row in self.rows(f"/{kind}s") if row["name"] == name]
        if len(matching) == 1:
            return matching[0]
        several = "".join(f" {row['id']}" for row in matching)
        raise ClientError(
            f"{len(matching)} {kind}s are named {name!r}: give the id of one.{several}"
            if matching
            else f"No {kind} named {name!r} was found.",
            code="ambiguous" if matching else "not_found",
        )

    def map(self, dataset: Thing, collection: Thing) -> Answer:
        """Map a dataset to a collection and return the mapping, or the existing mapping of the two."""
        path = f"/benchmark-datasets/{get_id(dataset)}/mappings"
        try:
            return self._ask("POST", path, once=True, json={"collection_id": get_id(collection)})
        except ClientError as error:
            if error.code == "mapping_exists":
                for mapping in self.ask("GET", path):
                    if mapping["collection_id"] == get_id(collection).lower():
                        return dict(mapping)
            raise

    def resolve(
        self,
        mapping: Answer,
        *,
        progress: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """Find the document of each judgment, wait if the site queues the work, and return the mapping."""
        path = f"/benchmark-datasets/{mapping['dataset_id']}/mappings/{mapping['id']}"
        resolution = self._ask("POST", f"{path}/resolve", once=True)
        if resolution["operation_uuid"] is not None:
            self.wait(resolution, progress=progress, timeout=timeout)
        return self._ask("GET", path)

    def create_benchmark(
        self,
        name: str,
        mapping: Thing,
        config_matrix: Mapping[str, Any] | None = None,
        *,
        metrics: Sequence[str] = (),
        **more: Any,
    ) -> Answer:
        """Make a benchmark with a run for each configuration of the matrix; `more` are further keys of the API's body.

        An error about the matrix has its key in `errors`.
        """
        fields = {"name": name, "mapping_id": get_id(mapping), "config_matrix": dict(config_matrix or {})}
        body = fields | {"metrics_to_compute": list(metrics)} | more
        return self._ask("POST", "/benchmarks", once=True, json=body)

    def start(self, benchmark: Thing) -> Answer:
        return self._ask("POST", f"/benchmarks/{get_id(benchmark)}/start", once=True)

    def cancel(self, benchmark: Thing) -> Answer:
        return self._ask("POST", f"/benchmarks/{get_id(benchmark)}/cancel", once=True)

    def operation(self, operation: Thing) -> Answer:
        """Return the progress of an operation, given its id or the answer of `start`, `cancel` or building an index."""
        return self._ask("GET", f"/operations/{get_operation_id(operation)}")

    def wait(
        self,
        operation: Thing,
        *,
        progress: Callable[[str], object] | None = None,
        every: float = 2.0,
        timeout: float | None = None,
    ) -> Answer:
        """Wait until an operation has ended, and return it.

        `progress` (such as `print`) is called with a sentence at first and whenever it changes. The site is polled
        every `every` seconds, more often in the beginning. Raises ClientError if the operation failed (code
        `operation_failed`), was cancelled (`operation_cancelled`), or has not ended after `timeout` seconds
        (`timeout`); it continues then.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        previous = ""
        pause = min(FIRST_LOOK, every)
        while True:
            now = self.operation(operation)
            sentence = render_progress(now)
            if progress is not None and sentence != previous:
                progress(sentence)
            previous = sentence
            if now["status"] not in ACTIVE_STATUSES:
                return require_success(now)
            if deadline is not None and time.monotonic() + pause > deadline:
                raise ClientError(f"It is still running after {timeout:g} s. {sentence}", code="timeout")
            time.sleep(pause)
            pause = min(pause * 1.5, every)

    def results(self, benchmark: Thing) -> Answer:
        return self._ask("GET", f"/benchmarks/{get_id(benchmark)}/results")

    def queries(self, benchmark: Thing, run: Thing) -> Iterator[Answer]:
        """Yield a run's result for each query."""
        return self.rows(f"/benchmarks/{get_id(benchmark)}/runs/{get_id(run)}/queries")

    def gate(
        self,
        benchmark: Thing,
        rules: str | Mapping[str, object],
        *,
        baseline: str | None = None,
        run: int | str | None = None,
    ) -> Answer:
        """Judge a benchmark by rules (docs/gates.md): a YAML text, or the same as an object.

        Judges the best run, the run with the number `run`, or "all", against the baseline of that name. The `outcome`
        is passed, failed or undecided; none of them raises an error.
        """
        body = {"rules": rules if isinstance(rules, str) else dict(rules), "baseline": baseline, "run": run}
        return self._ask("POST", f"/benchmarks/{get_id(benchmark)}/gate", reads=True, json=body)

    def open_round(self, name: str, runs: Sequence[Thing], **more: object) -> Answer:
        """Open a judging round over completed runs; `more` are further keys of the API's body, such as `judges`."""
        body = {"name": name, "run_ids": [get_id(run) for run in runs]} | more
        return self._ask("POST", "/judging-rounds", once=True, json=body)

    def next_items(self, round: Thing, count: int = 1) -> Answer:
        """Return the items to grade next. They are yours for ten minutes after your last request."""
        return self._call_round("POST", round, "next", reads=True, json={"count": count})

    def grade(self, round: Thing, grades: Sequence[Mapping[str, object]]) -> list[Answer]:
        """Grade items: each has `item_id` and `grade`, or a `kind`, and may have `note` and `seconds`.

        Grades that are sent again, for example after a lost answer, are stored once.
        """
        answer = self._call_round("POST", round, "grades", reads=True, json={"grades": [dict(item) for item in grades]})
        return list(answer["grades"])

    def undo(self, round: Thing, count: int = 1) -> Answer:
        """Take back your last grades, at most ten, and hold their items again."""
        return self._call_round("POST", round, "grades/undo", once=True, json={"count": count})

    def round_state(self, round: Thing) -> Answer:
        """Return the progress of a round, what is settled, and an estimate of the grades still needed."""
        return self._call_round("GET", round, "state")

    def close_round(self, round: Thing, **more: object) -> Answer:
        """Make a round the next version of its dataset; `more` is `leave_out_split`, `with_draft`, `label`, `note`."""
        return self._call_round("POST", round, "close", once=True, json=more)

    def llm_cost(self, round: Thing, llm: str, *, item_limit: int | None = None) -> Answer:
        """Return the cost of judging at most `item_limit` items by a model (`ollama:llama3`), without calling it."""
        return self._call_round(
            "POST", round, "llm-judges/preview", reads=True, json={"llm": llm, "item_limit": item_limit}
        )

    def judge_by_llm(self, round: Thing, llm: str, *, item_limit: int | None = None) -> Answer:
        """Let a model judge the items it has not judged, the calibration sample first; `wait` for the result.

        Its grades are stored separately and never count as people's. `item_limit` limits their number.
        """
        return self._call_round("POST", round, "llm-judges", once=True, json={"llm": llm, "item_limit": item_limit})

    def draw_calibration_sample(self, round: Thing, size: int) -> Answer:
        """Freeze a uniform sample of 30 to 500 of a round's pairs, on which people and models are compared."""
        return self._call_round("POST", round, "calibration-sample", once=True, json={"size": size})

    def llm_judges(self, round: Thing) -> list[Answer]:
        """Return the models that judge a round, the one started last first, each with its calibration."""
        return list(self._call_round("GET", round, "llm-judges")["judges"])

    def verdicts(self, round: Thing, *, llm: str = "") -> Answer:
        """Return the verdicts `human`, `human + llm` and `corrected` with the model `llm`.

        By default it is the model that was started last.
        """
        return self._call_round("GET", round, "verdicts", params={"llm": llm} if llm else {})

    def export(self, benchmark: Thing, format: str, *, run: Thing | None = None) -> bytes:
        """Return the results of a benchmark, or of a run of it, as a file (docs/formats.md names the formats)."""
        of_run = "" if run is None else f"/runs/{get_id(run)}"
        return self._site.download(f"/benchmarks/{get_id(benchmark)}{of_run}/export", format=format)

    def ask(self, method: str, path: str, **content: Any) -> Any:
        """Return the API's answer to any other request: `ask("GET", "/indexes", params={"page": 2})`.

        `path` begins after /api/v2; `content` is httpx's: json, params, data, files. With `once=True` the request has
        an Idempotency-Key, for an address that honours it, and is sent again if its answer is lost.
        """
        return self._site.ask(method, path, **content)

    def rows(self, path: str, **params: object) -> Iterator[Answer]:
        """Yield the rows of a list, page by page."""
        page = 1
        seen = 0
        while True:
            answer = self._ask("GET", path, params=params | {"page": page, "per_page": PER_PAGE})
            (rows,) = (value for value in answer.values() if isinstance(value, list))
            yield from rows
            seen += len(rows)
            if not rows or seen >= answer["total"]:
                return
            page += 1


def get_id(thing: Thing) -> str:
    return str(thing["id"] if isinstance(thing, Mapping) else thing)


def get_operation_id(thing: Thing) -> str:
    """Return the id of the operation that an answer names."""
    if not isinstance(thing, Mapping):
        return str(thing)
    id = thing.get("operation_uuid") or thing.get("operation_id")
    if id is None:
        raise ClientError("Nothing is running: start it first.", code="not_started")
    return str(id)
