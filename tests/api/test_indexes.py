"""Indexes over HTTP: declared, alone or as a grid, built by an operation that can be watched, deleted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import create_collection
from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.operations.working import OperationFailedError, wait
from apps.retrieval.availability import describe_missing
from apps.retrieval.indexing import build_index, create_failed_index, create_index
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.strategies import STRATEGIES
from benchbench.ir.planning.ann import STORES
from benchbench.process import reset_all
from tests.api.bodies import owned_collection
from tests.api.callers import Callers, assert_refused, checked_json
from tests.factories import make_benchmark, make_dataset, make_mapping

ENCODER = "keyword:apple,plum"
DOCUMENTS = [{"text": "apple apple"}, {"text": "plum"}]


@pytest.fixture(autouse=True)
def files_of_this_test_only(settings: Any, tmp_path: Any) -> Iterator[None]:
    settings.BENCHBENCH_VECTOR_DIR = tmp_path / "vectors"
    yield
    reset_all()


@pytest.fixture
def fruit(callers: Callers) -> Collection:
    return owned_collection(callers.owner, "fruit", DOCUMENTS)


@pytest.fixture
def index(callers: Callers, fruit: Collection) -> Index:
    return create_index(fruit, name="keywords", encoder=ENCODER, owner=callers.owner.user)


def test_post_declares_an_index_and_returns_its_fields(callers: Callers, fruit: Collection) -> None:
    path = f"/collections/{fruit.pk}/indexes"
    fields = {"name": "small", "encoder": ENCODER, "chunk_parameters": {"size": 100, "overlap": 10}}
    facts, created = checked_json(callers.owner.post(path, fields), 201), Index.objects.get()
    assert facts == {
        "created_at": facts["created_at"],
        "id": str(created.pk),
        "collection_id": str(fruit.pk),
        "name": "small",
        "version": 1,
        "status": "pending",
        "error": None,
        "encoder": ENCODER,
        "encoder_revision": "",
        "dimension": None,
        "query_prompt": None,
        "document_prompt": None,
        "precision": "float32",
        "prompts": None,
        "warnings": [],
        "lexical": True,
        "llm": "",
        "llm_parameters": {},
        "strategy": "flat",
        "chunk_parameters": {"size": 100, "overlap": 10, "title": False},
        "vector_source": "",
        "fingerprint": "",
        "stats": None,
        "operation_uuid": None,
        "owner_id": callers.owner.user.pk,
        "ready_at": None,
    }
    assert callers.owner.get(f"/indexes/{created.pk}").json() == facts
    assert callers.owner.get(path).json() == {"indexes": [facts], "total": 1, "page": 1, "per_page": 50}
    assert callers.owner.post(path, {"name": "small"}).json()["version"] == 2


def test_it_declares_a_strategy_that_asks_a_language_model(callers: Callers, fruit: Collection, settings: Any) -> None:
    path = f"/collections/{fruit.pk}/indexes"
    fields = {"name": "asked", "encoder": ENCODER, "strategy": "lod_llm", "llm": "llama3"}
    assert_refused(callers.owner.post(path, fields), 409, "not_here")
    settings.BENCHBENCH_LLM_SERVERS = ["here=ollama+http://127.0.0.1:1"]
    facts = callers.owner.post(path, {**fields, "llm_parameters": {"seed": 7}}).json()
    assert (facts["llm"], facts["llm_parameters"]["provider"], facts["llm_parameters"]["seed"]) == ("llama3", "here", 7)
    assert callers.owner.post(path, {**fields, "llm_parameters": {"stop": "."}}).json()["code"] == "llm"


def test_prompts_and_precision_are_taken_with_their_blanks(callers: Callers, fruit: Collection) -> None:
    path = f"/collections/{fruit.pk}/indexes"
    fields = {"name": "e5", "encoder": "intfloat/e5-base-v2", "query_prompt": "query: ", "precision": "mixed"}
    facts = checked_json(callers.owner.post(path, fields), 201)
    assert {key: facts[key] for key in fields} == fields
    assert facts["document_prompt"] is None
    assert callers.owner.post(path, {**fields, "document_prompt": ""}).json()["document_prompt"] == ""
    assert_refused(callers.owner.post(path, {**fields, "precision": "int8"}), 400, field="precision")
    assert_refused(callers.owner.post(path, {**fields, "encoder": ENCODER}), 400, field="query_prompt")


def test_index_with_only_a_name_gets_the_default_encoder(callers: Callers, fruit: Collection, settings: Any) -> None:
    settings.BENCHBENCH_DEFAULT_MODEL = "ours/default"
    path = f"/collections/{fruit.pk}/indexes"
    assert callers.owner.post(path, {"name": "n"}).json()["encoder"] == "ours/default"
    assert callers.owner.get("/indexes/options").json()["encoders"][0] == "ours/default"
    assert callers.owner.post(path, {"name": "n", "encoder": ""}).json()["encoder"] == ""


def test_index_with_an_unknown_strategy_is_not_built(callers: Callers, fruit: Collection) -> None:
    made_of = Ingredients("no_such", {}, ENCODER)
    index = create_failed_index(fruit, made_of, name="none", reason="No.", owner=callers.owner.user)
    refused = callers.owner.post(f"/indexes/{index.pk}/build")
    lacking = 'The index "none" is not available here: the strategy no_such is unknown; choose one of '
    assert_refused(refused, 409, "not_here", f"{lacking}{', '.join(STRATEGIES)}.")
    assert callers.owner.get(f"/indexes/{index.pk}").json()["status"] == "failed"
    answer = callers.owner.post(f"/collections/{fruit.pk}/indexes", {"name": "n", "strategy": "no_such"})
    assert_refused(answer, 400, field="strategy")


def test_build_is_an_operation_that_ends_with_stats(callers: Callers, index: Index) -> None:
    started = checked_json(callers.owner.post(f"/indexes/{index.pk}/build"), 202)
    operation = Operation.objects.get()
    assert started == {"id": str(index.pk), "status": "indexing", "operation_uuid": str(operation.pk)}
    assert_refused(callers.owner.post(f"/indexes/{index.pk}/build"), 409, "operation_active")
    assert callers.owner.delete(f"/indexes/{index.pk}").status_code == 409
    wait(operation)
    facts = callers.owner.get(f"/indexes/{index.pk}").json()
    assert (facts["status"], facts["operation_uuid"], facts["dimension"]) == ("ready", str(operation.pk), 3)
    assert (facts["stats"]["num_documents"], facts["stats"]["num_vectors"]) == (2, 2)
    assert_refused(callers.owner.post(f"/indexes/{index.pk}/build"), 409, "conflict", "never changes")


def test_a_model_that_is_not_here_is_refused(callers: Callers, fruit: Collection) -> None:
    index = create_index(fruit, name="none", encoder="no-such/model", owner=callers.owner.user)
    answer = callers.owner.post(f"/indexes/{index.pk}/build")
    assert_refused(answer, 409, "not_here", "'no-such/model' is not on this machine")
    assert not Operation.objects.exists()


def test_a_build_that_failed_says_why_and_goes_on(callers: Callers, fruit: Collection, tmp_path: Path) -> None:
    index = create_index(fruit, name="none", encoder=str(tmp_path), owner=callers.owner.user)
    callers.owner.post(f"/indexes/{index.pk}/build")
    with pytest.raises(OperationFailedError):
        wait(Operation.objects.get())
    facts = callers.owner.get(f"/indexes/{index.pk}").json()
    assert (facts["status"], facts["stats"]) == ("failed", None)
    assert "could not be loaded" in facts["error"]
    assert callers.owner.post(f"/indexes/{index.pk}/build").status_code == 202


@pytest.mark.parametrize(
    ("declared", "field", "message"),
    [
        ({"name": "a\nb"}, "name", "printable"),
        ({"name": "n", "encoder": "", "lexical": False}, None, "needs an encoder or BM25"),
        ({"name": "n", "store": "faiss"}, "store", 'as in "ann": ["faiss:hnsw"]'),
        ({"name": "n", "chunk_parameters": {"size": "big"}}, "chunk_parameters", "Chunk parameters must be"),
        ({"name": "n", "chunk_parameters": {"size": 100, "overlap": 60}}, "chunk_overlap", "less than half the size"),
        ({"name": "n", "chunk_parameters": {"size": 10**299, "overlap": 10**299}}, "chunk_overlap", "half the size"),
    ],
)
def test_invalid_index_is_rejected_at_its_field(
    callers: Callers, fruit: Collection, declared: Any, field: str | None, message: str
) -> None:
    assert_refused(callers.owner.post(f"/collections/{fruit.pk}/indexes", declared), 400, message=message, field=field)
    assert not Index.objects.exists()


def test_encoder_paths_on_the_server_are_rejected(callers: Callers, fruit: Collection) -> None:
    for encoder in ("/etc", "~/model", "./model", "../model", "a/b/c", "https://x.org/m", "file:m", "a b"):
        answer = callers.owner.post(f"/collections/{fruit.pk}/indexes", {"name": "n", "encoder": encoder})
        assert_refused(answer, 400, message="Only commands accept a folder of the server")


def test_options_list_the_available_choices(callers: Callers, index: Index, settings: Any) -> None:
    settings.BENCHBENCH_DEFAULT_MODEL = "default/model"
    create_index(index.collection, name="theirs", encoder="keyword:secret", owner=callers.other.user)
    wait(build_index(index))
    create_index(index.collection, name="never built", encoder="mistyped/model", owner=callers.owner.user)
    facts = callers.owner.get("/indexes/options").json()
    assert facts == {
        "encoders": ["default/model", ENCODER],
        "strategies": list(STRATEGIES),
        "stores": [store for store in STORES if not describe_missing({"store": store})],
        "search_modes": ["dense", "sparse", "hybrid", "engine", "engine+dense", "engine+sparse"],
        "lexical": ["bm25", "fts"],
        "fusions": ["rrf", "weighted"],
        "rerankers": ["late-interaction"],
        "engines": [],
    }


def test_without_documents_there_is_nothing_to_index(callers: Callers) -> None:
    stub = create_collection("stub", owner=callers.owner.user, kind=Collection.Kind.EXTERNAL)
    for collection in (owned_collection(callers.owner, "empty"), stub):
        assert_refused(callers.owner.post(f"/collections/{collection.pk}/indexes", {"name": "n"}), 409, "indexing")


def test_only_unused_indexes_can_be_deleted(callers: Callers, fruit: Collection, index: Index) -> None:
    benchmark = make_benchmark(make_mapping(make_dataset(), fruit), [0.5])
    benchmark.runs.update(index=index)
    assert_refused(callers.owner.delete(f"/indexes/{index.pk}"), 409, "conflict")
    benchmark.runs.update(index=None)
    assert callers.owner.delete(f"/indexes/{index.pk}").status_code == 204
    assert callers.owner.get(f"/indexes/{index.pk}").status_code == 404


ENCODERS = ["keyword:apple", "keyword:apple,plum"]
GRID: dict[str, Any] = {
    "strategies": [{"strategy": "flat"}, {"strategy": "lod_embed", "chunk_parameters": {"doc_top_k": 2}}],
    "encoders": ENCODERS,
}


def test_it_is_planned_and_then_made(callers: Callers, fruit: Collection) -> None:
    path = f"/collections/{fruit.pk}/indexes/grid"
    cells = checked_json(callers.owner.post(f"{path}/preview", GRID), 200)["indexes"]
    assert cells[2] == {
        "name": f"lod_embed 500/50 doc_top_k=2 · {ENCODERS[0]}",
        "state": "new",
        "strategy": "lod_embed",
        "chunk_parameters": {"size": 500, "overlap": 50, "doc_top_k": 2, "section_top_k": 10},
        "encoder": ENCODERS[0],
        "llm": "",
        "llm_parameters": {},
        "query_prompt": None,
        "document_prompt": None,
        "precision": "float32",
        "index": None,
        "error": None,
    }
    assert not Index.objects.exists()
    facts = checked_json(callers.owner.post(path, GRID), 202)["indexes"]
    assert [row["name"] for row in facts] == [cell["name"] for cell in cells]
    assert {row["status"] for row in facts} == {"indexing"}
    assert {row["operation_uuid"] for row in facts} == {
        str(pk) for pk in Operation.objects.values_list("pk", flat=True)
    }
    remote = callers.owner.post(f"{path}/preview", GRID).json()["indexes"]
    assert [(cell["state"], cell["index"]) for cell in remote] == [("begun", row["id"]) for row in facts]
    assert Index.objects.filter(owner=callers.owner.user).count() == 4


def test_encoders_have_prompts_and_a_precision(callers: Callers, fruit: Collection) -> None:
    encoder = {"encoder": "some/model", "query_prompt": "query: ", "precision": "bfloat16"}
    body = {"strategies": [{"strategy": "flat"}], "encoders": [encoder, "some/model"]}
    with_prompt, plain = checked_json(callers.owner.post(f"/collections/{fruit.pk}/indexes/grid/preview", body), 200)[
        "indexes"
    ]
    assert [with_prompt[key] for key in ("query_prompt", "document_prompt", "precision")] == [
        "query: ",
        None,
        "bfloat16",
    ]
    assert (plain["query_prompt"], plain["precision"]) == (None, "float32")
    assert with_prompt["name"] != plain["name"]


@pytest.mark.parametrize(
    ("declared", "status", "message"),
    [
        ({"encoders": [{"encoder": ENCODERS[0], "precision": "int4"}]}, 400, "not a valid choice"),
        ({"encoders": [{"encoder": ENCODERS[0], "prompt": "x"}]}, 400, "prompt"),
        ({"encoders": [7]}, 400, "encoders"),
        ({"encoders": ["/models/e5"]}, 400, "must be a model name such as"),
        ({"encoders": [""]}, 400, "needs an encoder"),
        ({"strategies": [{"strategy": "flat", "chunk_parameters": {"size": "x"}}]}, 400, "Chunk parameters must be"),
        ({"strategies": [{"strategy": "lod_llm"}]}, 409, "No index was created"),
    ],
)
def test_invalid_grid_creates_no_index(
    callers: Callers, fruit: Collection, declared: dict[str, Any], status: int, message: str
) -> None:
    answer = callers.owner.post(f"/collections/{fruit.pk}/indexes/grid", GRID | declared)
    assert (answer.status_code, message in answer.content.decode()) == (status, True), answer.content
    assert not Index.objects.exists()
