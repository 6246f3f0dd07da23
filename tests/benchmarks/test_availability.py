"""Parts that a run searches by and that are not to be had here: it is neither created nor started nor retried."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import RepositoryNotFoundError

from apps.benchmarks.defining.previewing import preview
from apps.benchmarks.launching import launch, retry
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.retrieval.availability import UnavailableError, lack, parts_of_run
from apps.retrieval.encoders import model_files
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.llms import servers as llm_servers
from apps.retrieval.models import Index
from benchbench.ir.planning.configuration import Configuration
from tests.benchmarks.approximated import benchmark_of
from tests.benchmarks.conftest import ENCODER
from tests.retrieval import llm_server
from tests.retrieval.llm_server import MODEL, LLMServer, known_server

REWRITTEN: dict[str, Any] = {"query": ["rewrite"], "llms": [f"openai:{MODEL}"]}
NO_MODEL = "the language model server openai has no model 'llama3'; it has none"
NO_ANSWER = "the language model server openai does not answer .*: start it, or correct BENCHBENCH_LLM_SERVERS"


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[LLMServer]:
    with known_server(settings, monkeypatch) as made:
        yield made


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server or the hub said a moment ago is not believed."""
    for module in (llm_servers, model_files):
        monkeypatch.setattr(module, "BELIEVED_SECONDS", 1e-9)


def refused(library: Mapping, matrix: dict[str, Any], goes: Callable[[], object], said: str) -> None:
    """Check that no act works once something `goes`, though the benchmarks were made before."""
    launched, failed = (benchmark_of(library, **matrix) for _ in range(2))
    failed.runs.update(status="failed")
    goes()
    acts = (
        partial(preview, library, {"top_k_values": [20], **matrix}),
        partial(benchmark_of, library, **matrix),
        partial(launch, launched),
        partial(retry, failed),
    )
    for act in acts:
        with pytest.raises(UnavailableError, match=said):
            act()
    assert not Operation.objects.filter(kind=Operation.Kind.BENCHMARK).exists()
    assert [run.status for run in (launched.runs.get(), failed.runs.get())] == ["pending", "failed"]


def test_the_model_that_rewrites_must_be_on_its_server(
    library: Mapping, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(library, REWRITTEN, lambda: monkeypatch.setitem(llm_server.MODELS, "data", []), NO_MODEL)


def test_the_server_of_the_model_that_rewrites_must_answer(library: Mapping, server: LLMServer, settings: Any) -> None:
    def goes() -> None:
        settings.BENCHBENCH_LLM_SERVERS = ["openai=openai+http://127.0.0.1:9/v1"]

    refused(library, REWRITTEN, goes, NO_ANSWER)


def test_the_model_that_a_strategy_asks_must_be_on_its_server(
    library: Mapping, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = {"strategy": "lod_llm", "llm": MODEL, "llm_parameters": {"provider": "openai"}}
    wait(build_index(create_index(library.collection, name="asks", encoder=ENCODER, **asks)))
    go = partial(monkeypatch.setitem, llm_server.MODELS, "data", [])
    refused(library, {"indexes": ["asks"]}, go, NO_MODEL)
    words = benchmark_of(library, indexes=["asks"], search_modes=["sparse"])
    wait(launch(words))
    assert words.runs.get().failed_queries == 0, "who searches for words alone asks no model"


def test_a_tree_is_searched_without_the_model_that_grew_it() -> None:
    index = Index(strategy="raptor", llm=MODEL, llm_parameters={"provider": "gone"})
    assert parts_of_run(index, Configuration()) == {"store": "memory"}


def test_the_files_of_a_reranker_must_be_here(library: Mapping, tmp_path: Path) -> None:
    folder = tmp_path / "reranker"
    folder.mkdir()
    matrix = {"use_reranker": [True], "rerankers": [str(folder)]}
    refused(
        library, matrix, partial(shutil.rmtree, folder), f"the model '{folder}' is not on this machine: there is no"
    )


def test_a_reranker_that_nobody_published_is_refused(library: Mapping) -> None:
    with pytest.raises(UnavailableError, match="'no/such-reranker' is not on this machine, and HF_HUB_OFFLINE forbids"):
        benchmark_of(library, use_reranker=[True], rerankers=["no/such-reranker"])


def test_a_reranker_with_code_of_its_own_is_refused(library: Mapping, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("1/0")
    (tmp_path / "config.json").write_text('{"auto_map": {"AutoModel": "evil.Evil"}}')
    with pytest.raises(UnavailableError, match="brings code of its own"):
        benchmark_of(library, use_reranker=[True], rerankers=[str(tmp_path)])


def test_the_hub_is_asked_for_a_reranker_that_would_be_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def knows_none(*args: Any, **told: Any) -> Any:
        raise RepositoryNotFoundError("404", response=httpx.Response(404, request=httpx.Request("GET", "http://hub")))

    def is_away(*args: Any, **told: Any) -> Any:
        raise httpx.ConnectError("No route to the hub.")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(HfApi, "model_info", knows_none)
    assert "knows none of that name" in lack({"reranker": "no/such-reranker"})
    monkeypatch.setattr(HfApi, "model_info", is_away)
    assert lack({"reranker": "no/such-reranker"}) == "", "a worker may reach what a web process does not"
