"""Where a part or an index is not available, its runs are neither created, started nor retried, and harm no others."""

import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import RepositoryNotFoundError

from apps.execution.defining.previewing import preview
from apps.execution.launching import launch, retry
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import OperationFailedError, wait
from apps.records.models import Benchmark, Run
from apps.retrieval.availability import UnavailableError, describe_missing, list_run_requirements
from apps.retrieval.encoders import model_files
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.llms import servers as llm_servers
from apps.retrieval.models import Index
from benchbench.errors import ConflictError
from benchbench.ir.planning.configuration import Configuration
from tests.benchmarks.approximated import benchmark_of, run_matrix
from tests.created import create_benchmark, run_benchmark
from tests.kept import made_once
from tests.library import ENCODER, make_library
from tests.retrieval import llm_server
from tests.retrieval.llm_server import MODEL

REWRITTEN: dict[str, Any] = {"query": ["rewrite"], "llms": [f"openai:{MODEL}"]}
NO_MODEL = "the language model server openai has no model 'llama3'; available: none"
NO_ANSWER = "the language model server openai does not answer .*: start it, or correct BENCHBENCH_LLM_SERVERS"


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server or the hub said a moment ago is not believed."""
    for module in (llm_servers, model_files):
        monkeypatch.setattr(module, "BELIEVED_SECONDS", 1e-9)


def refused(library: Mapping, matrix: dict[str, Any], goes: Callable[[], object], message: str) -> None:
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
        with pytest.raises(UnavailableError, match=message):
            act()
    assert not Operation.objects.filter(kind=Operation.Kind.BENCHMARK).exists()
    assert [run.status for run in (launched.runs.get(), failed.runs.get())] == ["pending", "failed"]


def test_a_rewriting_model_must_be_there(library, server, monkeypatch):
    refused(library, REWRITTEN, lambda: monkeypatch.setitem(llm_server.MODELS, "data", []), NO_MODEL)


def test_the_server_of_the_model_that_rewrites_must_answer(library, server, settings):
    def goes() -> None:
        settings.BENCHBENCH_LLM_SERVERS = ["openai=openai+http://127.0.0.1:9/v1"]

    refused(library, REWRITTEN, goes, NO_ANSWER)


def test_a_strategy_s_model_must_be_there(library, server, monkeypatch):
    asks = {"strategy": "lod_llm", "llm": MODEL, "llm_parameters": {"provider": "openai"}}
    wait(build_index(create_index(library.collection, name="asks", encoder=ENCODER, **asks)))
    refused(library, {"indexes": ["asks"]}, partial(monkeypatch.setitem, llm_server.MODELS, "data", []), NO_MODEL)
    words = run_matrix(library, indexes=["asks"], search_modes=["sparse"])
    assert words.runs.get().failed_queries == 0, "who searches for words alone asks no model"


def test_tree_search_does_not_need_the_building_model():
    index = Index(strategy="raptor", llm=MODEL, llm_parameters={"provider": "gone"})
    assert list_run_requirements(index, Configuration()) == {"store": "memory"}


def test_the_files_of_a_reranker_must_be_here(library, tmp_path):
    folder = tmp_path / "reranker"
    folder.mkdir()
    matrix = {"use_reranker": [True], "rerankers": [str(folder)]}
    refused(
        library,
        matrix,
        partial(shutil.rmtree, folder),
        f"the model '{folder}' is not on this machine: this folder does not",
    )


def test_a_reranker_with_code_of_its_own_is_refused(library, tmp_path):
    (tmp_path / "evil.py").write_text("1/0")
    (tmp_path / "config.json").write_text('{"auto_map": {"AutoModel": "evil.Evil"}}')
    with pytest.raises(UnavailableError, match="has its own code"):
        benchmark_of(library, use_reranker=[True], rerankers=[str(tmp_path)])


def test_hub_is_asked_about_rerankers_to_download(monkeypatch):
    def knows_none(*args: Any, **answer: Any) -> Any:
        raise RepositoryNotFoundError("404", response=httpx.Response(404, request=httpx.Request("GET", "http://hub")))

    def is_away(*args: Any, **message: Any) -> Any:
        raise httpx.ConnectError("No route to the hub.")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(HfApi, "model_info", knows_none)
    assert "was not found on this machine or the Hugging Face Hub" in describe_missing({"reranker": "no/such-reranker"})
    monkeypatch.setattr(HfApi, "model_info", is_away)
    assert describe_missing({"reranker": "no/such-reranker"}) == "", "a worker may reach what a web process does not"


@pytest.fixture
def benchmark(transactional_db: None) -> Benchmark:
    return make_broken()


@made_once
def make_broken() -> Benchmark:
    """A completed benchmark over one index that is ready and one whose encoder names no words."""
    library = make_library()
    broken = create_index(library.collection, name="broken", encoder="keyword:")
    with pytest.raises(OperationFailedError):
        wait(build_index(broken))
    broken.refresh_from_db()
    indexes = {"keywords": library.collection.indexes.get(name="keywords"), "broken": broken}
    return run_benchmark(library, name="b", matrix={"indexes": ["broken", "keywords"]}, indexes=indexes)


def test_failed_index_makes_a_failed_run_with_its_error(benchmark):
    failed, completed = benchmark.runs.all()
    assert (benchmark.status, failed.status, completed.status) == ("completed", "failed", "completed")
    assert failed.error_message.startswith("Its index could not be built. 'keyword:' must have distinct keywords")
    assert failed.index.status == Index.Status.FAILED


def test_it_is_retried_once_the_index_is_ready(benchmark):
    with pytest.raises(ConflictError, match="no ready index"):
        retry(benchmark)
    Index.objects.filter(name="broken").update(encoder=ENCODER)
    wait(build_index(Index.objects.get(name="broken")))
    wait(retry(benchmark))
    failed, completed = benchmark.runs.all()
    assert failed.status == "completed"
    assert [*failed.query_results.values_list("document_ids")] == [*completed.query_results.values_list("document_ids")]


def test_indexes_of_missing_strategies_are_not_searched(library):
    """Sites have such, from before it was refused."""
    pending, failed = (create_benchmark(library, name=name, matrix={}) for name in ("pending", "failed"))
    failed.runs.update(status=Run.Status.FAILED)
    Index.objects.update(strategy="no_such")
    library.refresh_from_db()
    created = partial(create_benchmark, library, name="b", matrix={})
    for act in (created, partial(launch, pending), partial(retry, failed)):
        with pytest.raises(UnavailableError, match='"keywords" is not available here: the strategy no_such is unknown'):
            act()
    assert Benchmark.objects.count() == 2
    assert set(Run.objects.values_list("status", flat=True)) == {"pending", "failed"}
