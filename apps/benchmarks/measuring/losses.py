"""Losses of approximate search in nDCG, beside the same configuration with exact search, by one truth or another."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.evaluating import truth_of
from apps.benchmarks.measuring.stage_lists import documents_of, read_lists
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.benchmarks.models.values import unpacked
from apps.benchmarks.planning import plan_of
from apps.datasets.models import DatasetVersion
from apps.mappings.truth import Truth, truth_hash
from benchbench.ir.measures import EmptyQueries, GradedRankings, Measure, evaluate, mean
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.ranking import collapse, cut, unit_scores
from benchbench.ir.records import ScoredList

Facts = dict[str, Any]
Lists = Mapping[int, ScoredList]  # by query; chunks by primary key


def keep_losses(
    benchmark: Benchmark, runs: Iterable[Run], evaluations: Iterable[Evaluation], version: DatasetVersion
) -> None:
    """Store what each approximate run loses on a version, of which all have these evaluations.

    `provenance["ann"]["losses"]` has it by the hash of the truth. Code before that reads `ndcg`, on the own version.
    """
    approximate = {str(run.pk): run for run in runs if run.provenance.get("ann")}
    if not approximate:
        return
    truth, of_run = truth_of(benchmark, version), {str(evaluation.run_id): evaluation for evaluation in evaluations}
    for exact in plan_of([*approximate.values()]).truths:
        run = approximate[exact.run_key]
        facts, loss = run.provenance["ann"], _loss(benchmark, of_run[exact.run_key], exact, truth)
        facts["losses"] = {**facts.get("losses", {}), truth_hash(truth): loss}
        if version == benchmark.dataset_version:
            facts["ndcg"] = loss
        run.save(update_fields=["provenance", "updated_at"])


def ann_of(run: Run, truth: str, means: Mapping[str, float | None]) -> Facts | None:
    """Return how an approximate run did and what that cost by the truth of this hash; None for one that was exact.

    The values of `ndcg` are None where it was not measured by that truth. Code before measured it once, and did not say
    by which: it is that of the `means` where the run's own value is among them.
    """
    facts = run.provenance.get("ann")
    if not facts:
        return None
    once = facts["ndcg"]
    first = once if means.get(once["measure"]) == once["approximate"] else None
    ndcg = facts.get("losses", {truth: first}).get(truth) or _none(once["measure"])
    return {name: value for name, value in facts.items() if name != "losses"} | {"ndcg": ndcg}


def _none(measure: str) -> Facts:
    return {"measure": measure, "approximate": None, "exact": None, "cost": None}


def _loss(benchmark: Benchmark, evaluation: Evaluation, exact: RunPlan, truth: Truth) -> Facts:
    """Return the mean nDCG at primary_k of a run and of its exact counterpart, over the queries that both answered.

    `cost` is what the approximation loses; each mean is None where there is no such query.
    """
    measure = Measure("nDCG", benchmark.primary_k)
    approximate = unpacked(cast(bytes, evaluation.values))[evaluation.measures.index(str(measure))]
    rankings = dict(_rankings(benchmark, exact))
    graded = GradedRankings.of(
        [rankings.get(query, np.empty(0, np.int64)) for query in evaluation.query_ids],
        [truth.grades[query] for query in evaluation.query_ids],
    )
    pairs = np.stack([approximate, evaluate([measure], graded)[0]])
    failed = np.isnan(pairs[0]) | np.array([query not in rankings for query in evaluation.query_ids], bool)
    means = mean(
        np.nan_to_num(pairs),
        has_relevant=graded.has_relevant,
        failed=failed,
        empty=cast(EmptyQueries, benchmark.empty_queries),
    )
    if not means.counted:
        return _none(str(measure))
    mine, others = means.values.tolist()
    return {"measure": str(measure), "approximate": mine, "exact": others, "cost": others - mine}


def _rankings(benchmark: Benchmark, run: RunPlan) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the documents that a planned run ranks for each query, from the stored lists of its last stage."""
    lists = {query: scored.head(run.candidates) for query, scored in lists_of(benchmark, run.final).items()}
    documents = documents_of(lists.values())
    for query, scored in lists.items():
        scores = unit_scores(run.unit_kind, scored.compared_scores)
        kept = cut(scored, unit_scores=scores, threshold=run.threshold, top_k=run.top_k)
        ranked = np.array([documents[chunk] for chunk in kept.ids.tolist()], np.int64)
        yield query, ranked[collapse(ranked)]


def lists_of(benchmark: Benchmark, stage_key: str) -> Lists:
    """Return the stored lists of a stage, by query."""
    return {query: lists[stage_key] for query, lists in read_lists(benchmark, [stage_key]).items()}
