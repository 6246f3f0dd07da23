"""Recall of approximate search: its lists compared with the exact lists that were made beside them."""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.evaluating import truth_of
from apps.benchmarks.measuring.stage_lists import documents_of, read_lists
from apps.benchmarks.models import Benchmark, Evaluation
from apps.benchmarks.models.values import unpacked
from apps.benchmarks.running.outcomes import Notes
from apps.datasets.models import Query
from apps.mappings.truth import Truth
from apps.operations.models import Operation
from benchbench.decimals import counted, signed
from benchbench.ir.measures import EmptyQueries, GradedRankings, Measure, evaluate, mean
from benchbench.ir.planning.ann import Ann, recall
from benchbench.ir.planning.plan import Plan, RunPlan
from benchbench.ir.planning.stages import DenseStage
from benchbench.ir.ranking import collapse, cut, unit_scores
from benchbench.ir.records import ScoredList

Facts = dict[str, Any]
Lists = Mapping[int, ScoredList]  # by query; chunks by primary key


def approximations_of(
    operation: Operation, benchmark: Benchmark, plan: Plan, evaluations: Mapping[UUID, Evaluation], notes: Notes
) -> dict[UUID, Facts]:
    """Return, for each run of the plan that searched approximately, how it did so and what that cost.

    The facts: `setting` and `depth`; the `index` with its `bytes` and `build_seconds`, the `settings` read back, the
    `plan` and whether the index was used at all (`index_used`), as the preparing batch found them; `notes`, counts of
    queries (see `Approximation`); `recall` of the dense list at primary_k and at the depth; `ndcg` at primary_k beside
    that of the same configuration with exact search.
    """
    if not plan.truths:
        return {}
    by_key = {run.run_key: run for run in plan.runs}
    prepared = _prepared(operation)
    ground_truth = truth_of(benchmark, benchmark.dataset_version)
    facts = {}
    for truth in plan.truths:
        run_id, stage = UUID(truth.run_key), by_key[truth.run_key].dense
        assert stage is not None
        assert truth.dense is not None
        facts[run_id] = {
            "setting": stage.ann,
            "depth": stage.depth,
            **prepared.get(stage.key, {}),
            "notes": dict(notes.get(stage.key, {})),
            "recall": _recalls(benchmark, stage, truth.dense),
            "ndcg": _ndcg(benchmark, evaluations[run_id], truth, ground_truth),
        }
    return facts


def ann_warnings(facts: Facts | None) -> list[str]:
    """Return what must be known before the run's numbers are believed."""
    if facts is None:
        return []
    notes, warnings = facts["notes"], []
    if notes.get("without_index") or not facts.get("index_used", True):
        warnings.append(
            f"PostgreSQL did not use the index of {facts['setting']} in "
            f"{counted(notes.get('without_index', 0), 'query')}, but "
            "compared every vector: their recall and times are not this setting's. See the plan that is kept with the "
            "run, and make a new benchmark."
        )
    if notes.get("searched_exactly"):
        warnings.append(
            f"In {counted(notes['searched_exactly'], 'query')} {facts['setting']} found fewer chunks than their "
            "filter admits; there it was searched exactly instead."
        )
    setting = Ann.parse(facts["setting"])
    scanning = ", or scan on (iterative=relaxed)" if setting.store == "pgvector" else ""
    if shortfall := setting.shortfall(facts["depth"]):
        warnings.append(shortfall)
    elif notes.get("short"):
        warnings.append(
            f"In {counted(notes['short'], 'query')} {facts['setting']} found fewer than the {facts['depth']} chunks "
            f"it was asked for: let it look at more (ef_search, probes){scanning}."
        )
    if setting.compares_all and any(share["worst"] < 1 for share in facts["recall"]):
        warnings.append(
            f"{facts['setting']} found other chunks than exact search, which it should not: its store is at fault, and "
            "its values are not those of exact search. Try another version of it."
        )
    return warnings


