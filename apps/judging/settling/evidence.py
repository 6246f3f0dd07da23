"""Evidence of relevance in a round in addition to the ranks of its runs: texts, and the grades of a model.

It affects the next items and the probability of a verdict. It is not a grade: no state counts it, no version has it.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Max, QuerySet

from apps.judging.llm import prompting
from apps.judging.models import Grade, LLMJudge, Round
from apps.records.models import Run
from apps.retrieval.models import Chunk, Index
from apps.retrieval.search.vectors import load_vectors
from benchbench.ir.judging.evidence import Axes, compute_axes
from benchbench.ir.judging.pool import Pool
from benchbench.ir.records import Vectors

MOST_PAIRS = 50_000  # largest pool whose texts are compared: all its vectors are in memory at once


def find_vector_index(runs: Sequence[Run]) -> Index | None:
    """Return the first index with vectors among those of the runs."""
    indexes = (run.index for run in runs)
    return next((index for index in indexes if index and index.dimension and index.chunk_set), None)


def load_text_axes(pool: Pool, runs: Sequence[Run]) -> Axes | None:
    """Return the axes of a pool's documents by `compute_axes`; None without vectors or beyond MOST_PAIRS pairs."""
    index = find_vector_index(runs)
    if index is None or pool.size > MOST_PAIRS:
        return None
    vectors = load_document_vectors(index, {document for ids in pool.documents for document in ids})
    if not vectors:
        return None
    row_of = {document: row for row, document in enumerate(vectors)}
    rows = [row_of.get(int(str(document)), -1) for ids in pool.documents for document in ids]
    return compute_axes(pool, np.stack(list(vectors.values())), np.array(rows, np.int64))


def load_document_vectors(index: Index, documents: Collection[object]) -> dict[int, Vectors]:
    """Return the sum of the chunk vectors of each document that has any in an index."""
    assert index.dimension is not None
    leaves = Chunk.objects.filter(chunk_set=index.chunk_set, level=0, document__in=list(documents))
    document_of = dict(leaves.values_list("position", "document_id"))
    ids, vectors = load_vectors(index.vector_table, index.dimension, sorted(document_of))
    sums: dict[int, Vectors] = defaultdict(lambda: np.zeros(index.dimension or 0, np.float32))
    for position, vector in zip(ids.tolist(), vectors, strict=True):
        sums[document_of[position]] += vector
    return dict(sums)


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """The model whose grades are evidence in a round, and a mark of these grades; both "" without such a model."""

    name: str = ""
    mark: str = ""


def load_evidence(round: Round) -> ModelEvidence:
    """Return the latest started model that judged a round by its current prompt. One query if no model judged it.

    What its grades are worth is counted on every pair that people graded too, so that it needs no calibration; before
    any it is worth nothing. Its server is not asked: what counts are the stored grades.
    """
    for judge in LLMJudge.objects.filter(round=round):
        if (judge.prompt_version, judge.prompt_hash) == (prompting.VERSION, prompting.hash_prompt(round)):
            counted = _filter_grades(round, judge.name).aggregate(
                grades=Count("pk"), last=Max("pk"), at=Max("graded_at")
            )
            if counted["grades"]:
                return ModelEvidence(judge.name, f"{judge.name} {sorted(counted.items())}")
    return ModelEvidence()


def load_sample(round: Round) -> list[int]:
    """Return the items of the calibration sample of a round, in its order."""
    return list(round.calibration_items.order_by("place").values_list("item", flat=True))


def load_model_grades(round: Round, name: str) -> dict[int, int]:
    """Return the grades that a model gave in a round, by item, without those that it was unsure of."""
    rows: Any = _filter_grades(round, name).filter(grade__isnull=False).values_list("item", "grade")
    return dict(rows)


def _filter_grades(round: Round, name: str) -> QuerySet[Grade]:
    return Grade.objects.filter(item__round=round, source=Grade.Source.LLM, judge_name=name).order_by()
