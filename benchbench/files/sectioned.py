"""Sectioned documents, in the format of the retrieval-strategy benchmark."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from benchbench.reading.objects import Identifier, Listed, Must, StrictRecord, read_as, refuse
from benchbench.reading.strict_json import read_text, read_value

LEVELS = range(101)
BLANKS = " \t"
HEADING_LINE = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section(StrictRecord):
    """A part of a document; the id is local to it."""

    id: Identifier
    level: Annotated[int, Must(f"an integer from 0 to {LEVELS[-1]}", LEVELS.__contains__)]
    heading: str
    content: str
    subsections: "Listed[Section]" = ()


@dataclass(frozen=True, slots=True)
class Document(StrictRecord):
    """A document; as it is read, with its sections flattened, depth first."""

    id: Identifier
    title: str
    sections: Listed[Section] = ()
    source: str = ""
    summary: str = ""


def find_documents(directory: Path) -> list[Path]:
    """Return the JSON files of a documents directory, by name; `.gz` too."""
    names = ("*.json", "*.json.gz")
    return sorted(path for name in names for path in directory.glob(name) if path.is_file())


def read_document(path: Path) -> Document:
    """Return the document of a file. Errors name file and key."""
    document = read_as(Document, read_value(path), prefix=f"{path.name}, ")
    sections = tuple(_flatten(document.sections))
    repeated = [id for id, count in Counter(section.id for section in sections).items() if count > 1]
    if repeated:
        refuse(f"{path.name}, sections", f"has the id {repeated[0][:60]!a} more than once")
    return replace(document, sections=sections)


def find_text_and_spans(document: Document, path: Path) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of the document read from `path`, and the start and end of each section in it, in characters.

    The text is that of the `.md` file in the same folder, else the headings and contents of the sections. A section
    reaches from its heading to the next one, without its subsections. Its span is empty if the `.md` lacks its heading
    and content.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    markdown_file = next(
        (file for file in (path.with_name(f"{stem}.md{ending}") for ending in ("", ".gz")) if file.is_file()), None
    )
    if markdown_file is not None:
        text = read_text(markdown_file)
        return text, _find_spans(document.sections, text)
    texts = [
        "\n\n".join(piece for piece in (section.heading, section.content) if piece) for section in document.sections
    ]
    spans, at = [], 0
    for piece in texts:
        spans.append((at, at + len(piece)))
        at += len(piece) + 2
    return "\n\n".join(texts), spans


def _find_spans(sections: Sequence[Section], text: str) -> list[tuple[int, int]]:
    lines = _HeadingLines(text)
    starts: list[int | None] = []
    after = 0
    for section in sections:
        start = lines.find(section.heading.strip(), after)
        if start is None and (content := section.content.strip()):
            start = None if (at := text.find(content, after)) < 0 else at
        starts.append(start)
        if start is not None:
            after = start + 1
    spans, end = [], len(text)
    for start in reversed(starts):
        spans.append((end, end) if start is None else (start, end))
        end = end if start is None else start
    return spans[::-1]


class _HeadingLines:
    """The lines of a Markdown text that begin a heading. Each is looked at once, not once for each section."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._by_words: dict[str, list[int]] = {}
        self._starts: dict[str, list[int]] = {}
        for line in HEADING_LINE.finditer(text):
            self._by_words.setdefault(_strip_marks(line[1]), []).append(line.start())

    def find(self, heading: str, after: int) -> int | None:
        """Return the start of the first line with a heading that is not blank, from the character `after` on."""
        starts = self._starts.get(heading)
        if starts is None:
            pattern = re.compile(rf" {{0,3}}#{{1,6}}[ \t]+{re.escape(heading)}[ \t]*(?:#+[ \t]*)?$", re.MULTILINE)
            lines = self._by_words.get(_strip_marks(heading.partition("\n")[0]), []) if heading else []
            starts = self._starts[heading] = [start for start in lines if pattern.match(self._text, start)]
        position = bisect_left(starts, after)
        return starts[position] if position < len(starts) else None


def _strip_marks(words: str) -> str:
    return words.rstrip(BLANKS).rstrip("#").rstrip(BLANKS)


def _flatten(sections: Iterable[Section]) -> Iterator[Section]:
    for section in sections:
        yield section
        yield from _flatten(section.subsections)
