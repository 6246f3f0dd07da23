"""Messages between the page of a judge and the server: what the page sends, read and checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from apps.judging.errors import RoundError
from apps.judging.handing import MOST_AHEAD
from apps.judging.models import Grade
from benchbench.reading.strict_json import decode, parse

UNDO = "undo"
KINDS = (*Grade.Kind.values, UNDO)
MOST_SAID = 200
MOST_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge said of an item, or that it is taken back. `key` names the message, so that the page can drop it."""

    key: str
    item_id: int
    kind: str
    grade: int | None
    note: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Message:
    """What the page sends: what was said, in order; which items it has; and how many it wants to hold."""

    said: list[Said]
    have: frozenset[int]
    count: int


def read_message(request: HttpRequest) -> Message:
    """Return the message that a request holds. Raises RoundError."""
    if len(request.body) > MOST_BYTES:
        raise RoundError("The message of the page is too long: reload the page.")
    data = parse(decode(request.body, where="the message"), where="the message")
    if not isinstance(data, dict) or not isinstance(data.get("said"), list) or not isinstance(data.get("have"), list):
        raise RoundError("The message of the page has another form than this version expects: reload the page.")
    return Message(
        said=[_said(entry) for entry in data["said"][:MOST_SAID]],
        have=frozenset(_whole(number) for number in data["have"]),
        count=min(max(_whole(data.get("count", 1)), 1), MOST_AHEAD),
    )


def _said(entry: Any) -> Said:
    if not isinstance(entry, dict):
        raise RoundError("What was said is an object with key, item and kind.", field="said")
    read = dict(_read(entry))
    if read["kind"] not in KINDS:
        raise RoundError(f"What is said is one of {', '.join(KINDS)}.", field="kind")
    return Said(**read)


def _read(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    grade, seconds, note = entry.get("grade"), entry.get("seconds"), entry.get("note", "")
    yield "key", str(entry.get("key", ""))[:100]
    yield "item_id", _whole(entry.get("item"))
    yield "kind", entry.get("kind")
    yield "grade", None if grade is None else _whole(grade)
    yield "note", note if isinstance(note, str) else ""
    yield "seconds", float(seconds) if isinstance(seconds, int | float) else None


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise RoundError("Items and grades are whole numbers.", field="item")
    return number
