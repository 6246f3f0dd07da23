"""Stress test of holes: what the documents that nobody judged could make of a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from django.core.cache import cache

from apps.benchmarks.measuring.evaluating import truth_of
from apps.benchmarks.measuring.reading import rankings_of
from apps.benchmarks.models import Run
from apps.judging.llm.filling import grades_of, judges_for, mark_of
from apps.judging.models import LLMJudge
from apps.judging.settling.evidence import document_vectors, index_of
from apps.results.comparison.comparing import CACHED_SECONDS, ComparingError, RunComparison
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.stress import Stress, stress
from benchbench.ir.measures import Measure

MOST_RUNS = 16  # the worst case of 16 runs × 300 queries takes seconds, and grows with the pairs of runs


@dataclass(frozen=True, slots=True)
class Holes:
    """The pairs of a query and a document within the measure's cutoff in some run: how many there are and how many of
    them nobody judged; and the verdict under each filling of these. `judge` is the model that graded `graded` of them,
    "" where none that is calibrated did."""

    pairs: int
    holes: int
    stress: Stress
    judge: str
    graded: int


def holes_of(comparison: RunComparison, reader: Any) -> Holes:
    """Return the stress test of a tested comparison; what came of the same values is kept for an hour.

    The model's grades are those of rounds of the mapping that `reader` leads; None is whoever runs commands, and all
    rounds. Raises ComparingError for more than MOST_RUNS runs, runs of several mappings, and a comparison that is not
    tested.
    """
    mappings = {run.benchmark.mapping_id for run in comparison.runs}
    if len(comparison.runs) > MOST_RUNS:
        raise ComparingError(f"What unjudged documents could change is looked at for at most {MOST_RUNS} runs.")
    if len(mappings) > 1 or not comparison.tested:
        raise ComparingError("What unjudged documents could change is looked at where runs of one mapping are tested.")
    judges = judges_for(mappings.pop(), reader)
    key = _key(comparison, mark_of(judges))
    known: Holes | None = cache.get(key)
    if known is None:
        known = _holes(comparison, judges)
        cache.set(key, known, CACHED_SECONDS)
    return known


def _key(comparison: RunComparison, models: str) -> str:
    measured = comparison.comparability.measured
    asked = comparison.measure, comparison.comparison.baseline, comparison.comparison.seed, comparison.slice
    runs = [(str(run.pk), measured[run.pk].truth_hash, str(run.completed_at)) for run in comparison.runs]
    return f"holes:{sha256(repr((asked[:3], asked[3] and asked[3].name, runs, models)).encode()).hexdigest()}"


def _holes(comparison: RunComparison, judges: Sequence[LLMJudge]) -> Holes:
    benchmark = comparison.runs[0].benchmark
    measure = Measure.parse(comparison.measure)
    query_ids = comparison.query_ids[comparison.members].tolist()
    truth = truth_of(benchmark, comparison.version, query_ids=query_ids)
    truths = [truth.grades[query_id] for query_id in query_ids]
    rankings = [_rankings(run, query_ids, measure.cutoff) for run in comparison.runs]
    pool = Pool.of(rankings)
    grades = {grade for of_query in truths for grade in of_query.values()}
    documents = {document for ids in pool.documents for document in ids}
    model = grades_of(judges, _unjudged(pool, query_ids, truths))
    index = index_of(comparison.runs)
    vectors = document_vectors(index, documents.union(*truths) if truths else documents) if index else {}
    tested = stress(
        pool,
        measure,
        truths,
        sorted({0.0, 1.0, *map(float, grades)}),
        seed=comparison.comparison.seed,
        baseline=comparison.comparison.baseline,
        vectors=vectors.get if vectors else None,
        model=model.why_not or [model.of_queries.get(query_id, {}) for query_id in query_ids],
    )
    holes = int(np.isnan(pool.grades(truths)[pool.there]).sum())
    return Holes(pool.size, holes, tested, model.judge, sum(map(len, model.of_queries.values())))


def _unjudged(pool: Pool, query_ids: Sequence[int], truths: Sequence[Mapping[int, float]]) -> dict[int, set[Any]]:
    """Return the documents of each query that some run returned and nobody judged."""
    return {
        query_id: {document for document in documents if document not in truth}
        for query_id, documents, truth in zip(query_ids, pool.documents, truths, strict=True)
    }


def _rankings(run: Run, query_ids: Sequence[int], cutoff: int | None) -> list[list[int] | None]:
    """The first documents of each query, as deep as the measure looks; None of one that failed."""
    ranked = rankings_of(run)
    return [ranked[query_id][:cutoff] if query_id in ranked else None for query_id in query_ids]
