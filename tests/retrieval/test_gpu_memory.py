"""What becomes of a full GPU, on machines without one: models and products that raise torch's own error."""

import numpy as np
import pytest
import torch

from apps.retrieval.encoders import gpu_memory
from apps.retrieval.encoders.gpu_memory import Budget
from apps.retrieval.encoders.model_files import load_model
from apps.retrieval.encoders.registry import TransformerEncoder
from apps.retrieval.rerankers import cross_encoder
from apps.retrieval.rerankers.cross_encoder import CrossEncoderReranker
from apps.retrieval.search import exact
from apps.retrieval.search.exact import TruncatedView, find_nearest
from benchbench.process import reset_all
from tests.retrieval.random_vectors import unit
from tests.tiny_models import save_cross_encoder, save_encoder

TEXTS = ["apple " * (number % 7) + "pear tree " * (number % 3) for number in range(90)]
CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
MPS = RuntimeError("MPS backend out of memory (MPS allocated: 8.00 GB).")


class Limited:
    """A function of a list that raises `error` above `most` items, and notes how many items each call had."""

    def __init__(self, function, limit, error=CUDA):
        self.function, self.most, self.error = function, limit, error
        self.sizes = []

    def __call__(self, items, *args, **options):
        self.sizes.append(len(items))
        if len(items) > self.most:
            raise self.error
        return self.function(items, *args, **options)

    @property
    def failures(self):
        return sum(size > self.most for size in self.sizes)


@pytest.fixture
def model(tmp_path):
    return load_model("SentenceTransformer", str(save_encoder(tmp_path)), device="cpu")[0]


@pytest.fixture
def encoder(model):
    return TransformerEncoder("tiny", model, "main")


@pytest.fixture
def roomy(monkeypatch):
    monkeypatch.setattr(gpu_memory, "count_free_bytes", lambda device: 2**40)
    yield gpu_memory._resident
    reset_all()


@pytest.mark.parametrize("error", [CUDA, MPS], ids=["cuda", "mps"])
def test_a_full_gpu_halves_batches_and_loses_nothing(encoder, model, monkeypatch, caplog, error):
    expected, (_, expected_tokens) = encoder.embed_batch(TEXTS), encoder.embed_tokens(TEXTS)
    encoder.budget = Budget("tiny", 64 * 10)
    limited = Limited(model.encode_document, 10, error)
    monkeypatch.setattr(model, "encode_document", limited)
    assert encoder.embed_batch(TEXTS) == pytest.approx(expected, abs=1e-5)
    assert sum(size for size in limited.sizes if size <= 10) == len(TEXTS)
    assert limited.failures == caplog.text.count("did not fit in the GPU's memory") > 0
    for _ in range(5):  # a batch of few texts is far below the budget, which takes several halvings
        encoder.embed_batch(TEXTS)
    failures = limited.failures
    _, tokens = encoder.embed_tokens(TEXTS)
    assert limited.failures == failures, "the smaller budget is remembered"
    assert [one.ids.tolist() for one in tokens] == [one.ids.tolist() for one in expected_tokens]


def test_a_text_too_large_for_the_gpu_is_explained(encoder, model, monkeypatch):
    encoder.budget = Budget("tiny", 2**16)
    limited = Limited(model.encode_document, 0)
    monkeypatch.setattr(model, "encode_document", limited)
    with pytest.raises(MemoryError, match="tiny needs more memory than the GPU has free: end other programs") as raised:
        encoder.embed_batch(["apple", "pear"])
    assert limited.sizes == [2, 1]
    assert raised.value.__context__ is None, "a traceback would hold tensors"


def test_other_errors_of_a_model_are_not_tried_again(encoder, model, monkeypatch):
    encoder.budget = Budget("tiny", 2**16)
    limited = Limited(model.encode_document, 0, RuntimeError("a shape is wrong"))
    monkeypatch.setattr(model, "encode_document", limited)
    with pytest.raises(RuntimeError, match="a shape is wrong"):
        encoder.embed_batch(TEXTS)
    assert len(limited.sizes) == 1


def test_pairs_keep_their_scores_when_batches_are_halved(tmp_path, monkeypatch):
    model, revision = load_model("CrossEncoder", str(save_cross_encoder(tmp_path)), device="cpu")
    monkeypatch.setattr(cross_encoder, "load_model", lambda *_, **__: (model, revision))
    reranker = CrossEncoderReranker("tiny", device="cpu")
    expected = reranker.score("Is the apple sweet", TEXTS).scores
    reranker.budget = Budget("tiny", 2**16)
    limited = Limited(model.predict, 7)
    monkeypatch.setattr(model, "predict", limited)
    assert reranker.score("Is the apple sweet", TEXTS).scores == pytest.approx(expected, abs=1e-4)
    assert limited.failures > 0


def test_exact_search_halves_blocks_and_drops_resident_vectors(roomy, monkeypatch):
    vectors, queries = unit(500), unit(40, seed=1)
    vectors[250:] = vectors[:250]  # ties at every rank
    vectors.flags.writeable = False
    expected = find_nearest(vectors, queries, 30)
    limited = Limited(exact.scan_torch, 50)
    monkeypatch.setattr(exact, "scan_torch", limited)
    monkeypatch.setattr(exact, "BUDGET", Budget("Exact search", 2**20))
    second = unit(5)
    second.flags.writeable = False
    gpu_memory.place_vectors(second, "cpu")
    assert find_nearest(vectors, queries, 30, device="cpu") == expected
    assert limited.sizes[:5] == [500, 250, 125, 63, 32]
    assert exact.BUDGET.size == 2**16
    assert (id(second), "cpu") not in roomy


def test_read_only_vectors_stay_until_they_are_deleted(roomy):
    vectors, queries = unit(300), unit(9, seed=1)
    masks = (None, np.arange(300) % 7 == 3, np.arange(300) > 60)  # all, apart, and side by side
    expected = [find_nearest(vectors, queries, 20, mask=mask) for mask in masks]
    assert [find_nearest(vectors, queries, 20, mask=mask, device="cpu") for mask in masks] == expected
    assert not roomy, "they could change"
    vectors.flags.writeable = False
    assert [find_nearest(vectors, queries, 20, mask=mask, device="cpu") for mask in masks] == expected
    (copy,) = roomy.values()
    assert gpu_memory.place_vectors(vectors, "cpu") is copy
    view = TruncatedView(vectors, 8)
    view.find_nearest(queries, 5)
    gpu_memory.place_vectors(view._vectors, "cpu")
    assert len(roomy) == 2
    del vectors, view
    assert not roomy


def test_vectors_larger_than_their_share_stay_outside(monkeypatch):
    vectors = unit(300)
    vectors.flags.writeable = False
    monkeypatch.setattr(gpu_memory, "count_free_bytes", lambda device: vectors.nbytes * 3)
    assert gpu_memory.place_vectors(vectors, "cpu") is vectors
