"""Real clients on the real server: every kind of operation to each of its ends, as its watcher is informed."""

import json
import threading
from collections.abc import Callable
from tempfile import mkdtemp
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from apps.execution.launching import launch
from apps.judging.llm.launching import start_judging
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.models import Operation
from apps.records.measuring.measures import add_measures
from apps.retrieval.indexing import build_index, create_index
from tests.created import create_benchmark, run_benchmark
from tests.factories import make_benchmark, make_dataset, make_round
from tests.library import ENCODER

ENDS = ("completed", "failed", "cancelled")
SECONDS = 180


class Watcher(threading.Thread):
    """Reads a socket until what it was informed satisfies `enough`, or until the server closes it."""

    def __init__(self, url: str, enough: Callable[[Any], bool], **options: Any) -> None:
        super().__init__(daemon=True)
        self.url, self.enough, self.options = url, enough, options
        self.messages: list[Any] = []
        self.subprotocol: str | None = None
        self.code: int | None = None
        self.begun = threading.Event()
        self.start()
        assert self.begun.wait(SECONDS), f"no word on {url}"

    def run(self) -> None:
        with connect(self.url, open_timeout=SECONDS, proxy=None, **self.options) as socket:
            self.subprotocol = socket.subprotocol
            try:
                while not (self.messages and self.enough(self.messages[-1])):
                    self.messages.append(json.loads(socket.recv(timeout=SECONDS)))
                    self.begun.set()
            except ConnectionClosed as closed:
                self.code = closed.rcvd.code if closed.rcvd else None

    def read_all(self) -> list[Any]:
        """Return every message, once the last has come."""
        self.join(timeout=SECONDS)
        assert not self.is_alive(), self.messages[-1:]
        return self.messages


def is_end(message: Any) -> bool:
    """Return whether an operation's own event says that it is over."""
    return message["data"].get("stage") in ENDS


def make_operations(library: Mapping, owner: User) -> dict[tuple[str, str], Operation]:
    """Return an operation of each kind for each end, by event and end; no work has been done on any of them."""
    return {
        **{("index_progress", end): _index(library, owner, end) for end in ENDS},
        **{("benchmark_mapping_resolution_progress", end): _resolve(library, owner, end) for end in ENDS},
        **{("benchmark_progress", end): _benchmark(library, owner, end) for end in ENDS},
        **{("llm_judging_progress", end): _judging(library, owner, end) for end in ENDS},
        **{("measuring_progress", end): _measuring(library, owner, end) for end in ENDS},
    }


def _index(library: Mapping, owner: User, end: str) -> Operation:
    encoder = str(settings.BASE_DIR / "docs") if end == "failed" else ENCODER
    return build_index(create_index(library.collection, name=f"to be {end}", encoder=encoder), by=owner)


def _resolve(library: Mapping, owner: User, end: str) -> Operation:
    judgments = [({"document_id": "d001"}, 2), ({"document_id": "gone"}, 1), ({"file_name": "d002"}, 1)]
    dataset = make_dataset({"apple": judgments}, name=f"to be {end}")
    operation = resolve(create_mapping(dataset, library.collection, name=f"to be {end}"), by=owner).operation
    if end == "failed":
        dataset.versions.update(frozen_at=None)
    return operation


def _benchmark(library: Mapping, owner: User, end: str) -> Operation:
    matrix: dict[str, Any] = {"search_modes": ["dense", "sparse", "hybrid"], "ann": ["exact", "hnsw"]}
    if end == "failed":
        matrix = {
            "search_modes": ["dense"],
            "use_reranker": [True],
            "rerankers": [mkdtemp()],
        }  # a folder without a model
    matrix["indexes"] = ["keywords"]
    return launch(create_benchmark(library, name=f"to be {end}", matrix=matrix), by=owner)


def _judging(library: Mapping, owner: User, end: str) -> Operation:
    run = make_benchmark(library, [0.5]).runs.get()
    round = make_round(run, judges=[owner], items=3, owner=owner, guidelines=f"to be {end}")
    return start_judging(round, "ollama:llama3", owner)[1]


def _measuring(library: Mapping, owner: User, end: str) -> Operation:
    benchmark = run_benchmark(library, name=f"measured to be {end}", matrix={"search_modes": ["sparse"]})
    operation = add_measures(benchmark, ["ERR@5"], by=owner).operation
    if end == "failed":
        operation.parameters = operation.parameters | {"measures": ["none"]}
        operation.save(update_fields=["parameters"])
    return operation
