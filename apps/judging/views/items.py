"""Items as HTML: one partial for judging, adjudication and a single item, with nothing of runs, ranks and scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from apps.collections.models import Document
from apps.datasets.models import Query
from apps.judging.models import Grade
from apps.judging.showing import MOST_TEXT, Shown
from benchbench.markup import Piece, marked

HEAD = 1200  # characters of a document's text that are shown where no passage is known
MOST_PASSAGE = 4000
ASKED = ("description", "narrative")  # of a query's metadata


@dataclass(frozen=True, slots=True)
class Sheet:
    """A pair as the page shows it: texts with the words of the query marked. `cut` tells of characters left out."""

    query: Query
    document: Document
    passage: list[Piece]
    full: list[Piece]
    cut: int
    grades: Sequence[Grade] = ()

    @property
    def asked(self) -> list[tuple[str, str]]:
        """What was asked for, in words beside the query, as TREC's topics have them; and notes."""
        told = {name: self.query.metadata.get(name) for name in ASKED} | {"notes": self.query.notes}
        return [(name.capitalize(), words) for name, words in told.items() if isinstance(words, str) and words]


def sheet(
    query: Query, document: Document, passage: str, *, grades: Sequence[Grade] = (), whole: bool = False
) -> Sheet:
    """Return what is shown of a pair; without a `passage` its text begins the page."""
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


def sheet_of(shown: Shown, grades: Sequence[Grade] = ()) -> Sheet:
    return sheet(shown.item.query, shown.item.document, shown.passage, grades=grades)


def packed(shown: Shown, text_url: str, grades: Sequence[Grade] = ()) -> dict[str, Any]:
    """Return an item for the script of the page: its id, its HTML, and how it is called aloud."""
    item = shown.item
    context = {"sheet": sheet_of(shown, grades), "text_url": text_url}
    return {
        "id": item.pk,
        "html": render_to_string("judging/item.html", context),
        "spoken": f"{item.document.title or item.document.external_id}, for: {item.query.text}",
        "said": None if shown.grade is None else {"grade": shown.grade.grade, "note": shown.grade.note},
    }
