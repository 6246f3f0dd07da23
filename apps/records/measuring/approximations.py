"""Recall and loss of approximate search, whose lists and nDCG are compared with those of exact search."""

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache, lru_cache, partial
from statistics import fmean
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.datasets.models import DatasetVersion, Query
from apps.datasets.versions import load_weights
from apps.mappings.truth import Truth, hash_truth
from apps.operations.models import Operation
from apps.records.lists.final import cut_for_run
from apps.records.lists.reading import load_documents, read_lists
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.batches import load_prepared
from apps.records.models.provenance import Approximation, Loss, add_loss, describe_approximation
from apps.records.planning import plan_of
from apps.retrieval.models import Index
from apps.retrieval.strategies import get_strategy
from benchbench.decimals import counted, signed
from benchbench.ir.measures import EmptyQueries, GradedRankings, Measure, evaluate, mean
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.plan import Plan, RunPlan
from benchbench.ir.planning.stages import DenseStage
from benchbench.ir.ranking import collapse, recall
from benchbench.ir.records import ScoredList

Facts = dict[str, Any]

COMPARED_ALL = ("searched_exactly", "without_index")  # notes on queries that an exact search answered instead


def measure_approximations(
    operation: Operation,
    runs: Mapping[UUID, Run],
    benchmark: Benchmark,
    plan: Plan,
    noted: Mapping[str, Mapping[str, Set[int]]],
    builds: Mapping[str, Mapping[str, int]],
) -> dict[UUID, Facts]:
    """Return the facts about approximate search for each run of the plan that used it.

    The facts are `setting` and `depth`, and `notes`, counts of queries (see `Approximation`). The preparing batch adds
    the `index` with its `bytes`, `build_seconds` and `build`, the `settings` read back, the `plan`, and `index_used`.
    `builds`, by stage, counts the queries that each build of the index was searched for. `recall`
    of the dense list at primary_k and at the depth is over the queries that the store answered itself.
    """
    if not plan.truths:
        return {}
    by_key = {run.run_key: run for run in plan.runs}
    prepared = load_prepared(operation)
    compute_recalls = cache(partial(_compute_recalls, benchmark))  # dense and hybrid runs share their dense lists
    facts = {}
    for truth in plan.truths:
        run_id, stage = UUID(truth.run_key), by_key[truth.run_key].dense
        assert stage is not None
        assert truth.dense is not None
        index = runs[run_id].index
        assert index is not None
        notes = noted.get(stage.key, {})
        instead = set().union(*(notes.get(name, ()) for name in COMPARED_ALL))
        facts[run_id] = {
            "setting": stage.ann,
            "depth": stage.depth,
            **prepared.get(stage.key, {}),
            "builds": builds.get(stage.key, {}),
            "notes": {name: len(queries) for name, queries in notes.items()},
            "recall": compute_recalls(index, stage, truth.dense, frozenset(instead)),
        }
    return facts


def list_ann_warnings(facts: Approximation | None) -> list[str]:
    """Return warnings about facts that make the run's values and times unreliable."""
    if facts is None:
        return []
    warnings = []
    if facts.without_index or not facts.index_used:
        warnings.append(
            f"PostgreSQL compared every vector in {counted(facts.without_index, 'query')} instead of using the index "
            f"of {facts.setting}, so their recall and times do not measure it. See the query plan stored with the run, "
            "and create a new benchmark."
        )
    if facts.searched_exactly:
        warnings.append(
            f"In {counted(facts.searched_exactly, 'query')} {facts.setting} found fewer chunks than the filter admits, "
            "so these were searched exactly."
        )
    setting = Ann.parse(facts.setting)
    scanning = ", or set iterative=relaxed" if setting.store == "pgvector" else ""
    if shortfall := setting.describe_shortfall(facts.depth):
        warnings.append(shortfall)
    elif facts.short:
        warnings.append(
            f"In {counted(facts.short, 'query')} {facts.setting} found fewer than the {facts.depth} requested chunks: "
            f"{_name_remedy(setting)}{scanning}."
        )
    if len(facts.builds) > 1:
        numbers = ", ".join(f"{queries:,}" for queries in facts.builds.values())
        warnings.append(
            f"{len(facts.builds)} builds of the index of {facts.setting} were searched, for {numbers} queries: it was "
            "restored or built again meanwhile, or each machine built its own, and they may find other chunks. Clone "
            "the benchmark to search one."
        )
    if setting.compares_all and any(share.worst is not None and share.worst < 1 for share in facts.recall):
        warnings.append(
            f"{facts.setting} compares all chunks but found others than exact search, so its store is faulty. Try "
            "another version of the store."
        )
    return warnings


