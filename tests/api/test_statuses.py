"""Every status that the API may answer, each asked for once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from apps.mappings.models import Mapping
from tests.api.callers import Callers
from tests.api.test_datasets import questions
from tests.api.test_isolation import UNKNOWN
from tests.benchmarks.conftest import make_library
from tests.factories import make_dataset

DATASETS = "/benchmark-datasets"


@dataclass(frozen=True)
class Scene:
    """A library of nobody's, which all the staff may use, and everybody who asks."""

    callers: Callers
    library: Mapping
    settings: Any
    patch: pytest.MonkeyPatch

    @property
    def mapping(self) -> str:
        return f"{DATASETS}/{self.library.dataset_id}/mappings/{self.library.pk}"

    def benchmark(self, **matrix: Any) -> Any:
        body = {"name": "which", "mapping_id": str(self.library.pk), "config_matrix": matrix}
        return self.callers.owner.post("/benchmarks", body)

    def resolved_on_the_queue(self) -> Any:
        self.settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
        return self.callers.owner.post(f"{self.mapping}/resolve")

    def of_another_dataset(self) -> Any:
        return self.callers.owner.get(f"{DATASETS}/{make_dataset(name='another').pk}/mappings/{self.library.pk}")

    def of_somebody_else(self) -> Any:
        self.library.dataset.owner = self.callers.overseer.user
        self.library.dataset.save()
        return self.callers.owner.get(f"{DATASETS}/{self.library.dataset_id}")

    def deleted(self) -> Any:
        return self.callers.owner.delete(f"{DATASETS}/{make_dataset(name='another').pk}")

    def mapped_twice(self) -> Any:
        body = {"collection_id": str(self.library.collection_id)}
        return self.callers.owner.post(f"{DATASETS}/{self.library.dataset_id}/mappings", body)

    def too_large(self) -> Any:
        self.settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES = 100
        return self.callers.owner.upload(DATASETS, b" " * 101, name="large")

    def too_often(self) -> Any:
        self.settings.BENCHBENCH_API_RATES = self.settings.BENCHBENCH_API_RATES | {"read": (1, 3600)}
        self.callers.owner.get(DATASETS)
        return self.callers.owner.get(DATASETS)

    def failed(self) -> Any:
        self.patch.setattr("apps.api.resources.datasets.delete_dataset", None)
        self.callers.owner.client.raise_request_exception = False
        return self.deleted()


Ask = Callable[[Scene], Any]
ROWS: list[tuple[int, str, Ask]] = [
    (200, "", lambda scene: scene.callers.owner.get(DATASETS)),
    (200, "", lambda scene: scene.callers.owner.post(f"{scene.mapping}/resolve")),
    (201, "", lambda scene: scene.callers.owner.upload(DATASETS, questions("a"), name="new")),
    (201, "", lambda scene: scene.benchmark(search_modes=["sparse"])),
    (202, "", Scene.resolved_on_the_queue),
    (204, "", Scene.deleted),
    (400, "malformed", lambda scene: scene.callers.owner.upload(DATASETS, b"{", name="broken")),
    (400, "invalid", lambda scene: scene.callers.owner.upload(DATASETS, questions("a"))),
    (400, "invalid_matrix", lambda scene: scene.benchmark(search_modes=["fuzzy"])),
    (401, "not_authenticated", lambda scene: scene.callers.anonymous.get(DATASETS)),
    (403, "permission_denied", Scene.of_somebody_else),
    (403, "insufficient_scope", lambda scene: scene.callers.reader.delete(f"{DATASETS}/{UNKNOWN}")),
    (404, "not_found", lambda scene: scene.callers.owner.get(f"{DATASETS}/{UNKNOWN}")),
    (404, "not_found", Scene.of_another_dataset),
    (404, "not_found", lambda scene: scene.callers.owner.get("/no/such/address")),
    (405, "method_not_allowed", lambda scene: scene.callers.owner.delete(DATASETS)),
    (409, "mapping_exists", Scene.mapped_twice),
    (413, "too_large", Scene.too_large),
    (415, "unsupported_media_type", lambda scene: scene.callers.owner.post(DATASETS, {"name": "no form"})),
    (429, "throttled", Scene.too_often),
    (500, "server_error", Scene.failed),
]


@pytest.mark.parametrize(("status", "code", "ask"), ROWS, ids=[f"{row[0]}-{row[1] or 'done'}" for row in ROWS])
def test_every_status_is_answered_in_its_shape(
    status: int, code: str, ask: Ask, callers: Callers, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ask(Scene(callers, make_library(documents=3, queries=1), settings, monkeypatch))
    assert answer.status_code == status, answer.content
    if status == 204:
        assert answer.content == b""
        return
    body = answer.json()
    if status >= 400:
        assert {"detail", "code"} <= set(body) <= {"detail", "code", "errors", "reference"}
        assert (body["code"], body["detail"][-1]) == (code, "."), body
    if code == "invalid_matrix":
        assert set(body["errors"]) == {"config_matrix.search_modes"}
    assert ("Retry-After" in answer.headers) == (status == 429)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert ("reference" in body) == (status == 500)
    assert (bool(body.get("operation_uuid"))) == (status == 202)
