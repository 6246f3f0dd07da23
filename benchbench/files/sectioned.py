"""Sectioned documents and the questions about them, as the retrieval-strategy benchmark keeps them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbench.files.errors import FileFormatError
from benchbench.files.json_writing import array
from benchbench.reading.fields import Fields, without_nulls
from benchbench.reading.strict_json import kind, read_text, read_value

DOCUMENT_KEYS = ("id", "title", "source", "summary", "sections")
SECTION_KEYS = ("id", "heading", "level", "content", "subsections")
QUESTION_KEYS = (
    *("id", "question", "answer", "document_id", "section_ids", "evidence"),
    *("difficulty", "query_type"),
)
LEVELS = range(101)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document; the id is local to it."""

    id: str
    heading: str
    level: int
    content: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its sections flattened, depth first."""

    id: str
    title: str
    sections: tuple[Section, ...]
    source: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answer, and the document and sections that hold it."""

    id: str
    question: str
    answer: str
    document_id: str
    section_ids: tuple[str, ...]
    evidence: tuple[Any, ...]
    difficulty: str
    query_type: str


def find_documents(directory: Path) -> list[Path]:
    """Return the JSON files of a documents directory, by name; `.gz` too."""
    names = ("*.json", "*.json.gz")
    return sorted(path for name in names for path in directory.glob(name) if path.is_file())


def read_document(path: Path) -> Document:
    """Return the document that a file states; raises a sentence that names file and key."""
    fields = Fields(without_nulls(read_value(path)), DOCUMENT_KEYS, prefix=f"{path.name}, ")
    sections = tuple(_sections(fields, "sections"))
    repeated = [id for id, count in Counter(section.id for section in sections).items() if count > 1]
    if repeated:
        raise fields.error("sections", f"has the id {repeated[0][:60]!a} more than once")
    return Document(
        id=fields.identifier("id"),
        title=fields.string("title"),
        sections=sections,
        source=fields.string("source", default=""),
        summary=fields.string("summary", default=""),
    )


def read_ground_truth(path: Path) -> list[Question]:
    """Return the questions of a ground_truth.json in file order; raises a sentence that names file and key."""
    value = read_value(path)
    if not isinstance(value, list):
        raise FileFormatError(f"{path.name} must be a list of questions, not {kind(value)}.")
    questions = [_question(item, f"{path.name}[{index}].") for index, item in enumerate(value)]
    repeated = [id for id, count in Counter(question.id for question in questions).items() if count > 1]
    if repeated or not questions:
        what = f"has the id {repeated[0][:60]!a} more than once" if repeated else "holds no question"
        raise FileFormatError(f"{path.name} {what}.", field="id")
    return questions


def write_ground_truth(questions: Iterable[Question]) -> Iterator[str]:
    """Yield the ground_truth.json of these questions."""
    yield from array({name: getattr(question, name) for name in QUESTION_KEYS} for question in questions)
    yield "\n"


def text_and_spans(document: Document, path: Path) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of the document read from `path`, and where in it each section begins and ends, in characters.

    The text is that of the `.md` file beside it, else the headings and contents of the sections. A section reaches from
    its heading to that of the next one, its subsections not included. One whose heading and content the `.md` lacks has
    an empty span.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    beside = next(
        (file for file in (path.with_name(f"{stem}.md{ending}") for ending in ("", ".gz")) if file.is_file()), None
    )
    if beside is not None:
        text = read_text(beside)
        return text, _found_spans(document.sections, text)
    parts = ["\n\n".join(part for part in (section.heading, section.content) if part) for section in document.sections]
    spans, at = [], 0
    for part in parts:
        spans.append((at, at + len(part)))
        at += len(part) + 2
    return "\n\n".join(parts), spans


def _found_spans(sections: Sequence[Section], text: str) -> list[tuple[int, int]]:
    starts: list[int | None] = []
    after = 0
    for section in sections:
        start = _find(section, text, after)
        starts.append(start)
        if start is not None:
            after = start + 1
    spans, end = [], len(text)
    for start in reversed(starts):
        spans.append((end, end) if start is None else (start, end))
        end = end if start is None else start
    return spans[::-1]


def _find(section: Section, text: str, after: int) -> int | None:
    heading = section.heading.strip()
    if heading:
        line = re.compile(rf"^ {{0,3}}#{{1,6}}[ \t]+{re.escape(heading)}[ \t]*#*[ \t]*$", re.MULTILINE)
        if found := line.search(text, after):
            return found.start()
    content = section.content.strip()
    at = text.find(content, after) if content else -1
    return None if at < 0 else at


def _sections(fields: Fields, key: str) -> Iterator[Section]:
    for index, item in enumerate(fields.items(key, default=[])):
        inner = Fields(without_nulls(item), SECTION_KEYS, prefix=f"{fields.prefix}{key}[{index}].")
        level = inner.value("level")
        if type(level) is not int or level not in LEVELS:
            raise inner.error("level", f"must be an integer from 0 to {LEVELS[-1]}")
        yield Section(inner.identifier("id"), inner.string("heading"), level, inner.string("content"))
        yield from _sections(inner, "subsections")


def _question(item: Any, prefix: str) -> Question:
    fields = Fields(without_nulls(item), QUESTION_KEYS, prefix=prefix)
    fields.items("section_ids")
    return Question(
        id=fields.identifier("id"),
        question=fields.filled("question"),
        answer=fields.string("answer"),
        document_id=fields.identifier("document_id"),
        section_ids=tuple(fields.strings("section_ids")),
        evidence=tuple(fields.items("evidence")),
        difficulty=fields.string("difficulty", default="unknown"),
        query_type=fields.string("query_type", default="unknown"),
    )
