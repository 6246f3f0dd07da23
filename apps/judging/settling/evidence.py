"""Evidence of relevance in a round in addition to the ranks of its runs: texts, and the grades of a calibrated model.

It affects the next items and the probability of a verdict. It is not a grade: no state counts it, no version has it.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Max, QuerySet

from apps.benchmarks.models import Run
from apps.judging.llm import prompting
from apps.judging.models import CalibrationItem, Grade, LLMJudge, Round
from apps.judging.settling.consensus import HumanGrades
from apps.retrieval.models import Chunk, Index
from apps.retrieval.search.vectors import load_vectors
from benchbench.ir.judging.calibration import MIN_PAIRS
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


def load_document_vectors(index: Index, documents: Collection[Any]) -> dict[int, Vectors]:
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


def load_evidence(round: Round, human_grades: HumanGrades) -> ModelEvidence:
    """Return the latest started of the models calibrated on a round. One query if no model judged the round.

    A calibrated model has the current prompt and shares MIN_PAIRS grades with people at the beginning of the
    calibration sample, as far as both are done. Its server is not asked: the stored grades are the calibrated ones.
    """
    judges = list(LLMJudge.objects.filter(round=round))
    sample = load_sample(round) if judges else []
    for judge in judges:
        if (judge.prompt_version, judge.prompt_hash) != (prompting.VERSION, prompting.hash_prompt(round)):
            continue
        rows = _filter_grades(round, judge.name)
        if (
            _count_shared(sample, human_grades, dict(rows.filter(item__in=sample).values_list("item", "grade")))
            >= MIN_PAIRS
        ):
            counted = rows.aggregate(grades=Count("pk"), last=Max("pk"), at=Max("graded_at"))
            return ModelEvidence(judge.name, f"{judge.name} {sorted(counted.items())}")
    return ModelEvidence()


def load_sample(round: Round) -> list[int]:
    """Return the items of the calibration sample of a round, in its order."""
    return list(CalibrationItem.objects.filter(round=round).order_by("place").values_list("item", flat=True))


def load_model_grades(round: Round, name: str) -> dict[int, int]:
    """Return the grades that a model gave in a round, by item, without those that it was unsure of."""
    rows: Any = _filter_grades(round, name).filter(grade__isnull=False).values_list("item", "grade")
    return dict(rows)


def _filter_grades(round: Round, name: str) -> QuerySet[Grade]:
    return Grade.objects.filter(item__round=round, source=Grade.Source.LLM, judge_name=name).order_by()


def _count_shared(sample: Sequence[int], human_grades: HumanGrades, grades_by_item: dict[int, int | None]) -> int:
    """Return how many grades people and a model share before the first item that either is not done with."""
    shared = 0
    for item in sample:
        if item not in grades_by_item or item not in human_grades.finished_items:
            break
        shared += item in human_grades.grades and grades_by_item[item] is not None
    return shared
