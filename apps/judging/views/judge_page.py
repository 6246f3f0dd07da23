"""The page on which items are graded: their HTML, without runs, ranks and scores, and its messages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe
from pydantic import Field

from apps.collections.models import Document
from apps.datasets.models import Query
from apps.judging.grading import MOST_UNDONE
from apps.judging.handing import MOST_AHEAD, MOST_TEXT, ItemView
from apps.judging.judges import RoundError
from apps.judging.models import Grade, Round
from benchbench.errors import BenchbenchError
from benchbench.markup import Piece, mark_words, render_markdown
from benchbench.reading.kinds import int_between, one_of
from benchbench.reading.objects import Listed, StrictRecord, read_as
from benchbench.reading.strict_json import decode, parse
from benchbench.site.admin import SiteAdmin

AHEAD = 8  # items that a page holds: the shown one and the next ones
HEAD = 1200  # characters of a document's text that are shown without a passage
MOST_PASSAGE = 4000
TOPIC_FIELDS = ("description", "narrative")  # keys of a query's metadata
UNDO = "undo"
MAX_ENTRIES = 200
MOST_BYTES = 5_000_000
NUMBER = int_between(0, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A pair as the page shows it: texts with the words of the query marked. `cut` counts the characters left out."""

    query: Query
    document: Document
    passage: list[Piece]
    full: list[Piece]
    cut: int
    grades: Sequence[Grade] = ()

    @property
    def details(self) -> list[tuple[str, str]]:
        """The description and narrative of the query, as in TREC's topics, and its notes."""
        texts = {name: self.query.metadata.get(name) for name in TOPIC_FIELDS} | {"notes": self.query.notes}
        return [(name.capitalize(), words) for name, words in texts.items() if isinstance(words, str) and words]


def build_sheet(
    query: Query, document: Document, passage: str, *, grades: Sequence[Grade] = (), is_full: bool = False
) -> Sheet:
    """Return the sheet of a pair; without a `passage` it begins with the document's text."""
    text = document.text
    first = _cut_text(passage, MOST_PASSAGE) or _cut_text(text, HEAD)
    visible_text = text if is_full else text[:MOST_TEXT]
    return Sheet(
        query,
        document,
        passage=mark_words(first.strip(), query.text),
        full=mark_words(visible_text, query.text) if visible_text.strip() != first.strip() else [],
        cut=len(text) - len(visible_text),
        grades=grades,
    )


def _cut_text(text: str, max_length: int) -> str:
    """Return the beginning of a text, cut between two words."""
    if len(text) <= max_length:
        return text
    return text[:max_length].rsplit(None, 1)[0] + " …"


def pack_item(round: Round, view: ItemView, grades: Sequence[Grade] = ()) -> dict[str, object]:
    """Return an item for the script of the page: its id, its HTML, and its text for screen readers."""
    item = view.item
    context = {
        "sheet": build_sheet(item.query, item.document, view.passage, grades=grades),
        "text_url": reverse("admin:round_text", args=[round.pk, item.pk]),
    }
    return {
        "id": item.pk,
        "html": render_to_string("judging/item.html", context),
        "spoken": f"{item.document}, for: {item.query.text}",
    }


@dataclass(frozen=True, slots=True)
class JudgeEntry(StrictRecord):
    """A judge's answer on an item, or its withdrawal. `key` names the entry, so that the page can drop it."""

    KEYS = {"item_id": "item"}

    item_id: Annotated[int, NUMBER]
    kind: Annotated[str, one_of(*Grade.Kind.values, UNDO)]
    key: str = ""
    grade: Annotated[int | None, NUMBER] = None
    note: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Message(StrictRecord):
    """A message of the page: answers in order, the items that it has, and how many it wants to hold."""

    entries: Annotated[Listed[JudgeEntry], Field(max_length=MAX_ENTRIES)]
    present_ids: Listed[Annotated[int, NUMBER]]
    count: Annotated[int, int_between(1, MOST_AHEAD)] = 1


def render_judge_page(
    request: HttpRequest,
    model_admin: SiteAdmin,
    round: Round,
    payload: dict[str, object],
    last: Sequence[Grade],
    *,
    adjudicates: bool = False,
) -> HttpResponse:
    """Render the page with the items of `payload` and the `last` answers, the latest first."""
    data = payload | {
        "user": request.user.pk,
        "url": reverse("admin:round_decide" if adjudicates else "admin:round_exchange", args=[round.pk]),
        "last": [{"id": row.item_id, "label": label_grade(round, row)} for row in reversed(last)],
        "scale": round.scale,
        "ahead": AHEAD,
    }
    context = {
        "round": round,
        "data": data,
        "adjudicates": adjudicates,
        "most_undone": MOST_UNDONE,
        "guidelines": mark_safe(render_markdown(round.guidelines)),  # nosec # render_markdown escapes HTML
    }
    return model_admin.render_page(request, "judging/judge.html", context, original=round)


def store_entries(
    request: HttpRequest,
    require: Callable[[], None],
    store_entry: Callable[[JudgeEntry], None],
    answer: Callable[[Message], dict[str, object]],
) -> HttpResponse:
    """Store the entries of a message in order, and answer it.

    The answer lists each refused entry by its key with the reason; all others are stored.
    """
    try:
        require()
        if len(request.body) > MOST_BYTES:
            raise RoundError("The message of the page is too long: reload the page.")
        message = read_as(Message, parse(decode(request.body, location="the message"), location="the message"))
    except BenchbenchError as error:
        return JsonResponse({"sentence": error.message}, status=error.status)
    refused = []
    for entry in message.entries:
        try:
            store_entry(entry)
        except BenchbenchError as error:
            refused.append({"key": entry.key, "sentence": error.message})
    return JsonResponse({"refused": refused} | answer(message))


def label_grade(round: Round, row: Grade) -> str:
    """Return an answer as text: `2 Relevant`, `skipped`."""
    if row.grade is None:
        return "skipped" if row.kind == Grade.Kind.SKIP else "can't judge"
    names = {entry["grade"]: entry["name"] for entry in round.scale}
    return f"{row.grade} {names.get(row.grade, '')}".strip()
