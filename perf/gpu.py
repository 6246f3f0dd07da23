"""Encoding, exact search and reranking on a CUDA device: each against the bare torch call, and against the device.

The bare call has its inputs on the device already: tokens that are padded as ours are, or vectors and queries. Ours
takes texts or arrays, and returns arrays; vectors stay on the device between searches, or are copied each time. The
device's peak is what a large product of float32 matrices reaches here, and a copy on the device; a share of it counts
only the operations of the bare call. At the end rankings of the device are held against those of the CPU, bit by bit.
Where there is no device it says so and measures nothing.

python perf/gpu.py
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

if not torch.cuda.is_available():
    print("This machine has no CUDA device that torch can use, so nothing is measured: run this on one that has.")
    sys.exit()

import throwaway

throwaway.open_site()

import numpy as np
from torch.utils.flop_counter import FlopCounterMode

from apps.retrieval.encoders import load_encoder
from apps.retrieval.encoders.base import GPU_TOKENS, batch_by_length
from apps.retrieval.encoders.gpu_memory import Budget
from apps.retrieval.encoders.model_files import find_model
from apps.retrieval.encoders.registry import SentenceTransformerEncoder
from apps.retrieval.rerankers.cross_encoder import CrossEncoderReranker
from apps.retrieval.search import exact

TEXTS, PAIR_QUERIES, PAIR_TEXTS, LAYERS = 20_000, 20, 100, 12
QUERIES, DIMENSION, DEPTH, SIZES = 300, 384, 100, (5_000, 100_000, 1_000_000)
ROUNDS = 7
WORDS = [
    "the",
    "of",
    "vector",
    "search",
    "index",
    "query",
    "ranks",
    "model",
    "measures",
    "recall",
    "precision",
    "language",
]


def timed(act: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    act()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def side_by_side(
    ours: Callable[[], object], bare: Callable[[], object], *, rounds: int = ROUNDS
) -> tuple[float, float]:
    """Return the median seconds of both, taken in turn, after a first round that warms up."""
    pairs = [(timed(ours), timed(bare)) for _ in range(rounds + 1)][1:]
    first, second = zip(*pairs, strict=True)
    return statistics.median(first), statistics.median(second)


def peaks() -> tuple[float, float]:
    """Return the operations of float32 products and the bytes, read and written, that the device does in a second."""
    square = torch.randn(8192, 8192, device="cuda")
    product = statistics.median(timed(lambda: square @ square) for _ in range(ROUNDS))
    large = torch.empty(2**30, device="cuda")  # 4 GiB
    other = torch.empty_like(large)
    copy = statistics.median(timed(lambda: other.copy_(large)) for _ in range(ROUNDS))
    return 2 * 8192**3 / product, 2 * large.nbytes / copy


def operations(act: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        act()
    return counter.get_total_flops()


def row(what: str, units: int, ours: float, bare: float, flops: float, peak: float) -> None:
    print(
        f"{what:<42} {units / ours:>12,.0f} {units / bare:>12,.0f} {bare / ours:>8.2f} {flops / ours / peak:>8.1%} "
        f"{flops / bare / peak:>8.1%}"
    )


def texts(count: int) -> list[str]:
    """Texts of 20 to 180 words."""
    draw = np.random.default_rng(3)
    return [" ".join(draw.choice(WORDS, draw.integers(20, 180))) for _ in range(count)]


def measure_encoding(peak: float) -> None:
    encoder = load_encoder("all-MiniLM-L6-v2")
    assert isinstance(encoder, SentenceTransformerEncoder)
    model: Any = encoder._model
    some = texts(TEXTS)
    assert encoder.budget is not None
    batches = list(batch_by_length(some, window=model.max_seq_length, budget=encoder.budget))
    features = [to_device(model.preprocess([some[number] for number in chosen])) for chosen in batches]

    def bare() -> None:
        with torch.inference_mode():
            for one in features:
                model(dict(one))

    ours, theirs = side_by_side(lambda: encoder.embed_batch(some), bare, rounds=3)
    what = f"encoding, all-MiniLM-L6-v2, {len(batches)} batches"
    row(what, TEXTS, ours, theirs, operations(bare), peak)
    tell_budget(encoder.budget)


def tell_budget(budget: Budget) -> None:
    if budget.size < GPU_TOKENS:
        print(f"{'':<4}memory was short: batches ended at {budget.size:,} of {GPU_TOKENS:,} tokens")


def to_device(features: Any) -> dict[str, Any]:
    return {name: value.cuda() if hasattr(value, "cuda") else value for name, value in features.items()}


def measure_search(size: int, peak: float) -> None:
    vectors, queries = unit(size, 2), unit(QUERIES, 1)
    matrix, asked = torch.from_numpy(vectors).cuda(), torch.from_numpy(queries).cuda()
    copied = vectors[:]
    vectors.flags.writeable = False  # so they stay on the device, where `copied` may not

    def bare() -> object:
        return (asked @ matrix.T).topk(DEPTH)

    ours, theirs = side_by_side(lambda: exact.find_nearest(vectors, queries, DEPTH), bare)
    row(f"exact search, {size:,} × {DIMENSION}, depth {DEPTH}", QUERIES, ours, theirs, 2 * vectors.size * QUERIES, peak)
    ours, theirs = side_by_side(lambda: exact.find_nearest(copied, queries, DEPTH), bare)
    row("    copied each time", QUERIES, ours, theirs, 2 * vectors.size * QUERIES, peak)
    on_gpu = exact.find_nearest(vectors, queries, DEPTH)
    chosen, exact.find_gpu = exact.find_gpu, lambda: None
    same = on_gpu == exact.find_nearest(vectors, queries, DEPTH)
    exact.find_gpu = chosen
    print(f"{'':<4}rankings and scores are {'bit-equal to' if same else 'NOT THOSE OF'} the CPU's")


def unit(rows: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((rows, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def cross_encoder(folder: str) -> CrossEncoderReranker:
    """One of the size of ms-marco-MiniLM-L-12-v2, with random weights, over the vocabulary of all-MiniLM-L6-v2."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(str(find_model("all-MiniLM-L6-v2")))
    tokenizer.model_max_length = 512
    config = BertConfig(  # type: ignore[call-arg]  # of its base class
        vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=LAYERS, num_attention_heads=12,
        intermediate_size=1536, num_labels=1,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return CrossEncoderReranker(folder)


def measure_reranking(peak: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reranker = cross_encoder(folder)
    model: Any = reranker._model
    some, queries = texts(PAIR_TEXTS), texts(PAIR_QUERIES)
    assert reranker.budget is not None
    features = [
        to_device(model.preprocess([(query, some[number]) for number in chosen]))
        for query in queries
        for chosen in batch_by_length(
            [f"{query} {text}" for text in some], window=model.max_seq_length, budget=reranker.budget
        )
    ]

    def bare() -> None:
        with torch.inference_mode():
            for one in features:
                model(dict(one))

    ours, theirs = side_by_side(lambda: [reranker.score(query, some) for query in queries], bare, rounds=3)
    row(f"reranking, {LAYERS} layers × 384", PAIR_QUERIES * PAIR_TEXTS, ours, theirs, operations(bare), peak)
    tell_budget(reranker.budget)


def main() -> None:
    torch.manual_seed(1)
    products, bytes_a_second = peaks()
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}: float32 products {products / 1e12:.1f} TFLOP/s, "
        f"copies {bytes_a_second / 1e12:.2f} TB/s; medians, side by side"
    )
    print(f"{'':<42} {'ours a s':>12} {'bare a s':>12} {'of bare':>8} {'of peak':>8} {'bare':>8}")
    measure_encoding(products)
    for size in SIZES:
        measure_search(size, products)
    measure_reranking(products)


if __name__ == "__main__":
    main()
