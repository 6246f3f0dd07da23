"""The forms of indexes and their previews: what is sent, what is built, what would be, and what is refused."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from benchbench.site.panels import change_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.library import ENCODER
from tests.retrieval.llm_server import llm_server
from tests.site import BENCHMARK_FORM


def test_an_index_is_built_from_the_form(transactional_db: None, admin_client: Client) -> None:
    collection = make_collection("library", [{"title": "apple", "text": "apple pear"}])
    page = admin_client.get(reverse("admin:retrieval_index_add"), {"collection": collection.pk})
    assert collection.name in page.content.decode()
    fields = {"collection": collection.pk, "name": "keywords", "encoder": ENCODER, "lexical": "on"}
    response = admin_client.post(reverse("admin:retrieval_index_add"), fields, follow=True)
    operation = Operation.objects.get()
    assert reverse("admin:operation_progress", args=[operation.pk]) in response.content.decode()
    assert "Cancel" in response.content.decode()
    wait(operation)
    index = Index.objects.get()
    assert index.status == Index.Status.READY
    assert "data-live" not in admin_client.get(change_url(index)).content.decode()


@pytest.fixture
def local_llm(settings: Any) -> Iterator[None]:
    """A server of a language model that answers."""
    with llm_server() as server:
        settings.BENCHBENCH_LLM_SERVERS = [f"here=ollama+{server.url}"]
        yield


def test_the_form_of_an_index_states_a_strategy(transactional_db: None, admin_client: Client, local_llm: None) -> None:
    collection = make_collection("library", [{"title": "apple", "text": "apple pear"}])
    fields = {"collection": collection.pk, "encoder": ENCODER, "strategy": "lod_embed", "section_top_k": "3"}
    admin_client.post(reverse("admin:retrieval_index_add"), {**fields, "name": "lod"})
    cut = {**fields, "strategy": "flat", "section_top_k": "", "size": "50", "by_section": "on"}
    admin_client.post(reverse("admin:retrieval_index_add"), {**cut, "name": "flat"})
    response = admin_client.post(reverse("admin:retrieval_index_add"), {**cut, "name": "no", "size": ""})
    assert "set a chunk size" in str(response.context["form"].errors)
    requests = {**fields, "strategy": "lod_llm", "llm": "llama3", "llm_server": "here"}
    misplaced = admin_client.post(
        reverse("admin:retrieval_index_add"), {**cut, **requests, "strategy": "flat", "name": "a"}
    )
    assert "uses no language model" in str(misplaced.context["form"].errors["llm"])
    admin_client.post(reverse("admin:retrieval_index_add"), {**requests, "name": "asked"})
    page = admin_client.get(change_url(Index.objects.get(name="asked"))).content.decode()
    assert "llama3 on here, temperature 0.0" in page
    assert "the best 5 documents, then their best 3 sections" in page
    lod, flat = Index.objects.exclude(name="asked").order_by("-name")
    assert (lod.strategy, flat.strategy) == ("lod_embed", "flat")
    assert lod.chunk_parameters == {"size": 500, "overlap": 50, "doc_top_k": 5, "section_top_k": 3}
    assert flat.chunk_parameters == {"size": 50, "overlap": 0, "title": False, "sections": True}


def test_several_indexes_are_built_from_one_form(transactional_db: None, admin_client: Client) -> None:
    collection = make_collection("library", [{"title": "apple", "text": "apple pear"}])
    fields = {
        "collection": collection.pk,
        "strategies": "flat\n\nlod_embed(size=40, overlap=0)\n",
        "encoders": f"{ENCODER}\nkeyword:fig",
        "lexical": "on",
    }
    page = admin_client.post(reverse("admin:index_grid_preview"), fields).content.decode()
    assert page.count("will be created") == 4
    response = admin_client.post(reverse("admin:index_grid"), fields)
    assert response.url == change_url(collection)
    assert {index.name for index in Index.objects.all()} == {
        f"{strategy} · {encoder}"
        for strategy in ("flat", "lod_embed 40/0")
        for encoder in (f"{ENCODER[:59]}…", "keyword:fig")
    }
    assert Operation.objects.count() == 4
    page = admin_client.post(reverse("admin:index_grid_preview"), fields).content.decode()
    assert (page.count("will be created"), page.count("still to be built")) == (0, 4)
    for index, status in zip(Index.objects.all(), ("failed", "cancelled"), strict=False):
        Index.objects.filter(pk=index.pk).update(status=status)
    page = admin_client.post(reverse("admin:index_grid_preview"), fields).content.decode()
    for message in ("failed before, will be built again", "was cancelled, will be built again"):
        assert page.count(message) == 1
    assert page.count("still to be built") == 2


def test_index_grid_form_shows_its_errors(client_of_ada: Client) -> None:
    collection = make_collection("library", [{"title": "apple"}])
    fields = {"collection": collection.pk, "strategies": "flat\nlod_embed", "lexical": "on"}
    response = client_of_ada.post(reverse("admin:index_grid"), fields)
    assert "needs an encoder, because lod_embed searches by vectors" in str(response.context["form"].errors)
    assert (
        "is not a strategy"
        in client_of_ada.post(reverse("admin:index_grid_preview"), {**fields, "strategies": "flat("}).content.decode()
    )
    assert not Index.objects.exists()


def test_the_form_of_an_index_states_a_tree(transactional_db: None, admin_client: Client, local_llm: None) -> None:
    collection = make_collection("library", [{"title": "apple", "text": "apple pear"}])
    fields = {"collection": collection.pk, "encoder": ENCODER, "llm_server": "here", "max_layers": "2"}
    add = reverse("admin:retrieval_index_add")
    admin_client.post(add, {**fields, "name": "plain", "strategy": "raptor_extractive"})
    admin_client.post(add, {**fields, "name": "asked", "strategy": "raptor", "llm": "llama3", "search": "tree"})
    nameless = admin_client.post(add, {**fields, "name": "no", "strategy": "raptor"})
    assert "needs a language model: name one" in str(nameless.context["form"].errors)
    requested, plain = Index.objects.order_by("name")
    assert (requested.llm, requested.chunk_parameters["search"], requested.chunk_parameters["max_layers"]) == (
        "llama3",
        "tree",
        2,
    )
    assert (plain.llm, plain.chunk_parameters["search"], plain.chunk_parameters["size"]) == ("", "collapsed", 500)
    assert "the best 5 summaries of each layer" in admin_client.get(change_url(requested)).content.decode()


def test_index_without_any_search_method_is_refused(client_of_ada: Client) -> None:
    collection = make_collection("library", [{"title": "apple"}])
    response = client_of_ada.post(reverse("admin:retrieval_index_add"), {"collection": collection.pk, "name": "none"})
    assert "needs an encoder" in str(response.context["form"].errors)
    assert not Index.objects.exists()


@pytest.mark.parametrize("name", ["/etc", "~/model", "./model", "../model", "a/b/c", "https://x.org/m", "a b"])
def test_a_folder_of_the_server_is_no_model(
    transactional_db: None, admin_client: Client, library: Mapping, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_dir = Path.is_dir

    def is_other_dir(path: Path) -> bool:
        assert str(path) not in (name, str(Path(name).expanduser())), "it was looked for"
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", is_other_dir)
    Index.objects.all().delete()
    fields = {"collection": library.collection.pk, "name": "a", "encoder": name, "encoders": name, "strategies": "flat"}
    for page in ("retrieval_index_add", "index_grid"):
        answer = admin_client.post(reverse(f"admin:{page}"), fields)
        assert answer.status_code == 200
        text = answer.content.decode()
        assert "Only commands accept a folder of the server" in text or "is unknown" in text
    assert not Index.objects.exists()
    matrix = {"mapping": library.pk, "name": "b", "search_modes": "dense", "use_reranker": "on", "rerankers": name}
    answer = admin_client.post(reverse("admin:benchmarks_benchmark_add"), matrix)
    assert "Only commands accept a folder of the server" in str(answer.context["form"].errors["rerankers"])
    manifest = SimpleUploadedFile("m.json", json.dumps({"matrix": {"rerankers": [name]}}).encode())
    answer = admin_client.post(reverse("admin:benchmark_from_manifest"), {"file": manifest})
    assert "Only commands accept a folder of the server" in str(answer.context["form"].errors["file"])


def test_the_folder_that_is_the_default_is_a_model(
    transactional_db: None, admin_client: Client, settings: Any, tmp_path: Path
) -> None:
    settings.BENCHBENCH_DEFAULT_MODEL = str(tmp_path)
    collection = make_collection("library", [{"title": "apple", "text": "apple pear"}])
    fields = {"collection": collection.pk, "name": "ours", "encoder": str(tmp_path)}
    admin_client.post(reverse("admin:retrieval_index_add"), fields)
    assert Index.objects.get().encoder == str(tmp_path)


PREVIEWS = ("benchmark_preview", "index_grid_preview", "dataset_preview", "evaluation_preview", "run_import_preview")
PREVIEWS += ("collection_preview", "evaluation_documents")
# But for the columns of a table: their next preview is asked for when one is chosen, which gives up the one before.
INPUT = re.compile(r'<(input|select(?! name="(?:corpus_)?column">)|textarea)\b')
TABLE = b"query_key,query_text,uri,grade\nq1,red,u,1\n"
RUN = b"q1 Q0 a 1 0.5 mine\n"


def answer(client: Client, page: str, **fields: Any) -> str:
    response = client.post(reverse(f"admin:{page}"), fields)
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.mark.parametrize("page", PREVIEWS)
def test_no_preview_holds_an_input(admin_client: Client, library: Mapping, page: str) -> None:
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1)]}, name="judged")
    right, wrong = {
        "benchmark_preview": ({"mapping": library.pk, **BENCHMARK_FORM}, {"top_k_values": "many"}),
        "index_grid_preview": (
            {"collection": library.collection.pk, "strategies": "flat\nlod_embed", "encoders": "keyword:apple"},
            {"strategies": "flat(many"},
        ),
        "dataset_preview": ({"file": ("a.csv", TABLE)}, {"columns": "many"}),
        "evaluation_preview": ({"queries": ("a.csv", TABLE)}, {"columns": "many"}),
        "collection_preview": ({"file": ("a.csv", b"id,text\n1,x\n")}, {"columns": "many"}),
        "evaluation_documents": ({"corpus": ("a.csv", b"id,text\n1,x\n")}, {"corpus_column": "many=id"}),
        "run_import_preview": ({"dataset": dataset.pk, "file": ("a.run", RUN)}, {"k": "many", "version": "x"}),
    }[page]
    for fields in ({}, right, right | wrong):
        files = {
            name: SimpleUploadedFile(*supplied) for name, supplied in fields.items() if isinstance(supplied, tuple)
        }
        displayed = answer(admin_client, page, **fields | files)
        assert not INPUT.search(displayed)
        assert not fields or ("bb-note-bad" in displayed) == ("many" in str(fields))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": "a:b"}, "“a:b” is not a pair of numbers"),
        ({"primary_k": "ten"}, "Enter a whole number."),
        ({"mapping": "no id"}, "is not a valid UUID"),
    ],
)
def test_invalid_axes_show_an_error_instead_of_runs(
    admin_client: Client, library: Mapping, changes: dict[str, str], message: str
) -> None:
    fields = {"mapping": library.pk, **BENCHMARK_FORM, **changes}
    displayed = answer(admin_client, "benchmark_preview", **fields)
    assert displayed.count(message) == 1, "at its field"
    assert f'href="#field_{next(iter(changes))}"' in displayed
    assert " runs</strong>" not in displayed


def test_missing_name_is_no_error_in_the_preview(admin_client: Client, library: Mapping) -> None:
    displayed = answer(admin_client, "benchmark_preview", **{"mapping": library.pk, **BENCHMARK_FORM, "name": ""})
    assert "8 runs</strong>" in displayed
    assert "error_name" not in displayed, "what stands there stays"
    displayed = answer(admin_client, "benchmark_preview", **BENCHMARK_FORM)
    assert "Choose a dataset and a collection to count the runs." in displayed


def test_choices_follow_the_field_that_decides_them(
    client_of_ada: Client, ada: User, make_staff: Any, library: Mapping
) -> None:
    indexes = reverse("admin:benchmark_choices")
    assert 'value="keywords"' in client_of_ada.get(indexes, {"mapping": library.pk}).content.decode()
    for nothing in ({}, {"mapping": "x"}):
        assert "keywords" not in client_of_ada.get(indexes, nothing).content.decode()
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1)]}, name="judged")
    stub = make_collection("ids")
    type(stub).objects.update(kind="external")
    theirs = make_benchmark(make_mapping(dataset, stub, name="runs"), [0.5], name="of grace", owner=make_staff("grace"))
    runs = reverse("admin:run_import_choices")
    page = client_of_ada.get(runs, {"dataset": dataset.pk}).content.decode()
    assert "judged v1" in page
    assert "of grace" not in page
    Benchmark.objects.filter(pk=theirs.pk).update(owner=ada)
    assert "of grace" in client_of_ada.get(runs, {"dataset": dataset.pk}).content.decode()
