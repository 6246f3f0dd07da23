"""Growth of the tree of summaries above the chunks of an index, level by level from the vectors below.

A level is one batch (`grow`), which stores its summaries. Batches that encode them follow, and the last of these adds
the next level. Each answer of a language model is stored at once, so that an interrupted level continues where it
stopped.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from django.db.models import Max
from django.utils import timezone
from numpy.typing import NDArray

from apps.operations.leasing import Lease
from apps.operations.models import MAY_RUN_TWICE, Batch, BatchSpec, Operation
from apps.retrieval.building import IndexingError, cut_ranges, find_missing_positions
from apps.retrieval.chunking import store_pieces
from apps.retrieval.encoders import Encoder
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.llms.asking import ask
from apps.retrieval.llms.clients import has_text
from apps.retrieval.llms.servers import OPTIONS, complete_llm, load_llm
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.search.vectors import load_vectors
from apps.retrieval.strategies import TREES
from apps.retrieval.strategies.base import FIT
from benchbench.ir.records import Positions
from benchbench.reading.objects import StrictRecord, read_as


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBatch(StrictRecord):
    """A step of a build: to chunk, to `encode` the positions from `start` to `end`, to `grow` a level, or lexical."""

    KEYS: ClassVar[Mapping[str, str]] = {"step": "part"}

    IGNORES_OTHERS: ClassVar[bool] = True  # how it is to be run is of the operations

    step: str
    start: int = 0
    end: int = 0
    level: int = 0

    @classmethod
    def from_batch(cls, batch: Batch) -> "IndexBatch":
        return read_as(cls, batch.payload)


Summaries = list[tuple[str, Positions]]  # the text of each, and the positions that it summarises

PART_SECONDS = 600  # after this a level continues in another batch, since batches have a time limit


def describe_models(index: Index, encoder: Encoder | None) -> dict[str, object]:
    """Return the models that determine the chunks of an index, or its tree, with their parameters; empty without."""
    if encoder is None or (index.strategy not in TREES and FIT not in index.chunk_parameters):
        return {}
    models: dict[str, object] = {"encoder": index.encoder, "encoder_revision": encoder.revision}
    if index.strategy in TREES and TREES[index.strategy].requires_llm:
        parameters = complete_llm(index.llm_parameters)
        models |= {"llm": index.llm, "llm_parameters": {name: parameters[name] for name in ("provider", *OPTIONS)}}
        models["llm_revision"] = load_llm(parameters["provider"], index.llm).request_revision()
    return models


def plan_batches(index: Index, operation: Operation) -> list[BatchSpec]:
    """Return the batches that follow once all vectors so far are stored: encoding of new summaries, or the next level.

    Empty while other batches encode, and once the tree is complete. Call it in the transaction that ends a batch.
    """
    encoding = operation.batches.filter(payload__part="encode").exclude(state=Batch.State.DONE)
    if index.strategy not in TREES or encoding.exists():
        return []
    assert index.chunk_set is not None
    chunk_set = ChunkSet.objects.get(pk=index.chunk_set.pk)
    missing = find_missing_positions(index, chunk_set, revision=index.encoder_revision)
    if len(missing):
        size = operation.batches.values_list("result__size", flat=True).get(payload__part="chunk")
        return encode_batches(missing, np.ones(len(missing), bool), size)
    if chunk_set.completed_at is None:
        top = chunk_set.chunks.aggregate(top=Max("level"))["top"] or 0
        return [({"part": "grow", "level": top + 1}, 0)]
    return []


def encode_batches(positions: Positions, new: NDArray[np.bool_], size: int) -> list[BatchSpec]:
    """Return the batches that encode ascending positions, each with at most `size` positions `new` (n,)."""
    spans = cut_ranges(positions, new, size)
    return [({"part": "encode", "start": start, "end": end, MAY_RUN_TWICE: True}, end - start) for start, end in spans]


def grow(index: Index, batch: Batch, lease: Lease) -> None:
    """Create the summaries of one level, unless another index with this chunk set has done so."""
    assert index.chunk_set is not None
    level = IndexBatch.from_batch(batch).level
    started = time.perf_counter()
    cached_ms: list[float] = []
    is_stored = _has_level(index.chunk_set, level)
    summaries: Summaries | None = [] if is_stored else _build_summaries(index, index.chunk_set, level, lease, cached_ms)
    if summaries is None:  # the time counts in the batch that completes the level
        with lease.commit(batches=[(batch.payload, 0)]):
            return
    with lease.commit(then=partial(plan_batches, index, batch.operation)):
        locked = ChunkSet.objects.select_for_update(no_key=True).get(pk=index.chunk_set.pk)
        if not is_stored and not _has_level(locked, level):
            _store(locked, level, summaries, time.perf_counter() - started + sum(cached_ms) / 1000)


def _has_level(chunk_set: ChunkSet, level: int) -> bool:
    return chunk_set.completed_at is not None or chunk_set.chunks.filter(level=level).exists()


def _build_summaries(
    index: Index, chunk_set: ChunkSet, level: int, lease: Lease, cached_ms: list[float]
) -> Summaries | None:
    """Return the summaries of a level, empty if the tree ends below. Return None after PART_SECONDS.

    Answers so far are stored, so that the next batch gets them at once. The time that cached answers took originally
    is added to `cached_ms`.
    """
    tree = TREES[index.strategy]
    rows = chunk_set.chunks.filter(level=level - 1).order_by("position")
    positions = np.array(rows.values_list("position", flat=True), np.int64)
    texts = list(rows.values_list("text", flat=True))
    lengths = np.array([len(text) for text in texts], np.int64)
    lease.check()
    assert index.dimension is not None
    vectors = load_vectors(index.vector_table, index.dimension, positions.tolist())[1]
    members = tree.find_clusters(vectors, lengths, level, tree.check(index.chunk_parameters))
    # Always cached, independent of the index's setting for searches: a repeated level must be the same.
    llm_index = Index(llm=index.llm, llm_parameters={**index.llm_parameters, "cache": True})
    started = time.monotonic()

    def answer(prompt: str) -> str:
        reply = ask(llm_index, prompt, has_text)
        if reply.is_cached:
            cached_ms.append(reply.ms)
        return reply.text

    summaries: Summaries = []
    for cluster in members:
        lease.check()
        if tree.requires_llm and time.monotonic() - started > PART_SECONDS:
            return None
        text = tree.summarise([texts[row] for row in cluster.tolist()], answer).strip()
        if not text:
            raise IndexingError(
                f'A summary for the index "{index}" was empty: use another language model than {index.llm!r}.'
            )
        summaries.append((text, positions[cluster]))
    return summaries


def _store(chunk_set: ChunkSet, level: int, summaries: Summaries, seconds: float) -> None:
    """Store a level of a locked chunk set, which took `seconds`. An empty level completes the tree."""
    first = chunk_set.vector_count
    rows = [
        (chunk_set.pk, first + ordinal, None, None, level, ordinal, text, hash_text(text), 0, 0)
        for ordinal, (text, _) in enumerate(summaries)
    ]
    links = [(first + ordinal, child) for ordinal, (_, children) in enumerate(summaries) for child in children.tolist()]
    store_pieces(chunk_set, rows, links)
    chunk_set.summary_count += len(summaries)
    chunk_set.completed_at = None if summaries else timezone.now()
    chunk_set.build_seconds += seconds
    chunk_set.save(update_fields=["summary_count", "completed_at", "build_seconds", "updated_at"])
