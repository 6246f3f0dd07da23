"""The chunks that a run kept of each search, best first, before they were collapsed to documents."""

from collections.abc import Mapping, Sequence

from apps.benchmarks.measuring.stage_lists import documents_of, read_lists, stored_plan
from apps.benchmarks.models import Run
from benchbench.errors import ConflictError
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.ranking import cut, unit_scores
from benchbench.ir.records import ScoredList


class KeptError(ConflictError):
    """The chunks that a run kept cannot be told."""

    code = "kept_chunks"


def kept_chunks(run: Run, rankings: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return the ids of the chunks that the run kept of its last stage's list, for each query of `rankings`.

    `rankings` holds the documents that the run ranked, by query. Raises KeptError where no lists are stored, or where
    the documents of these chunks are not those.
    """
    plan = stored_plan(run)
    if plan is None:
        raise KeptError(
            "This run was made elsewhere, and its file names documents alone: which parts of them it found is not "
            "known."
        )
    lists = read_lists(run.benchmark, [plan.final], query_ids=rankings.keys())
    if lists.keys() != rankings.keys():
        raise KeptError("The lists of this run's last stage are not stored: run the benchmark again.")
    kept = {query: _kept(plan, stages[plan.final]) for query, stages in lists.items()}
    documents = documents_of(kept.values())
    chunks: dict[int, list[int]] = {query: ranked.ids.tolist() for query, ranked in kept.items()}
    for query, ids in chunks.items():
        if list(dict.fromkeys(map(documents.get, ids))) != list(rankings[query]):
            raise KeptError(
                "The stored lists are not those that this run's rankings were made of: run the benchmark again."
            )
    return chunks


def _kept(plan: RunPlan, ranked: ScoredList) -> ScoredList:
    kept = ranked.head(plan.candidates)
    compared = unit_scores(plan.unit_kind, kept.compared_scores)
    return cut(kept, unit_scores=compared, threshold=plan.threshold, top_k=plan.top_k)