def explain_exact(facts: Approximation | None, queries: int) -> str:
    """Return a sentence if the figures of a run would be those of exact search, else "".

    That is the case if more than half of its `queries` were searched exactly, because the store found fewer chunks than
    their filter admits.
    """
    if facts is None or 2 * facts.searched_exactly <= queries:
        return ""
    return (
        f"In {facts.searched_exactly:,} of {counted(queries, 'query')} {facts.setting} found fewer chunks than the "
        "filter admits, so exact search replaced it. Its values would be those of exact search: "
        f"{_name_remedy(Ann.parse(facts.setting))}, or choose another store."
    )


def _name_remedy(setting: Ann) -> str:
    return f"raise {' or '.join(limits)}" if (limits := setting.list_limits()) else "choose another method"


def render_ann(run: Run, truth: str) -> str:
    """Return the recall and loss of an approximate run in one line, by the truth with this hash; "" if it is exact."""
    facts = run.lineage.approximation
    if not facts:
        return ""
    shares = [
        f"recall@{share.k} {share.mean:.3f} in {counted(share.queries, 'query')} (worst {share.worst:.2f})"
        if share.queries
        else f"recall@{share.k} – (the store answered no query)"
        for share in facts.recall
    ]
    if (loss := find_loss(run, truth)) and loss.cost is not None:
        shares.append(f"{loss.measure} {signed(-loss.cost)}")
    return "against exact search: " + ", ".join(shares) if shares else ""


def list_recall_depths(primary_k: int, approximate: DenseStage) -> list[int]:
    """Return the depths at which recall is measured, ascending: primary_k, and that of the search."""
    return sorted({min(primary_k, approximate.depth), approximate.depth})


def choose_recall(index: Index, approximate: DenseStage) -> Callable[[ScoredList, ScoredList, int], float | None]:
    """Return `recall` for the lists of an approximate and of exact search, by what their chunks and scores share."""
    strategy = get_strategy(index.strategy)
    # A strategy that narrows the chunks or asks a model compares other chunks than exact search.
    of_same_set = not (strategy.has_summaries or strategy.asks)
    return partial(recall, of_same_set=of_same_set, same_scores=Ann.parse(approximate.ann).rescores)


def _compute_recalls(
    benchmark: Benchmark, index: Index, approximate: DenseStage, exact: DenseStage, instead: Set[int]
) -> list[Facts]:
    """Return mean and worst recall and the number of `queries` at primary_k and, if different, at the depth.

    Leaves out queries in `instead`, which were searched exactly, and queries without any chunk to find. Without queries
    the recalls are None.
    """
    lists, truth = load_lists(benchmark, approximate.key), load_lists(benchmark, exact.key)
    queries = sorted(lists.keys() & truth.keys())
    if not queries:
        return []
    measured, compute = [], choose_recall(index, approximate)
    for k in list_recall_depths(benchmark.primary_k, approximate):
        each = {
            query: compute(lists[query], truth[query].head(approximate.depth), k)
            for query in queries
            if query not in instead
        }
        shares = {query: share for query, share in each.items() if share is not None}
        worst = min(shares, key=lambda query: shares[query], default=None)
        measured.append(
            {
                "k": k,
                "mean": fmean(shares.values()) if shares else None,
                "worst": None if worst is None else shares[worst],
                "worst_query": None if worst is None else Query.objects.get(pk=worst).key,
                "queries": len(shares),
            }
        )
    return measured


