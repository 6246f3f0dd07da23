"""Waiting for operations, and reading lists, as a site tells them."""

from typing import Any

import pytest

from benchbench.client import Client, ClientError
from tests.client.scripted import scripted

INDEX = {"total_documents": 200, "processed_documents": 0}
BENCHMARK = {"total_runs": 4, "completed_runs": 0, "failed_runs": 0}


def state(kind: str, status: str, stage: str = "", error: str | None = None, **progress: Any) -> tuple[int, Any]:
    told = {"status": status, "stage": stage or status, "queue_position": None, "waiting_for": None, **progress}
    return 200, {"operation_id": "o", "kind": kind, "status": status, "error": error, "progress": told}


def test_it_says_each_thing_once() -> None:
    said: list[str] = []
    with scripted(
        state("benchmark", "pending", "starting", **BENCHMARK, queue_position=2, percent=0),
        state("benchmark", "pending", "starting", **BENCHMARK, waiting_for="A host is taken.", percent=0),
        state("benchmark", "running", "evaluating", **BENCHMARK, percent=41.2),
        state("benchmark", "running", "evaluating", **BENCHMARK, percent=41.3),
        state("benchmark", "completed", **BENCHMARK | {"completed_runs": 3, "failed_runs": 1}, percent=100),
    ) as site:
        ended = Client(site.address).wait({"operation_uuid": "o"}, progress=said.append, every=0.01)
        assert {path for _, path, _, _ in site.asked} == {"/api/v2/operations/o"}
    assert ended["status"] == "completed"
    assert said == [
        "benchmark: starting, number 3 in the queue, 0 %, 0 of 4 runs",
        "benchmark: starting, A host is taken., 0 %, 0 of 4 runs",
        "benchmark: evaluating, 41 %, 0 of 4 runs",
        "benchmark: completed, 4 of 4 runs (1 failed)",
    ]


@pytest.mark.parametrize(
    ("kind", "progress", "sentence"),
    [
        ("index", INDEX | {"processed_documents": 50}, "index: running, 25 %"),
        ("index", INDEX | {"total_documents": 0}, "index: running"),
        ("resolve", {"total_refs": 8, "processed_refs": 4}, "resolve: running, 50 %"),
        ("llm_judging", {"total_answers": 8, "answers": 2}, "llm_judging: running, 25 %"),
        ("measure", {"total_rankings": 8, "measured_rankings": 2}, "measure: running, 25 %"),
    ],
)
def test_it_tells_how_far_each_kind_is(kind: str, progress: dict[str, Any], sentence: str) -> None:
    said: list[str] = []
    with scripted(state(kind, "running", **progress), state(kind, "completed", **progress)) as site:
        Client(site.address).wait("o", progress=said.append, every=0.01)
    assert said == [sentence, f"{kind}: completed"]


@pytest.mark.parametrize(
    ("status", "error", "code", "told"),
    [
        ("failed", "The model is not here.", "operation_failed", "failed: The model is not here."),
        ("cancelled", None, "operation_cancelled", "was cancelled"),
        ("running", None, "timeout", "After 0 s it goes on. index: running, 0 %"),
    ],
)
def test_what_does_not_complete_is_an_error(status: str, error: str | None, code: str, told: str) -> None:
    with scripted(state("index", status, error=error, **INDEX)) as site, pytest.raises(ClientError) as raised:
        Client(site.address).wait("o", timeout=0)
    assert (raised.value.code, told in str(raised.value)) == (code, True)


def test_what_was_not_started_is_not_waited_for() -> None:
    with pytest.raises(ClientError, match="start it first"):
        Client("http://127.0.0.1:9").wait({"id": "b", "operation_uuid": None})


def test_it_reads_a_list_to_its_end() -> None:
    pages = [(200, {"things": list(rows), "total": 5, "page": 1, "per_page": 2}) for rows in ("ab", "cd", "e")]
    with scripted(*pages) as site:
        assert "".join(Client(site.address).rows("/things", kind="k")) == "abcde"
        asked = [path for _, path, _, _ in site.asked]
    assert asked == [f"/api/v2/things?kind=k&page={page}&per_page=100" for page in (1, 2, 3)]


@pytest.mark.parametrize(("names", "code"), [(["other"], "not_found"), (["library", "library"], "ambiguous")])
def test_it_finds_one_collection_of_a_name_or_says_why_not(names: list[str], code: str) -> None:
    rows = [{"id": str(number), "name": name} for number, name in enumerate(names)]
    page = (200, {"collections": rows, "total": len(rows), "page": 1, "per_page": 100})
    with scripted(page) as site, pytest.raises(ClientError, match="named 'library'") as raised:
        Client(site.address).find_collection("library")
    assert raised.value.code == code
