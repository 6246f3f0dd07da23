"""Chunks longer than a model reads: counted when an index is built, and shown by form, run, pages and API."""

from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.models import Query
from apps.execution.defining.previewing import preview
from apps.records.models import QueryResult, Run
from apps.results.triage.triaging import load_losses
from apps.results.triage.windows import list_beyond_window
from apps.retrieval.deleting import delete_index
from apps.retrieval.encoders import load_encoder
from apps.retrieval.indexing import create_index
from apps.retrieval.models import CutChunk, Index
from benchbench.ir.triage import Loss
from benchbench.site.panels import change_url
from tests.created import build, run_benchmark
from tests.library import make_library
from tests.tiny_models import WINDOW, save_cross_encoder, save_encoder
from tests.unread import import_texts

LONG = "apple " * (WINDOW + 8)  # with two special tokens, 10 more than the model reads


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_encoder(tmp_path))


def test_an_encoder_counts_the_tokens_it_does_not_read(model: str) -> None:
    encoder = load_encoder(model)
    fits = "apple " * (WINDOW - 2)
    assert encoder.count_cut(["", "apple", fits]) is None
    cut = encoder.count_cut([LONG, fits, LONG])
    assert cut is not None
    read = len(fits) - 1  # characters, without the last blank
    assert (cut.window, cut.ends, cut.tokens, cut.cut_tokens) == (WINDOW, {0: read, 2: read}, 2 * (WINDOW + 10), 20)
    assert load_encoder("keyword:apple").count_cut([LONG]) is None


