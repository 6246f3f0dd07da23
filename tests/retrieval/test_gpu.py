"""What a CUDA device makes, held against what the CPU makes. `pytest -m gpu` runs these where there is one."""

import numpy as np
import pytest
import torch

from apps.retrieval.encoders import gpu_memory, load_encoder
from apps.retrieval.encoders.gpu_memory import Budget
from apps.retrieval.encoders.model_files import load_model
from apps.retrieval.rerankers.cross_encoder import CrossEncoderReranker
from apps.retrieval.search import exact
from apps.retrieval.search.exact import find_nearest
from benchbench.ir.ranking import RankingError
from tests.retrieval.random_vectors import unit
from tests.tiny_models import save_cross_encoder

pytestmark = pytest.mark.gpu

TEXTS = ["The apple is red.", "A dog barks in the tree.", "", "pear " * 100, "The plum tastes sweet."] * 20


@pytest.fixture
def precision():
    before = torch.get_float32_matmul_precision()
    yield torch.set_float32_matmul_precision
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("bytes_at_once", [4 * 64 * 700, exact.BUDGET.size])
@pytest.mark.parametrize("is_resident", [False, True])
def test_exact_rankings_on_gpu_and_cpu_are_bit_identical(monkeypatch, bytes_at_once, is_resident):
    monkeypatch.setattr(exact.BUDGET, "size", bytes_at_once)
    vectors, queries = unit(20_000, 384), unit(64, 384, seed=1)
    vectors[10_000:15_000] = vectors[:5_000]  # ties
    vectors[15_000:] = vectors[:5_000] + 1e-8 * unit(5_000, 384, seed=2)  # nearly ties
    vectors.flags.writeable = not is_resident
    mask = np.arange(len(vectors)) % 3 > 0
    assert exact.find_gpu() == "cuda"
    for options in ({}, {"mask": mask}):
        on_gpu = find_nearest(vectors, queries, 100, **options)
        assert ((id(vectors), "cuda") in gpu_memory._resident) == is_resident
        with monkeypatch.context() as without:
            without.setattr(exact, "find_gpu", lambda: None)
            assert on_gpu == find_nearest(vectors, queries, 100, **options)


@pytest.mark.parametrize("reduced", ["high", "medium"])
def test_a_gpu_that_rounds_its_products_searches_nothing(precision, reduced):
    precision(reduced)
    assert exact.find_gpu() is None


def test_real_exhaustion_halves_blocks_and_drops_resident_vectors(monkeypatch):
    monkeypatch.setattr(exact, "BUDGET", Budget("Exact search", 2**40))  # its blocks would be terabytes
    vectors, queries = unit(200_000, 64), unit(200, 64, seed=1)
    vectors.flags.writeable = False
    expected = find_nearest(vectors, queries, 10)
    gpu_memory.release_memory()
    taken = torch.empty(torch.cuda.mem_get_info()[0] - 2**27, dtype=torch.uint8, device="cuda")
    try:
        assert find_nearest(vectors, queries, 10) == expected
    finally:
        del taken
        gpu_memory.release_memory()
    assert exact.BUDGET.size < 2**40


def test_vectors_of_large_and_small_batches_nearly_agree(monkeypatch):
    encoder = load_encoder("all-MiniLM-L6-v2")
    texts = [f"The apple {number} is red." for number in range(5_000)]
    together = encoder.embed_batch(texts)
    monkeypatch.setattr(encoder, "budget", Budget("all-MiniLM-L6-v2", 200))
    assert np.sum(encoder.embed_batch(texts) * together, axis=1).min() > 0.99999


def test_nan_vectors_are_rejected():
    vectors = unit(50)
    vectors[7] = np.nan
    with pytest.raises(RankingError, match="not a number"):
        find_nearest(vectors, unit(2, seed=1), 5, device="cuda")


def test_encoder_vectors_nearly_match_those_of_the_cpu():
    name = "all-MiniLM-L6-v2"
    encoder = load_encoder(name)
    assert encoder.device.startswith("cuda")
    on_cpu, _ = load_model("SentenceTransformer", name, device="cpu")
    vectors = encoder.embed_batch(TEXTS)
    remaining = on_cpu.encode_document(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.sum(vectors * remaining, axis=1).min() > 0.99999


def test_cross_encoder_scores_nearly_match_those_of_the_cpu(tmp_path):
    folder = str(save_cross_encoder(tmp_path / "cross"))
    on_gpu, on_cpu = CrossEncoderReranker(folder), CrossEncoderReranker(folder, device="cpu")
    assert on_gpu.device.startswith("cuda")
    assert on_gpu.revision == on_cpu.revision
    scores = on_gpu.score("Is the apple sweet", TEXTS).scores
    assert scores == pytest.approx(on_cpu.score("Is the apple sweet", TEXTS).scores, abs=1e-4)
