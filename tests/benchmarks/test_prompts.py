"""Prompts of encoders through commands, forms, experiments and runs: what was read without one is warned of."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.experiments.experiments import plan_experiment
from apps.retrieval.indexing import create_index
from apps.retrieval.models import Index
from benchbench.files.experiment import read_experiment
from tests.benchmarks.laboratory import make_folder, write
from tests.commands import output_of
from tests.created import build, run_benchmark
from tests.library import make_library
from tests.tiny_models import save_encoder

PROMPTS = {"query_prompt": "query: ", "document_prompt": "passage: "}


@pytest.fixture
def e5(tmp_path: Path) -> str:
    """A model that its folder names as one of the family E5, whose configuration has no prompts."""
    return str(save_encoder(tmp_path / "e5-tiny"))


@pytest.mark.django_db(transaction=True)
def test_runs_without_the_prompts_of_a_model_are_warned(e5: str, admin_client: Client) -> None:
    mapping = make_library(documents=6, queries=2)
    build(create_index(mapping.collection, name="bare", encoder=e5))
    build(create_index(mapping.collection, name="prompted", encoder=e5, **PROMPTS))
    benchmark = run_benchmark(
        mapping, name="prompts", matrix={"indexes": ["bare", "prompted"], "search_modes": ["dense", "sparse"]}
    )
    warned = {
        (run.configuration.index, run.configuration.search_mode): [one for one in run.warnings if "prompt" in one]
        for run in benchmark.runs.all()
    }
    (sentence,) = warned.pop(("bare", "dense"))
    assert 'build a version of the index with query_prompt "query: " and document_prompt "passage: "' in sentence
    assert set(map(len, warned.values())) == {0}
    run = benchmark.runs.get(config__index="bare", config__search_mode="dense")
    page = admin_client.get(reverse("admin:benchmarks_run_change", args=[run.pk])).content.decode()
    assert "was trained with prompts and read queries and documents without one" in page
    index = admin_client.get(reverse("admin:retrieval_index_change", args=[run.index_id])).content.decode()
    assert "was trained with prompts" in index


@pytest.mark.django_db
def test_form_and_command_keep_the_blank_at_the_end(admin_client: Client) -> None:
    collection = make_library(documents=2, queries=1).collection
    fields = {"collection": collection.pk, "name": "form", "encoder": "all-MiniLM-L6-v2", "strategy": "flat"}
    admin_client.post(reverse("admin:retrieval_index_add"), {**fields, **PROMPTS, "precision": "mixed"})
    output_of(
        *("build_index", collection.name, "--name", "command", "--encoder", "all-MiniLM-L6-v2"),
        *("--query-prompt", "query: ", "--document-prompt", "", "--precision", "bfloat16"),
    )
    names = ("query_prompt", "document_prompt", "precision")
    assert list(Index.objects.filter(name__in=("form", "command")).order_by("-name").values_list(*names)) == [
        ("query: ", "passage: ", "mixed"),
        ("query: ", "", "bfloat16"),
    ]


@pytest.mark.django_db
def test_an_experiment_compares_a_model_with_and_without_prompts(tmp_path: Path) -> None:
    make_folder(tmp_path)
    embeddings: list[dict[str, Any]] = [{"model": "all-MiniLM-L6-v2"}, {"model": "all-MiniLM-L6-v2", **PROMPTS}]
    path = write(tmp_path, embeddings=embeddings)
    plain, prompted = plan_experiment(path).combinations
    assert plain.ingredients.encoder_parameters.list_changes() == {}
    assert prompted.ingredients.encoder_parameters.list_changes() == PROMPTS
    assert plain.name != prompted.name
    written = read_experiment(path).as_dict()["embeddings"]
    assert written == [{**one, "provider": "sbert"} for one in embeddings]
