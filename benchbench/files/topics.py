"""TREC topics, which are queries: lines `qid text`, or `<top>` blocks, or XML with `<topic number="…">`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from benchbench.files.errors import FileFormatError
from benchbench.reading.strict_json import read_lines, read_text

TAGS = "num|title|query|question|desc|description|narr|narrative"
BLOCK = re.compile(r"<(top|topic)\b([^>]*)>(.*?)(?=</\1\s*>|<\1\b|\Z)", re.DOTALL | re.IGNORECASE)
FIELD = re.compile(rf"<({TAGS})\b[^>]*>(.*?)(?=</?(?:{TAGS})\b|\Z)", re.DOTALL | re.IGNORECASE)
NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']([^\"']*)[\"']", re.IGNORECASE)
LABEL = re.compile(r"\s*(?:number|topic|description|narrative)\s*:", re.IGNORECASE)  # `<num> Number: 301`
FULL_NAMES = {"desc": "description", "narr": "narrative"}
SPACE = " \t\n\v\f\r"  # ASCII's, as judgments and runs part their columns: a key or a text may end in any other
TEXT = ("title", "query", "question", "description")


@dataclass(frozen=True, slots=True)
class Topic:
    """A query as stated, with what its author wrote about the need behind it."""

    key: str
    text: str
    description: str = ""
    narrative: str = ""


def read_topics(path: Path) -> list[Topic]:
    """Return the topics in file order.

    The text of a topic is its title, or where it has none its query, question or description. Tags may be left open,
    as TREC's own are, so this is no XML parser, and entities of a document type expand to nothing.
    """
    places: dict[str, str] = {}
    topics = []
    for where, topic in _blocks(path) if _is_marked_up(path) else _lines(path):
        if not topic.key.strip() or not topic.text.strip():
            raise FileFormatError(f"{where} has a topic without {'a text' if topic.key.strip() else 'a number'}.")
        if topic.key in places:
            raise FileFormatError(
                f"{where} has the number {topic.key[:60]!a} of {places[topic.key].rstrip(',')}: it names one topic."
            )
        places[topic.key] = where
        topics.append(topic)
    if not topics:
        raise FileFormatError(f"{path.name} holds no topic.")
    return topics


def write_topics(topics: Iterable[Topic]) -> Iterator[str]:
    """Yield lines `qid text`, without descriptions and narratives.

    Raises FileFormatError for what would be read otherwise: a number with a tab, or that begins as a tag does, and a
    text with a line break or ASCII's white space around it, and blank ones.
    """
    for topic in topics:
        key, text = topic.key, topic.text
        damaged = "\t" in key or key.startswith("<") or "\n" in key + text
        if damaged or not key.strip() or not text.strip() or (key, text) != (key.strip(SPACE), text.strip(SPACE)):
            raise FileFormatError(f"The topic {key[:80]!a} does not fit on a line, a tab after its number.")
        yield f"{key}\t{text}\n"


def _is_marked_up(path: Path) -> bool:
    _, first = next(read_lines(path), ("", ""))
    return first.lstrip().startswith("<")


def _lines(path: Path) -> Iterator[tuple[str, Topic]]:
    for where, line in read_lines(path):
        key, separator, text = line.partition("\t")
        if not separator:
            raise FileFormatError(f"{where} has no tab between the number of a query and its text.")
        yield where, Topic(key.strip(SPACE), text.strip(SPACE))


def _blocks(path: Path) -> Iterator[tuple[str, Topic]]:
    text = read_text(path)
    line, counted = 1, 0
    for block in BLOCK.finditer(text):
        line, counted = line + text.count("\n", counted, block.start()), block.start()
        yield f"{path.name}, line {line},", _topic(attributes=block[2], inside=block[3])


def _topic(*, attributes: str, inside: str) -> Topic:
    fields: dict[str, str] = {}
    if number := NUMBER.search(attributes):
        fields["num"] = _clean(number[1])
    for name, written in FIELD.findall(inside):
        fields.setdefault(FULL_NAMES.get(name.lower(), name.lower()), _clean(written))
    return Topic(
        key=fields.get("num", ""),
        text=next((fields[name] for name in TEXT if fields.get(name)), ""),
        description=fields.get("description", ""),
        narrative=fields.get("narrative", ""),
    )


def _clean(written: str) -> str:
    """Without the label that TREC writes before some fields, entities as characters, on one line."""
    label = LABEL.match(written)
    return " ".join(unescape(written[label.end() :] if label else written).split())
