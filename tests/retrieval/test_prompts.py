"""Prompts and precision of encoders: spaces of their own, families that need prompts, and a warning without them."""

import numpy as np
import pytest
from django.contrib.auth.models import User

from apps.retrieval.encoders import load_encoder, registry
from apps.retrieval.encoders.encoding import compute_query_vectors, load_index_encoder
from apps.retrieval.encoders.prompts import describe_missing_prompts, find_family, quote
from apps.retrieval.forms import IndexForm
from apps.retrieval.grids import Grid, plan_grid
from apps.retrieval.indexing import IndexingError, create_index
from apps.retrieval.models import VectorSpace
from benchbench.ir.encoding import DEFAULT, EncoderParameters
from tests.files.samples import write_file
from tests.retrieval.opened import KEYWORDS
from tests.tiny_models import save_encoder

TEXTS = ["apple", "the red pear", "dog tree cat " * 4, ""]
PROMPTED = EncoderParameters(query_prompt="red ", document_prompt="green ")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(save_encoder(tmp_path_factory.mktemp("plain")))


@pytest.fixture(scope="module")
def own_prompts(tmp_path_factory):
    return str(save_encoder(tmp_path_factory.mktemp("own"), prompts={"query": "red ", "document": "green "}))


def embed(encoder, kind="document"):
    return encoder.embed_batch(TEXTS, kind=kind)


class TestParameters:
    def test_a_prompt_is_read_before_each_text(self, model):
        encoder, plain = load_encoder(model, PROMPTED), load_encoder(model)
        assert np.array_equal(embed(encoder, "query"), plain.embed_batch([f"red {text}" for text in TEXTS]))
        assert np.array_equal(embed(encoder), plain.embed_batch([f"green {text}" for text in TEXTS]))
        assert not np.array_equal(embed(encoder), embed(plain))
        assert encoder.revision != plain.revision

    def test_prompts_of_the_model_stated_again_change_nothing(self, own_prompts):
        encoder, plain = load_encoder(own_prompts, PROMPTED), load_encoder(own_prompts)
        assert encoder.revision == plain.revision
        assert plain.prompts == {"query": "red ", "document": "green "}
        assert all(np.array_equal(embed(encoder, kind), embed(plain, kind)) for kind in ("query", "document"))

    def test_an_empty_prompt_takes_away_that_of_the_model(self, own_prompts):
        encoder = load_encoder(own_prompts, EncoderParameters("", ""))
        assert encoder.prompts == {"query": "", "document": ""}
        assert np.array_equal(embed(encoder, "query"), embed(encoder, "document"))

    @pytest.mark.parametrize("precision", ["mixed", "bfloat16", "float16"])
    def test_half_precision_gives_unit_vectors_close_to_exact_ones(self, model, precision):
        encoder, exact = load_encoder(model, EncoderParameters(precision=precision)), embed(load_encoder(model))
        assert encoder.revision.endswith(precision)
        for vectors in (embed(encoder), encoder.embed_tokens(TEXTS)[0]):
            assert vectors.dtype == np.float32
            assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)
            assert (vectors * exact).sum(axis=1).min() > 0.99
            assert not np.array_equal(vectors, exact)

    @pytest.mark.parametrize("flag", ["avx512_bf16", "avx512f"])
    @pytest.mark.django_db
    def test_the_form_says_whether_mixed_saves_time_here(self, flag, monkeypatch, tmp_path):
        monkeypatch.setattr(registry, "CPU", write_file(tmp_path / "cpuinfo", f"flags\t: avx2 {flag}\n"))
        words = str(IndexForm(user=User(is_superuser=True)).fields["precision"].help_text)
        assert "Mixed saves a third of the time of encoding" in words
        assert words.endswith("this CPU has it." if flag == "avx512_bf16" else "this CPU has none.")