Lists = Mapping[int, ScoredList]  # by query; chunks by primary key


def store_losses(
    benchmark: Benchmark, runs: Iterable[Run], evaluations: Iterable[Evaluation], version: DatasetVersion
) -> None:
    """Store the loss of each approximate run on a version; `evaluations` are those of the runs on it.

    Each is stored by the hash of the truth; `Approximation.ndcg` is the loss on the benchmark's own version.
    """
    approximate = {str(run.pk): run for run in runs if run.lineage.approximation}
    if not approximate:
        return
    truth, of_run = load_truth(benchmark, version), {str(evaluation.run_id): evaluation for evaluation in evaluations}
    load_final = lru_cache(maxsize=1)(partial(_load_final, benchmark))  # runs that differ in `ann` share it
    for exact in sorted(plan_of([*approximate.values()]).truths, key=lambda exact: exact.final):
        run, rankings = approximate[exact.run_key], _rank_documents(exact, *load_final(exact.final))
        loss = _compute_loss(benchmark, of_run[exact.run_key], rankings, truth)
        add_loss(run.provenance, hash_truth(truth), loss, is_own=version == benchmark.dataset_version)
        run.save(update_fields=["provenance", "updated_at"])


def build_ann(run: Run, truth: str) -> Facts | None:
    """Return the facts about an approximate run, with its loss by the truth with this hash; None for an exact run.

    The values of `ndcg` are None if the run was not measured by that truth, and under a filter share below 1, which
    leaves many queries no relevant document: both searches have 0 there.
    """
    return describe_approximation(run.provenance, truth if _has_loss(run) else None)


def find_loss(run: Run, truth: str) -> Loss | None:
    """Return the loss of an approximate run as `build_ann` does; None if it is unknown or the run exact."""
    facts = run.lineage.approximation
    return facts.losses.get(truth) if facts and _has_loss(run) else None


def _has_loss(run: Run) -> bool:
    return (run.configuration.filter_share or 1) == 1


def _load_final(benchmark: Benchmark, stage_key: str) -> tuple[Lists, dict[int, int]]:
    """Return the stored lists of a last stage, and the document of each chunk in them."""
    lists = load_lists(benchmark, stage_key)
    return lists, load_documents(lists.values())


def _rank_documents(exact: RunPlan, lists: Lists, documents: Mapping[int, int]) -> dict[int, NDArray[np.int64]]:
    """Return the documents, best first, that a run returns for each query."""
    rankings = {}
    for query, scored in lists.items():
        head = cut_for_run(exact, scored, top_k=exact.top_k)
        ranked = np.array([documents[chunk] for chunk in head.ids.tolist()], np.int64)
        rankings[query] = ranked[collapse(ranked)]
    return rankings


def _compute_loss(
    benchmark: Benchmark, evaluation: Evaluation, rankings: Mapping[int, NDArray[np.int64]], truth: Truth
) -> Loss:
    """Return the mean nDCG at primary_k of a run and of the exact `rankings`, over the queries that both answered.

    The means have the benchmark's weighting. `cost` is the loss of the approximation. All values are None without such
    queries.
    """
    measure = Measure("nDCG", benchmark.primary_k)
    approximate = evaluation.get_column(str(measure))
    graded = GradedRankings.from_rankings(
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
        weights=load_weights(benchmark.weighting, evaluation.dataset_version, evaluation.query_ids),
    )
    if not means.counted:
        return Loss(str(measure))
    own_mean, exact_mean = means.values.tolist()
    return Loss(str(measure), own_mean, exact_mean, exact_mean - own_mean)


def load_lists(benchmark: Benchmark, stage_key: str) -> Lists:
    """Return the stored lists of a stage, by query."""
    return {query: lists[stage_key] for query, lists in read_lists(benchmark, [stage_key]).items()}