def not_itself(facts: Facts | None, queries: int) -> str:
    """Say why the figures of a run would be those of exact search, in a sentence; "" where most are of its own setting.

    Of so many `queries` its store found too few chunks that a filter admits in more than half.
    """
    exactly = facts["notes"].get("searched_exactly", 0) if facts else 0
    if facts is None or 2 * exactly <= queries:
        return ""
    return (
        f"In {exactly:,} of {counted(queries, 'query')} {facts['setting']} found fewer chunks than their filter "
        "admits, and they were searched exactly: its figures would be those of exact search. Let it look at more "
        "(ef_search, probes), or choose another store."
    )


def ann_text(facts: Facts | None) -> str:
    """Return in one line what the approximation misses and costs; "" for a run that searched exactly."""
    if not facts:
        return ""
    shares = [
        f"recall@{share['k']} {share['mean']:.3f} (worst query {share['worst']:.2f})" for share in facts["recall"]
    ]
    ndcg = facts["ndcg"]
    if ndcg["cost"] is not None:
        shares.append(f"{ndcg['measure']} {signed(-ndcg['cost'])}")
    return "against exact search: " + ", ".join(shares) if shares else ""


def _prepared(operation: Operation) -> dict[str, Facts]:
    result = operation.batches.filter(payload__prepare=True).values_list("result", flat=True).first()
    return (result or {}).get("prepared", {})


def _recalls(benchmark: Benchmark, approximate: DenseStage, exact: DenseStage) -> list[Facts]:
    """Return mean and worst recall over the queries, at primary_k and at the depth, where that is another."""
    lists, truth = _lists(benchmark, approximate.key), _lists(benchmark, exact.key)
    queries = sorted(lists.keys() & truth.keys())
    if not queries:
        return []
    measured = []
    for k in sorted({min(benchmark.primary_k, approximate.depth), approximate.depth}):
        shares = [recall(lists[query], truth[query].head(approximate.depth), k) for query in queries]
        worst = shares.index(min(shares))
        measured.append(
            {
                "k": k,
                "mean": fmean(shares),
                "worst": shares[worst],
                "worst_query": Query.objects.get(pk=queries[worst]).key,
                "queries": len(queries),
            }
        )
    return measured


def _ndcg(benchmark: Benchmark, evaluation: Evaluation, truth: RunPlan, ground_truth: Truth) -> Facts:
    """Return the mean nDCG at primary_k of the run and of its exact counterpart, over the queries that both answered.

    `cost` is what the approximation loses; each mean is None where there is no such query.
    """
    measure = Measure("nDCG", benchmark.primary_k)
    approximate = unpacked(cast(bytes, evaluation.values))[evaluation.measures.index(str(measure))]
    rankings = dict(_rankings(benchmark, truth))
    graded = GradedRankings.of(
        [rankings.get(query, np.empty(0, np.int64)) for query in evaluation.query_ids],
        [ground_truth.grades[query] for query in evaluation.query_ids],
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
        return {"measure": str(measure), "approximate": None, "exact": None, "cost": None}
    mine, exact = means.values.tolist()
    return {"measure": str(measure), "approximate": mine, "exact": exact, "cost": exact - mine}


def _rankings(benchmark: Benchmark, run: RunPlan) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the documents that a planned run ranks for each query, from the stored lists of its last stage."""
    lists = {query: scored.head(run.candidates) for query, scored in _lists(benchmark, run.final).items()}
    documents = documents_of(lists.values())
    for query, scored in lists.items():
        scores = unit_scores(run.unit_kind, scored.compared_scores)
        kept = cut(scored, unit_scores=scores, threshold=run.threshold, top_k=run.top_k)
        ranked = np.array([documents[chunk] for chunk in kept.ids.tolist()], np.int64)
        yield query, ranked[collapse(ranked)]


def _lists(benchmark: Benchmark, stage_key: str) -> Lists:
    return {query: lists[stage_key] for query, lists in read_lists(benchmark, [stage_key]).items()}