class TestIndexes:
    pytestmark = pytest.mark.django_db

    def test_each_combination_of_prompts_and_precision_is_another_space(self, fruit, built, model):
        used = [DEFAULT, PROMPTED, EncoderParameters(precision="mixed")]
        indexes = [
            built(
                fruit,
                name=f"index {number}",
                encoder=model,
                query_prompt=parameters.query_prompt,
                document_prompt=parameters.document_prompt,
                precision=parameters.precision,
            )
            for number, parameters in enumerate(used)
        ]
        assert [index.stats["cache_hits"] for index in indexes] == [0, 0, 0]
        assert len({index.encoder_revision for index in indexes}) == len({index.fingerprint for index in indexes}) == 3
        for index, parameters in zip(indexes, used, strict=True):
            (cached,) = compute_query_vectors(index, ["apple"])
            expected = load_encoder(model, parameters).embed_batch(["apple"], kind="query")[0]
            assert np.array_equal(cached.vector, expected)
            assert load_index_encoder(index).prompts == index.prompts
        assert VectorSpace.objects.filter(kind="query").count() == 3

    def test_a_grid_distinguishes_them_by_name(self, fruit, model):
        cells = plan_grid(fruit, Grid([("flat", {})], [(model, DEFAULT), (model, PROMPTED)]))
        assert [cell.state for cell in cells] == ["new", "new"]
        assert ["prompts" in cell.name for cell in cells] == [False, True]

    @pytest.mark.parametrize(
        ("encoder", "parameters", "message"),
        [
            (KEYWORDS, {"query_prompt": "a "}, "Leave out the query_prompt: keyword"),
            ("", {"document_prompt": "a "}, "Leave out the document_prompt: an index without an encoder"),
            ("all-MiniLM-L6-v2", {"precision": "int8"}, '"int8" is not a precision: choose one of float32, mixed'),
            (
                "all-MiniLM-L6-v2",
                {"query_prompt": "a" * 1001},
                "query_prompt must be a text of at most 1,000",
            ),
        ],
    )
    def test_invalid_parameters_are_refused_by_name(self, fruit, encoder, parameters, message):
        with pytest.raises(IndexingError, match=message):
            create_index(fruit, name="wrong", encoder=encoder, **parameters)


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("/models/E5-large", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", ""),
        ("intfloat/e5-mistral-7b-instruct", "Instruct: ", ""),
        ("BAAI/bge-base-en-v1.5", "Represent this sentence", ""),
        ("BAAI/bge-small-zh-v1.5", "为这个句子", ""),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", "Instruct: ", ""),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("mixedbread-ai/mxbai-embed-large-v1", "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", "Represent this sentence", ""),
        ("nomic-ai/modernbert-embed-base", "search_query: ", "search_document: "),
        ("BAAI/bge-multilingual-gemma2", "<instruct>", ""),
        ("BAAI/bge-en-icl", "<instruct>", ""),
        ("mixedbread-ai/deepset-mxbai-embed-de-large-v1", "query: ", "passage: "),
        ("/models/bge_small_en_v1.5", "Represent this sentence", ""),
        ("/models/multilingual_E5_small", "query: ", "passage: "),
        ("/models/arctic-embed-s", "Represent this sentence", ""),
        ("/models/e5", "query: ", "passage: "),
        ("hkunlp/instructor-large", "Represent the question", "Represent the document"),
    ],
)
def test_a_family_that_needs_prompts_is_known(model, query, document):
    family = find_family(model)
    assert family is not None
    assert family.query.startswith(query)
    assert family.document.startswith(document)
    assert bool(family.document) == bool(document)
    warning = describe_missing_prompts(model, {"query": "", "document": ""})
    assert model in warning
    assert f"query_prompt {quote(family.query)}" in warning
    assert describe_missing_prompts(model, {"query": family.query, "document": family.document}) == ""
    documents_alone = describe_missing_prompts(model, {"query": family.query, "document": ""})
    assert ("read documents without one" in documents_alone) == bool(document)
    assert describe_missing_prompts(model, None) == "", "an index of an older version recorded none"


@pytest.mark.parametrize(
    "model",
    [
        *("all-MiniLM-L6-v2", "BAAI/bge-m3", "thenlper/gte-base", "sentence-transformers/multi-qa-mpnet-base-dot-v1"),
        *(KEYWORDS, "", "me/page5-small", "me/instructors"),
    ],
)
def test_other_models_need_none(model):
    assert find_family(model) is None