def test_a_letter_may_be_several_tokens(model: str) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_only = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    encoder = load_encoder(model)
    encoder._model[0].processor = PreTrainedTokenizerFast(tokenizer_object=bytes_only, model_max_length=WINDOW)
    khmer = "ក" * (WINDOW // 2)
    cut = encoder.count_cut([khmer])
    assert cut is not None
    assert (cut.tokens, cut.cut_tokens, cut.ends) == (3 * WINDOW // 2, WINDOW // 2, {0: 22})


@pytest.mark.django_db(transaction=True)
def test_cut_chunks_are_named_before_and_after_a_run(model: str, admin_client: Client) -> None:
    mapping = make_library(documents=6, queries=2)
    long = {"encoder": model, "document_prompt": "apple " * (WINDOW - 4)}  # before title, words and special tokens
    index = build(create_index(mapping.collection, name="window", **long))
    again = build(create_index(mapping.collection, name="again", **long))
    assert (again.stats["cache_hits"], again.stats["cut"]) == (6, index.stats["cut"])
    sentence = f"reads {WINDOW} tokens of a text: 6 of 6 chunks are longer, and 7.2 % of their tokens were not read"
    matrix = {"indexes": ["window"], "search_modes": ["dense", "sparse"], "use_reranker": [False, True]}
    assert sentence in " ".join(preview(mapping, matrix).warnings)
    assert preview(mapping, {"indexes": ["window"], "search_modes": ["sparse"]}).warnings == []
    benchmark = run_benchmark(mapping, name="cut", matrix=matrix)
    warned = {
        (run.configuration.search_mode, run.configuration.use_reranker): sentence in " ".join(run.warnings)
        for run in benchmark.runs.all()
    }
    assert warned == {
        ("dense", False): True,
        ("dense", True): True,
        ("sparse", False): False,
        ("sparse", True): True,  # the reranker reads the encoder's tokens
    }
    page = admin_client.get(reverse("admin:retrieval_index_change", args=[index.pk])).content.decode()
    assert "7.2 % of their tokens were not read" in page
    answer = admin_client.get(f"/api/v2/indexes/{index.pk}")
    assert answer.json()["stats"]["cut"]["cut_tokens"] == index.stats["cut"]["cut_tokens"] > 0


@pytest.mark.django_db(transaction=True)
def test_a_passage_beyond_the_window_is_a_cause(model: str, admin_client: Client) -> None:
    long = "cat " * (WINDOW + 8)
    texts = [f"{long} plum", f"plum {long}", *["plum"] * 12]
    mapping = import_texts(texts, ["plum", "dog"], encoder=model)
    matrix = {"search_modes": ["dense", "sparse"], "k_values_for_metrics": [1], "primary_k": 1}
    benchmark = run_benchmark(mapping, name="cut", matrix=matrix)
    index = Index.objects.get()
    assert [*index.cut_chunks.order_by("position").values_list("position", flat=True)] == [0, 1]
    dense, sparse = (benchmark.runs.get(config__search_mode=mode) for mode in ("dense", "sparse"))
    rows = [(1, 0, document.pk, 1) for document in index.collection.documents.order_by("external_id")]
    first, *_ = rows
    assert list_beyond_window(dense, rows, {1: "plum"}) == {(1, first[2]): Loss.BEYOND_WINDOW}
    assert list_beyond_window(dense, rows, {1: "dog"}) == {}
    assert list_beyond_window(sparse, rows, {1: "plum"}) == {}
    losses = load_losses(dense, dense.evaluations.get())
    assert losses is not None
    result = QueryResult.objects.get(run=dense, query__key="q0")
    assert result.document_ids[0] != first[2]
    assert losses.queries[result.query_id].causes == (Loss.BEYOND_WINDOW,)
    assert "begins after what the encoder reads of the chunk" in admin_client.get(change_url(result)).content.decode()


@pytest.mark.django_db(transaction=True)
def test_cut_chunks_go_with_their_index(model: str) -> None:
    mapping = import_texts([LONG, "apple"], ["apple"], encoder=model)
    assert CutChunk.objects.get().position == 0
    delete_index(Index.objects.get())
    assert not CutChunk.objects.exists()
    assert mapping.collection.documents.count() == 2


@pytest.mark.django_db(transaction=True)
def test_queries_that_a_model_cuts_are_named(model: str, admin_client: Client) -> None:
    mapping = import_texts(["apple", "plum"], ["apple", LONG], encoder=model)
    matrix = {"search_modes": ["dense", "sparse"], "use_reranker": [False, True]}
    for name in ("first", "again"):  # whose vectors are in the cache
        warned = {
            (run.configuration.search_mode, run.configuration.use_reranker): [
                sentence.partition(" does not")[0] for sentence in run.warnings if "does not read the end" in sentence
            ]
            for run in run_benchmark(mapping, name=name, matrix=matrix).runs.all()
        }
        assert warned == {
            ("dense", False): ["The encoder"],
            ("dense", True): ["The encoder", "The reranker late-interaction"],
            ("sparse", False): [],
            ("sparse", True): ["The reranker late-interaction"],
        }
    run = Run.objects.filter(config__search_mode="dense").first()
    assert run is not None
    sentence = "The encoder does not read the end of 1 query, such as q1 “apple apple"
    assert sentence in unescape(admin_client.get(change_url(run)).content.decode())
    answer = admin_client.get(f"/api/v2/benchmarks/{run.benchmark_id}/results").json()
    assert sentence in str(answer["runs"][0]["warnings"])


@pytest.mark.django_db(transaction=True)
def test_pairs_that_a_reranker_cuts_are_named(tmp_path: Path) -> None:
    reranker = str(save_cross_encoder(tmp_path / "cross"))
    half = "apple " * (WINDOW // 2)
    mapping = import_texts([half, "plum"], ["apple", half, "plum"])
    matrix = {"search_modes": ["sparse"], "use_reranker": [True], "rerankers": [reranker], "rerank_depths": [1, 100]}
    for run in run_benchmark(mapping, name="cut", matrix=matrix).runs.all():
        (sentence,) = (sentence for sentence in run.warnings if "does not read the end" in sentence)
        assert "of some texts together with 1 query, such as q1 “apple apple" in sentence
        assert reranker not in sentence, "a path is shortened to its last part"
    Query.objects.filter(key="q1").update(text="apple apple")
    for run in run_benchmark(mapping, name="read", matrix=matrix).runs.all():
        assert "does not read the end" not in " ".join(run.warnings)
