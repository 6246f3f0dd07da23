"""Judgments that tests state in drafts."""

from typing import Any

from apps.datasets.editing import judgments
from apps.datasets.models import Dataset, Judgment
from apps.datasets.records import JudgmentRecord


def set_judgment(
    dataset: Dataset, query_key: str, doc_ref: dict[str, Any], grade: int, *, judged_by: Any = None, **stated: Any
) -> Judgment:
    """State a judgment, a person's unless `stated` has another source, in the draft."""
    record = JudgmentRecord(doc_ref, grade, **{"source": Judgment.Source.HUMAN, **stated})
    return judgments.set_judgment(dataset, query_key, record, judged_by=judged_by)
