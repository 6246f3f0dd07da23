"""The clusters of a tree over 20,000 chunks of 384 dimensions: time and memory of each layer.

Vectors are of nested topics. The summariser joins the first sentences of what it is given; a summary's vector is the
mean of those below it, of length 1, so that no model is timed. Memory is the peak of the resident set.

python perf/raptor.py [CHUNKS]
"""

import argparse
import os
import platform
import resource
import time

import numpy as np

from benchbench.ir.summaries import first_sentences
from benchbench.ir.trees.clustering import clusters

CHUNKS, DIMENSION, TOPICS, PARTS = 20_000, 384, 200, 10
CONTEXT, THRESHOLD, LAYERS = 8_000, 0.1, 3
SENTENCE = "This sentence stands for one that a chunk of five hundred characters begins with. "


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def chunks(count: int) -> np.ndarray:
    """Vectors of `count` chunks: each has a topic, a part of it, and noise."""
    rng = np.random.default_rng(0)
    topics, parts = unit(rng.normal(size=(TOPICS, DIMENSION))), unit(rng.normal(size=(TOPICS * PARTS, DIMENSION)))
    part = rng.integers(0, len(parts), count)
    return unit(topics[part % TOPICS] + 0.7 * parts[part] + rng.normal(size=(count, DIMENSION)) * 0.04)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chunks", type=int, nargs="?", default=CHUNKS)
    count = parser.parse_args().chunks
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    vectors, texts = chunks(count), [SENTENCE * 6] * count
    for layer in range(1, LAYERS + 1):
        started = time.perf_counter()
        members = clusters(vectors, np.array([*map(len, texts)]), most=CONTEXT, threshold=THRESHOLD, seed=42)
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sizes = [len(part) for part in members] or [0]
        of = f"{np.mean(sizes):.1f} (at most {max(sizes)})"
        print(
            f"layer {layer}: {len(texts):,} texts, {len(members):,} clusters of {of}, "
            f"each text in {sum(sizes) / len(texts):.2f}; {seconds:.1f} s, peak {peak:,.0f} MB"
        )
        if not members:
            break
        texts = [" ".join(first_sentences(texts[row], most=len(SENTENCE)) for row in part) for part in members]
        vectors = unit(np.stack([vectors[part].mean(axis=0) for part in members]))


if __name__ == "__main__":
    main()
