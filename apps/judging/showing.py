"""Items as a judge sees them: the query and what was asked for, the document, its best passage, and nothing of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.judging.models import Grade, Round, RoundItem

MOST_TEXT = 20_000  # characters of a document's text that come with an item; the whole is asked for by itself


@dataclass(frozen=True, slots=True)
class Shown:
    """An item for one judge. `passage` is the chunk that brought the document in some run, at `start` of its text.

    `text` is the beginning of the document's text, `is_cut` tells whether there is more. `grade` is what this judge
    said of it; `others` what others said, in a round that is not blind, once this judge has graded it.
    """

    item: RoundItem
    passage: str
    start: int
    text: str
    is_cut: bool
    grade: Grade | None = None
    others: Sequence[Grade] = ()


def show(round: Round, judge: Any, items: Sequence[RoundItem], *, most_text: int | None = MOST_TEXT) -> list[Shown]:
    """Return items as `judge` sees them; with `most_text` None with the whole texts. One query."""
    rows = Grade.objects.filter(item__in=items, source=Grade.Source.HUMAN, adjudicates=False).order_by("judge_name")
    by_item: dict[int, list[Grade]] = {item.pk: [] for item in items}
    for row in rows:
        by_item[row.item_id].append(row)
    told = []
    for item in items:
        own = next((row for row in by_item[item.pk] if row.judge_id == judge.pk), None)
        sees = own is not None and own.kind != Grade.Kind.SKIP and not (round.blind and round.is_open)
        others = [row for row in by_item[item.pk] if row is not own] if sees else []
        told.append(_shown(item, most_text, own, others))
    return told


def show_ungraded(items: Sequence[RoundItem]) -> list[Shown]:
    """Return items as a judge sees them who has not graded them, such as those that are handed out. No query."""
    return [_shown(item, MOST_TEXT) for item in items]


def _shown(item: RoundItem, most_text: int | None, grade: Grade | None = None, others: Sequence[Grade] = ()) -> Shown:
    text = item.document.text
    chunk = item.chunk
    return Shown(
        item,
        passage=chunk.text if chunk else "",
        start=chunk.start if chunk else 0,
        text=text if most_text is None else text[:most_text],
        is_cut=most_text is not None and len(text) > most_text,
        grade=grade,
        others=others,
    )
