"""The desk on which items are graded: their HTML, without runs, ranks and scores, and its messages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe
from pydantic import Field

from apps.collections.models import Document
from apps.datasets.models import Query
from apps.judging.grading import MOST_UNDONE
from apps.judging.handing import MOST_AHEAD, MOST_TEXT, Shown
from apps.judging.judges import RoundError
from apps.judging.models import Grade, Round
from benchbench.errors import BenchbenchError
from benchbench.markup import Piece, marked, rendered
from benchbench.reading.kinds import one_of, whole
from benchbench.reading.objects import Listed, Stated, read_as
from benchbench.reading.strict_json import decode, parse
from benchbench.site.admin import SiteAdmin

AHEAD = 8  # items that a page holds: the shown one and the next ones
HEAD = 1200  # characters of a document's text that are shown without a passage
MOST_PASSAGE = 4000
ASKED = ("description", "narrative")  # keys of a query's metadata
UNDO = "undo"
MOST_SAID = 200
MOST_BYTES = 5_000_000
NUMBER = whole(0, 2**63 - 1)


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
    def asked(self) -> list[tuple[str, str]]:
        """The description and narrative of the query, as in TREC's topics, and its notes."""
        told = {name: self.query.metadata.get(name) for name in ASKED} | {"notes": self.query.notes}
        return [(name.capitalize(), words) for name, words in told.items() if isinstance(words, str) and words]


def sheet(
    query: Query, document: Document, passage: str, *, grades: Sequence[Grade] = (), whole: bool = False
) -> Sheet:
    """Return the sheet of a pair; without a `passage` it begins with the document's text."""
    text = document.text
    first = _head(passage, MOST_PASSAGE) or _head(text, HEAD)
    shown = text if whole else text[:MOST_TEXT]
    return Sheet(
        query,
        document,
        passage=marked(first.strip(), query.text),
        full=marked(shown, query.text) if shown.strip() != first.strip() else [],
        cut=len(text) - len(shown),
        grades=grades,
    )


def _head(text: str, most: int) -> str:
    """Return the beginning of a text, cut between two words."""
    if len(text) <= most:
        return text
    return text[:most].rsplit(None, 1)[0] + " …"


def packed(round: Round, shown: Shown, grades: Sequence[Grade] = ()) -> dict[str, Any]:
    """Return an item for the script of the page: its id, its HTML, and its text for screen readers."""
    item = shown.item
    context = {
        "sheet": sheet(item.query, item.document, shown.passage, grades=grades),
        "text_url": reverse("admin:round_text", args=[round.pk, item.pk]),
    }
    return {
        "id": item.pk,
        "html": render_to_string("judging/item.html", context),
        "spoken": f"{item.document.title or item.document.external_id}, for: {item.query.text}",
    }


@dataclass(frozen=True, slots=True)
class JudgeEntry(Stated):
    """A judge's answer on an item, or its withdrawal. `key` names the entry, so that the page can drop it."""

    KEYS = {"item_id": "item"}

    item_id: Annotated[int, NUMBER]
    kind: Annotated[str, one_of(*Grade.Kind.values, UNDO)]
    key: str = ""
    grade: Annotated[int | None, NUMBER] = None
    note: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Message(Stated):
    """A message of the page: answers in order, the items that it has, and how many it wants to hold."""

    said: Annotated[Listed[JudgeEntry], Field(max_length=MOST_SAID)]
    have: Listed[Annotated[int, NUMBER]]
    count: Annotated[int, whole(1, MOST_AHEAD)] = 1


def desk_page(
    request: HttpRequest,
    model_admin: SiteAdmin,
    round: Round,
    held: dict[str, Any],
    last: Sequence[Grade],
    *,
    adjudicates: bool = False,
) -> HttpResponse:
    """Render the desk with the items `held` and the `last` answers, the latest first."""
    data = held | {
        "user": request.user.pk,
        "url": reverse("admin:round_decide" if adjudicates else "admin:round_exchange", args=[round.pk]),
        "last": [{"id": row.item_id, "label": label_of(round, row)} for row in reversed(last)],
        "scale": round.scale,
        "ahead": AHEAD,
    }
    context = {
        "round": round,
        "data": data,
        "adjudicates": adjudicates,
        "most_undone": MOST_UNDONE,
        "guidelines": mark_safe(rendered(round.guidelines)),  # nosec # rendered() escapes HTML
    }
    return model_admin.page(request, "judging/judge.html", context, original=round)


def exchanged(
    request: HttpRequest,
    require: Callable[[], None],
    keep: Callable[[JudgeEntry], None],
    answer: Callable[[Message], dict[str, Any]],
) -> HttpResponse:
    """Store the entries of a message in order, and answer it.

    The answer lists each refused entry by its key with the reason; all others are stored.
    """
    try:
        require()
        if len(request.body) > MOST_BYTES:
            raise RoundError("The message of the page is too long: reload the page.")
        message = read_as(Message, parse(decode(request.body, where="the message"), where="the message"))
    except BenchbenchError as error:
        return JsonResponse({"sentence": error.message}, status=error.status)
    refused = []
    for entry in message.said:
        try:
            keep(entry)
        except BenchbenchError as error:
            refused.append({"key": entry.key, "sentence": error.message})
    return JsonResponse({"refused": refused} | answer(message))


def label_of(round: Round, row: Grade) -> str:
    """Return an answer as text: `2 Relevant`, `skipped`."""
    if row.grade is None:
        return "skipped" if row.kind == Grade.Kind.SKIP else "can't judge"
    names = {entry["grade"]: entry["name"] for entry in round.scale}
    return f"{row.grade} {names.get(row.grade, '')}".strip()
