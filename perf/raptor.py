"""The clusters of a tree over 20,000 chunks of 384 dimensions: time and memory of each layer; or of a whole build.

Vectors are of nested topics. The summariser joins the first sentences of what it is given; a summary's vector is the
mean of those below it, of length 1, so that no model is timed. Memory is the peak of the resident set.

`--build` has the site build an index by raptor_extractive of as many short documents, on a throw-away site, by an
encoder that finds the topics in the texts: chunks, vectors, clusters, summaries and words, all in this process.

python perf/raptor.py [CHUNKS] [--build]
"""

import argparse
import os
import platform
import re
import resource
import time
from collections.abc import Sequence

import numpy as np
import throwaway

from benchbench.ir.chunking import find_first_sentences
from benchbench.ir.trees import find_clusters

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


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class TopicEncoder:
    """A text's vector is the mean of those of the chunks that it names: what `chunks` has at that place."""

    PREFIX = "topics:"
    revision, dimension = "1", DIMENSION

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self._of = chunks(int(model_name.removeprefix(self.PREFIX)))

    def embed_batch(self, texts: Sequence[str], *, kind: str = "document") -> np.ndarray:
        named = ([int(number) for number in re.findall(r"chunk (\d+)", text)] or [0] for text in texts)
        return unit(np.stack([self._of[numbers].mean(axis=0) for numbers in named]))


def build(count: int) -> None:
    """Build the index, and tell what each level took."""
    throwaway.open_site()
    from apps.collections.importing import create_collection, import_documents
    from apps.collections.records import DocumentRecord
    from apps.operations.working import wait
    from apps.retrieval.encoders.registry import ENCODERS
    from apps.retrieval.indexing import build_index, create_index

    ENCODERS[TopicEncoder.PREFIX] = TopicEncoder
    collection = create_collection("topics")
    import_documents(
        collection, (DocumentRecord(f"{n:06}", "", f"This is chunk {n}. " + SENTENCE * 5) for n in range(count))
    )
    before = peak_mb()
    stated = {"strategy": "raptor_extractive", "encoder": f"{TopicEncoder.PREFIX}{count}"}
    started = time.perf_counter()
    index = create_index(collection, name="tree", **stated)
    operation = wait(build_index(index))
    seconds = time.perf_counter() - started
    index.refresh_from_db()
    for batch in operation.batches.filter(payload__part="grow").order_by("ordinal"):
        level = batch.payload["level"]
        made = index.chunk_set.chunks.filter(level=level).count()
        print(f"level {level}: {made:,} summaries; {(batch.finished_at - batch.started_at).total_seconds():.1f} s")
    vectors = index.chunk_set.vector_count
    print(
        f"built of {index.chunk_set.chunk_count:,} chunks: {vectors:,} vectors in {seconds:.1f} s; "
        f"peak {peak_mb():,.0f} MB, {before:,.0f} MB before it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chunks", type=int, nargs="?", default=CHUNKS)
    parser.add_argument("--build", action="store_true", help="a whole build, on a throw-away site")
    stated = parser.parse_args()
    count = stated.chunks
    if stated.build:
        build(count)
        return
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    vectors, texts = chunks(count), [SENTENCE * 6] * count
    for layer in range(1, LAYERS + 1):
        started = time.perf_counter()
        members = find_clusters(vectors, np.array([*map(len, texts)]), limit=CONTEXT, threshold=THRESHOLD, seed=42)
        seconds = time.perf_counter() - started
        sizes = [len(part) for part in members] or [0]
        of = f"{np.mean(sizes):.1f} (at most {max(sizes)})"
        print(
            f"layer {layer}: {len(texts):,} texts, {len(members):,} clusters of {of}, "
            f"each text in {sum(sizes) / len(texts):.2f}; {seconds:.1f} s, peak {peak_mb():,.0f} MB"
        )
        if not members:
            break
        texts = [" ".join(find_first_sentences(texts[row], limit=len(SENTENCE)) for row in part) for part in members]
        vectors = unit(np.stack([vectors[part].mean(axis=0) for part in members]))


if __name__ == "__main__":
    main()
