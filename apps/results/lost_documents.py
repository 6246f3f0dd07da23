"""The documents that a run lost, one by one, for lists that are read a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.benchmarks.evaluating import truth_of
from apps.benchmarks.models import Evaluation, Run
from apps.benchmarks.stage_lists import stored_plan
from apps.collections.models import Document
from apps.datasets.models import Judgment, Query
from apps.results.leaderboard import primary_measure
from apps.results.losing import worst_first
from apps.results.paths import what_happened
from apps.results.queries import values_on
from apps.results.triaging import RunLosses, losses_of, lost_documents
from benchbench.errors import ConflictError
from benchbench.ir.configuration import Configuration
from benchbench.ir.plan import RunPlan
from benchbench.ir.triage import Loss, LostDocument


class UntracedError(ConflictError):
    """The stages of a run are not known, and so not where it lost documents."""

    code = "untraced"


@dataclass(frozen=True, slots=True)
class LostRow:
    """A relevant document that a query did not find among the first k, what happened to it and what to do.

    `document` is its external id, None for a judgment that stands for no document; `reference` is how that names it.
    """

    query: Query
    document: str | None
    reference: str
    grade: int
    loss: Loss
    share: float
    sentence: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Triage:
    """What a run lost at primary_k, by the judgments of `evaluation`."""

    run: Run
    evaluation: Evaluation
    plan: RunPlan
    losses: RunLosses

    @property
    def k(self) -> int:
        return self.run.benchmark.primary_k

    def count(self, cause: Loss | None = None) -> int:
        """Return how many documents were lost, by `cause` or by any."""
        tally = self.losses.tally
        return sum(counted.documents for loss, counted in tally.items() if cause in (None, loss))

    def documents(self, places: range, cause: Loss | None = None) -> list[LostRow]:
        """Return the lost documents at these places: of the worst query first, there the highest grade first.

        Only the queries that have a part in them are traced again.
        """
        wanted: dict[int, slice] = {}
        start = 0
        for query_id in self._order():
            count = self.losses.queries[query_id].count(cause)
            if count and start < places.stop and start + count > places.start:
                wanted[query_id] = slice(max(0, places.start - start), places.stop - start)
            start += count
        truth = truth_of(self.run.benchmark, self.evaluation.dataset_version)
        grades = {query_id: truth.grades[query_id] for query_id in wanted}
        traced = dict(lost_documents(self.run, self.plan, grades, k=self.k))
        found = [
            (query_id, one)
            for query_id, part in wanted.items()
            for one in [lost for lost in traced[query_id] or () if cause in (None, lost.loss)][part]
        ]
        return self._described(found)

    def _order(self) -> list[int]:
        return worst_first(list(self.losses.queries), self.evaluation, self.losses, primary_measure(self.run.benchmark))

    def _described(self, found: Sequence[tuple[int, LostDocument]]) -> list[LostRow]:
        """Return what is told of lost documents, in three queries."""
        queries = Query.objects.in_bulk({query_id for query_id, _ in found})
        keys = {one.document for _, one in found}
        names = dict(Document.objects.filter(pk__in=keys).values_list("pk", "external_id"))
        judgments = Judgment.objects.in_bulk([-key for key in keys if key < 0])
        configuration = Configuration.from_dict(self.run.config)
        rows = []
        for query_id, one in found:
            sentence, remedy = what_happened(self.plan, configuration, one, self.k)
            name = names.get(one.document)
            reference = name if name is not None else judgments[-one.document].reference
            rows.append(
                LostRow(queries[query_id], name, reference, int(one.grade), one.loss, one.share, sentence, remedy)
            )
        return rows


def triage_of(run: Run, *, version: int | None = None) -> Triage:
    """Return what a run lost, by the judgments of version `version` (by default its benchmark's own).

    Raises NoValuesError and UnmeasuredError where it has no values there, UntracedError for a run that was made
    elsewhere.
    """
    evaluation = values_on(run, version)
    plan, losses = stored_plan(run), losses_of(run, evaluation)
    if plan is None or losses is None:
        raise UntracedError(
            f'The run "{run}" was made elsewhere: its stages are not known, and so not which of them lost a document.'
        )
    return Triage(run, evaluation, plan, losses)
