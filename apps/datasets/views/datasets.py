"""Pages about datasets."""

from dataclasses import dataclass

from apps.datasets.editing.drafts import draft_of
from apps.datasets.models import DatasetVersion, Judgment, Query
from benchbench.site.panels import changelist_url

SHOWN_JUDGMENTS = 50


@dataclass(frozen=True, slots=True)
class JudgmentsShown:
    """The judgments of a query in the newest version, a draft too, and those that the draft removed without another."""

    rows: list[Judgment]
    removed: list[Judgment]
    draft: DatasetVersion | None
    has_more: bool
    every: str


def judgments_shown(query: Query) -> JudgmentsShown:
    """Return what the page of a query shows of its judgments, highest grade first."""
    draft = draft_of(query.dataset)
    newest = query.judgments.filter(until=query.until).select_related("judged_by").order_by("-grade", "id")
    removed = query.judgments.filter(until=draft.number) if draft and query.until is None else query.judgments.none()
    rows = list(newest[: SHOWN_JUDGMENTS + 1])
    return JudgmentsShown(
        rows=rows[:SHOWN_JUDGMENTS],
        removed=list(removed.exclude(ref_hash__in=newest.values("ref_hash"))[:SHOWN_JUDGMENTS]),
        draft=draft,
        has_more=len(rows) > SHOWN_JUDGMENTS,
        every=changelist_url(Judgment, query__id__exact=query.pk, **({"of": "all"} if query.until else {})),
    )
