"""Libraries, imported runs, a search server and a receiver of notices, for tests of benchmarks."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stamina
import yaml

from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from apps.retrieval.encoders.registry import ENCODERS
from benchbench.process import reset_all
from tests.benchmarks.imported import RUN, make_judged, write
from tests.benchmarks.laboratory import make_folder
from tests.benchmarks.receiver import SECRET, Receiver
from tests.benchmarks.shop_server import Shop
from tests.benchmarks.word_experiment import make_word_experiment
from tests.library import make_library, short_batches  # noqa: F401 (a fixture)
from tests.retrieval.words import BagOfWords


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an experiment, without the file that compares."""
    make_folder(tmp_path)
    return tmp_path


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library()


@pytest.fixture
def dataset(db: None) -> Dataset:
    return make_judged()


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """A file of rankings for that dataset."""
    return write(tmp_path / "bm25.run", RUN)


@pytest.fixture
def measured(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """An experiment of two strategies over words, run."""
    monkeypatch.setitem(ENCODERS, "bag:", BagOfWords)
    return make_word_experiment()


@pytest.fixture
def shop(tmp_path, settings) -> Iterator[Shop]:
    server = Shop()
    declared = {
        "url": f"http://127.0.0.1:{server.server_port}/search",
        "version": "7",
        "query": {"q": "{query}", "size": "{size}", "newest": "{newest}"},
        "parameters": {"newest": {"default": False}},
        "private": True,
        "page_size": 100,
        "answer": {
            "hits": "hits",
            "id": "id",
            "score": "score",
            "title": "title",
            "snippet": "text",
            "complete_when": "done",
        },
    }
    path = tmp_path / "engines.yaml"
    path.write_text(yaml.safe_dump({"engines": {"shop": declared}}))
    settings.BENCHBENCH_ENGINES = str(path)
    reset_all()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def shop_library(transactional_db, shop):
    library = make_library(documents=12, queries=3)
    shop.ranking = list(library.collection.documents.order_by("external_id").values_list("external_id", flat=True))
    return library


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with stamina.set_testing(True, attempts=2):  # without waiting between them
        yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def declare(receiver: Receiver, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Declare the receiver as `team`, with further keys."""

    def declare(
        url: str = f"http://127.0.0.1:{receiver.server_port}/hooks", private: str = "true", more: str = ""
    ) -> None:
        file = tmp_path / "engines.yaml"
        file.write_text(f"notices:\n  team: {{url: '{url}', secret: TEAM_HOOK, private: {private}{more}}}\n")
        settings.BENCHBENCH_ENGINES = str(file)
        monkeypatch.setenv("TEAM_HOOK", SECRET)

    declare()
    reset_all()
    return declare
