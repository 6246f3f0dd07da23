"""Sections of a document, found by its headings."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apps.collections.records import SECTION_ID_LENGTH, SectionRecord

MARKDOWN_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*?)(?:[ \t]+#*)?[ \t]*")
FENCE = re.compile(r" {0,3}(?P<mark>```|~~~)")


class Heading(NamedTuple):
    """A heading: its words, its level from 1, its first character in the text; `id`, where the source states one."""

    title: str
    level: int
    start: int
    id: str = ""


def markdown_headings(source: str) -> Iterator[Heading]:
    """Yield the `# headings` of Markdown that are not blank and not in fenced code."""
    fence, start = "", 0
    for line in source.splitlines(keepends=True):
        if opened := FENCE.match(line):
            mark = opened["mark"]
            fence = "" if fence == mark else fence or mark
        elif not fence and (heading := MARKDOWN_HEADING.fullmatch(line.rstrip("\r\n"))) and heading["title"]:
            yield Heading(heading["title"], len(heading["marks"]), start)
        start += len(line)


def sections_of(headings: Sequence[Heading], length: int) -> list[SectionRecord]:
    """Return the sections of a text of `length` characters: each from its heading to the next, whatever its level.

    What stands before the first heading is in none. A section is called as its source says, else by its heading in
    small letters with hyphens; a name that is taken already has a number.
    """
    ends = [*(heading.start for heading in headings), length][1:]
    sections: list[SectionRecord] = []
    taken: set[str] = set()
    for heading, end in zip(headings, ends, strict=True):
        name = _free(heading.id.strip() or _slug(heading.title), taken)
        taken.add(name)
        sections.append(SectionRecord(name, heading.title, heading.level, heading.start, end))
    return sections


def _slug(title: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) or "section"


def _free(name: str, taken: set[str]) -> str:
    name = name[: SECTION_ID_LENGTH - 10]
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
