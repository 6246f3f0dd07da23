"""Queries of a run that lost documents: how much, why, and how far two runs are apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apps.benchmarks.models import Evaluation
from apps.results.causes import CAUSES
from apps.results.triage.triaging import RunLosses
from benchbench.ir.triage import Loss, by_difference, by_loss

ANY = "any"


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One way in which a run lost documents: "demoted by the reranker: 31 documents in 28 queries"."""

    cause: Loss
    name: str
    remedy: str
    documents: int
    queries: int


def cause_rows(losses: RunLosses) -> list[CauseRow]:
    """Return the ways in which a run lost documents, in the order of the stages."""
    return [
        CauseRow(loss, CAUSES[loss].name, CAUSES[loss].remedy, counted.documents, counted.queries)
        for loss, counted in losses.tally.items()
    ]


def read_cause(text: str) -> Loss | str:
    """Return the cause that a page is asked for: a Loss, ANY of them, or "" for queries whether they lost or not."""
    return text if text == ANY else Loss(text) if text in list(Loss) else ""


def having(query_ids: Iterable[int], losses: RunLosses, cause: Loss | str) -> list[int]:
    """Return those of the queries that lost a document by `cause`, in their order."""
    lost = losses.queries
    return [query for query in query_ids if query in lost and (cause == ANY or cause in lost[query].causes)]


def worst_first(query_ids: Sequence[int], evaluation: Evaluation, losses: RunLosses, measure: str) -> list[int]:
    """Return the queries, the greatest loss first: 1 − `measure`, an nDCG. Failed ones stand before all.

    Those that lose nothing come last, and with them those for which nothing is relevant: no run can do better there.
    """
    values = column_of(evaluation, measure)
    failed = [query for query in query_ids if values.get(query) is None]
    rest = [query for query in query_ids if values.get(query) is not None]
    numbers = np.array([values[query] for query in rest], np.float64)
    losing = [rest[n] for n in by_loss(numbers, np.array([query in losses.judged for query in rest], bool))]
    return [*failed, *losing, *sorted(set(rest) - set(losing), key=rest.index)]


def furthest_apart(query_ids: Sequence[int], first: Evaluation, second: Evaluation, measure: str) -> list[int]:
    """Return the queries that have a value of `measure` in both evaluations, the widest gap first."""
    columns = column_of(first, measure), column_of(second, measure)
    pair = np.array([[column.get(query) for query in query_ids] for column in columns], np.float64)  # None is NaN
    return [query_ids[n] for n in by_difference(*pair)]


def column_of(evaluation: Evaluation, measure: str) -> Mapping[int, float | None]:
    """Return the values of a measure by query id; none where the evaluation does not have that measure."""
    return evaluation.by_query(measure) if measure in evaluation.measures else {}
