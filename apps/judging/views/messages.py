"""Messages between the page of a judge and the server: what the page sends, read and checked."""

from dataclasses import dataclass
from typing import Annotated

from django.http import HttpRequest
from pydantic import Field

from apps.judging.errors import RoundError
from apps.judging.handing import MOST_AHEAD
from apps.judging.models import Grade
from benchbench.reading.kinds import one_of, whole
from benchbench.reading.objects import Listed, Stated, read_as
from benchbench.reading.strict_json import decode, parse

UNDO = "undo"
MOST_SAID = 200
MOST_BYTES = 5_000_000
NUMBER = whole(0, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Said(Stated):
    """What a judge said of an item, or that it is taken back. `key` names the message, so that the page can drop it."""

    KEYS = {"item_id": "item"}

    item_id: Annotated[int, NUMBER]
    kind: Annotated[str, one_of(*Grade.Kind.values, UNDO)]
    key: str = ""
    grade: Annotated[int | None, NUMBER] = None
    note: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Message(Stated):
    """What the page sends: what was said, in order; which items it has; and how many it wants to hold."""

    said: Annotated[Listed[Said], Field(max_length=MOST_SAID)]
    have: Listed[Annotated[int, NUMBER]]
    count: Annotated[int, whole(1, MOST_AHEAD)] = 1


def read_message(request: HttpRequest) -> Message:
    """Return the message that a request holds. Raises RoundError, MalformedFileError, InvalidKeyError."""
    if len(request.body) > MOST_BYTES:
        raise RoundError("The message of the page is too long: reload the page.")
    return read_as(Message, parse(decode(request.body, where="the message"), where="the message"))
