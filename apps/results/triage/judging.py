"""Judging on the page of a ranking: who may, and the grade of each document in the draft."""

from dataclasses import dataclass, field
from typing import Any

from apps.benchmarks.models import QueryResult
from apps.datasets.editing.drafts import draft_of
from apps.datasets.models import DatasetVersion, Judgment
from apps.mappings.repairing import stated_for
from apps.results.triage.next_steps import Step, next_steps
from benchbench.access import may_change, visible


@dataclass(frozen=True, slots=True)
class Judging:
    """Whether the reader may judge the documents of a ranking, and what the draft states of them.

    `drafted` holds the judgments of the query in the draft by document, None where there is no draft or where the draft
    does not have the query.
    """

    result: QueryResult
    permitted: bool
    drafted: dict[int, list[Judgment]] | None = None
    steps: list[Step] = field(default_factory=list)

    def change(self, document_id: int, grade: int | None) -> str:
        """Say what the draft makes of a document that has `grade` on the page; "" where that is the same."""
        if self.drafted is None:
            return ""
        grades = [judgment.grade for judgment in self.drafted.get(document_id, [])]
        drafted = max(grades, default=None)
        if drafted == grade:
            return ""
        return "in the draft: no judgment" if drafted is None else f"in the draft: {drafted}"


def may_judge(result: QueryResult, user: Any) -> bool:
    """Tell whether a reader may judge for the query of a ranking: only while the newest version has it."""
    return result.query.until is None and may_change(result.run.benchmark.mapping.dataset, user)


def judging_of(result: QueryResult, user: Any, *, shown: DatasetVersion | None = None) -> Judging:
    """Return what a reader may judge of a ranking. Where the dataset is not theirs to see, nothing.

    `shown` is the version whose values the page shows.
    """
    mapping = result.run.benchmark.mapping
    dataset = mapping.dataset
    permitted = may_judge(result, user)
    if not permitted and not visible(type(dataset).objects.filter(pk=dataset.pk), user).exists():
        return Judging(result, permitted=False)
    draft = draft_of(dataset)
    return Judging(
        result,
        permitted=permitted,
        drafted=stated_for(mapping, draft, result.query) if draft and result.query.until is None else None,
        steps=next_steps(dataset, user, draft=draft, benchmark=result.run.benchmark, shown=shown),
    )
