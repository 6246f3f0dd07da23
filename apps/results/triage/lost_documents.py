"""The documents that a run lost, one by one, for paginated lists."""

from dataclasses import dataclass
from typing import Annotated

from apps.records.lists.reading import build_stored_plan
from apps.records.models import Evaluation, Run
from apps.results.triage.paths import explain_loss
from apps.results.triage.queries import order_worst_first, require_values
from apps.results.triage.triaging import JudgmentSet, RunLosses, list_lost_documents, load_judgments, trace_losses
from apps.verdicts.ranked_runs import name_primary
from benchbench.errors import ConflictError
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.triage import Loss, LostDocument


class UntracedError(ConflictError):
    """The stages of the run are unknown, and so are the causes of its losses."""

    code = "untraced"


@dataclass(frozen=True, slots=True)
class LostRow:
    """A relevant document that a query did not find among the first k, with the cause and the remedy.

    `document` is its external id, None for an unresolved judgment; `reference` is the judgment's name for it.
    """

    query_id: int
    query_key: str
    query_text: str
    document: str | None
    reference: Annotated[str, "The reference of the judgment, if no document was found."]
    grade: int
    loss: Loss
    share: Annotated[float, "The share of the ideal DCG@k that the document would add."]
    sentence: Annotated[str, "Why the document was lost."]
    remedy: str


@dataclass(frozen=True, slots=True)
class Triage:
    """The losses of a run at primary_k, by the judgments of `evaluation`; `judged` has them if already read."""

    run: Run
    evaluation: Evaluation
    plan: RunPlan
    losses: RunLosses
    judged: JudgmentSet | None

    @property
    def k(self) -> int:
        return self.run.benchmark.primary_k

    def count(self, cause: Loss | None = None) -> int:
        """Return the number of lost documents, by `cause` or by any."""
        tally = self.losses.tally
        return sum(counted.documents for loss, counted in tally.items() if cause in (None, loss))

    def list_documents(self, positions: range, cause: Loss | None = None) -> list[LostRow]:
        """Return the lost documents in this range, worst query first, then highest grade first.

        Only their queries are traced again: one database query, and two for the judgments.
        """
        windows: dict[int, slice] = {}
        start = 0
        for query_id in self._order():
            count = self.losses.queries[query_id].count(cause)
            if count and start < positions.stop and start + count > positions.start:
                windows[query_id] = slice(max(0, positions.start - start), positions.stop - start)
            start += count
        judged = self.judged or load_judgments(self.run, self.evaluation.dataset_version, query_ids=windows)
        traced = dict(list_lost_documents(self.run, self.plan, judged, k=self.k, query_ids=windows))
        return [
            self._describe(query_id, document, judged)
            for query_id, window in windows.items()
            for document in [lost for lost in traced.get(query_id) or () if cause in (None, lost.loss)][window]
        ]

    def _order(self) -> list[int]:
        return order_worst_first(
            list(self.losses.queries), self.evaluation, self.losses, name_primary(self.run.benchmark)
        )

    def _describe(self, query_id: int, document: LostDocument, judged: JudgmentSet) -> LostRow:
        sentence, remedy = explain_loss(self.plan, self.run.configuration, document, self.k)
        name = judged.find_external_id(document.document)
        reference = judged.references[document.document] if name is None else name
        key, text = judged.truth.keys[query_id], judged.texts[query_id]
        return LostRow(
            query_id, key, text, name, reference, int(document.grade), document.loss, document.share, sentence, remedy
        )


def triage_of(run: Run, *, version: int | None = None) -> Triage:
    """Return the losses of a run, by the judgments of version `version` (by default its benchmark's own).

    Raises NoValuesError and UnmeasuredError without values there, UntracedError if its stages are unknown.
    """
    evaluation = require_values(run, version)
    plan = build_stored_plan(run)
    if plan is None:
        reason = "was imported" if run.is_external else "asks an engine that answers as a whole"
        raise UntracedError(f'The run "{run}" {reason}, so the stage that lost a document is unknown.')
    return Triage(run, evaluation, plan, *trace_losses(plan, run, evaluation))
