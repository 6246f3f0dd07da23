"""Reading a folder of text, Markdown and HTML files as documents; headings begin their sections."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from apps.collections.records import SECTION_ID_LENGTH, DocumentRecord, SectionRecord
from benchbench.decimals import list_some
from benchbench.errors import BenchbenchError
from benchbench.markup import shorten_references
from benchbench.reading.strict_json import decode
from benchbench.texts.storable import is_storable

MARKDOWN_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t])")
BLANKS = " \t"
FENCE = re.compile(r" {0,3}(?P<mark>```|~~~)")


class Heading(NamedTuple):
    """A heading: its words, its level from 1, its start in the text, and its `id` in the source, if any."""

    title: str
    level: int
    start: int
    id: str = ""


def yield_headings(source: str) -> Iterator[Heading]:
    """Yield the `# headings` of Markdown that are not blank and not in fenced code."""
    fence, start = "", 0
    for line in source.splitlines(keepends=True):
        if opened := FENCE.match(line):
            mark = opened["mark"]
            fence = "" if fence == mark else fence or mark
        elif not fence and (marks := MARKDOWN_HEADING.match(line)) and (title := _strip_marks(line[marks.end() :])):
            yield Heading(title, len(marks[1]), start)
        start += len(line)


def _strip_marks(written: str) -> str:
    """Return the words of a heading without the blanks around them and the marks that close it."""
    title = written.rstrip("\r\n").strip(BLANKS)
    without = title.rstrip("#")
    return without.rstrip(BLANKS) if without.endswith((" ", "\t")) else title


def build_sections(headings: Sequence[Heading], length: int) -> list[SectionRecord]:
    """Return the sections of a text of `length` characters: each from its heading to the next, of any level.

    Text before the first heading belongs to no section. A section's name is its id in the source, else its heading in
    small letters with hyphens; a repeated name gets a number.
    """
    ends = [*(heading.start for heading in headings), length][1:]
    sections: list[SectionRecord] = []
    taken: dict[str, int] = {}
    for heading, end in zip(headings, ends, strict=True):
        name = _find_free_name(heading.id if heading.id.strip() else _build_slug(heading.title), taken)
        sections.append(SectionRecord(name, heading.title, heading.level, heading.start, end))
    return sections


def _build_slug(title: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) or "section"


def _find_free_name(name: str, taken: dict[str, int]) -> str:
    """Return a free name and take it. `taken` has the last number tried for each, so that none is tried again."""
    name = name[: SECTION_ID_LENGTH - 10]
    number, free = taken.get(name, 0), name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken[name], taken[free] = number, taken.get(free, 0)
    return free


MARK = "\ud800"  # marks the start of a heading: a lone surrogate, which no decoded text contains
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
UNSEEN = ("script", "style", "template", "noscript")
INLINE = re.compile(
    "a|abbr|b|bdi|bdo|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strong|sub|sup|time|tt|u|"
    "var|wbr"
)


def read_html(source: str) -> tuple[str, str, list[Heading]]:
    """Return (title, text, headings) of an HTML page.

    The title is that of `<title>`, else the first `<h1>`, else "". The text is the visible text: a line per block
    element, white space collapsed except in `<pre>`, without scripts and styles. Headings without words are ignored.
    """
    page = _Page()
    page.feed(shorten_references(source))
    page.close()
    lines = (line.rstrip() for line in "".join(page.parts).split("\n"))
    marked = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    before, *segments = marked.split(MARK)
    headings, start = [], len(before)
    for (level, id, words), segment in zip(page.headings, segments, strict=True):
        headings.append(Heading(_collapse(words), level, start, id))
        start += len(segment)
    return _collapse(page.title) or _collapse(page.heading), marked.replace(MARK, ""), headings


def _collapse(texts: Iterable[str]) -> str:
    return " ".join("".join(texts).split())


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self.heading: list[str] = []
        self.inside: dict[str, int] = dict.fromkeys({*UNSEEN, "title", "h1", "pre"}, 0)
        self.titled = self.headed = False
        self.headings: list[tuple[int, str, list[str]]] = []  # level, id, words of those that have any
        self.within: tuple[int, str] | None = None  # level and id of the heading that is open
        self.is_marked = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.inside:
            self.inside[tag] += 1
        self._break(tag)
        if tag in HEADINGS:
            self.within, self.is_marked = (int(tag[1]), dict(attrs).get("id") or ""), False

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside.get(tag):
            self.inside[tag] -= 1
        self.titled |= tag == "title"
        self.headed |= tag == "h1"
        if tag in HEADINGS:
            self.within = None
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if any(self.inside[tag] for tag in UNSEEN):
            return
        if self.inside["title"]:
            if not self.titled:
                self.title.append(data)
            return
        if self.inside["h1"] and not self.headed:
            self.heading.append(data)
        seen = data if self.inside["pre"] else self._join_spaces(data)
        self.parts.append(self._mark_heading(seen) if self.within and data.strip() else seen)

    def _mark_heading(self, words: str) -> str:
        """Collect words of the open heading; a mark of their place in the text precedes the first."""
        assert self.within is not None
        if self.is_marked:
            self.headings[-1][2].append(words)
            return words
        self.headings.append((*self.within, [words]))
        self.is_marked = True
        return words[: -len(words.lstrip())] + MARK + words.lstrip()

    def _join_spaces(self, data: str) -> str:
        text = re.sub(r"\s+", " ", data)
        ended = not self.parts or self.parts[-1].endswith(("\n", " "))
        return text.lstrip() if ended else text

    def _break(self, tag: str) -> None:
        if not INLINE.fullmatch(tag) and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")


MARKDOWN = (".md", ".markdown")
HTML = (".html", ".htm")
KINDS = (*MARKDOWN, *HTML, ".txt", ".rst")


class FolderError(BenchbenchError):
    """A folder, or a file in it, cannot be read as documents."""

    code = "invalid_document"


@dataclass(frozen=True)
class FolderScan:
    """The document files of a folder and the files of other kinds, as relative paths in code point order."""

    folder: Path
    files: tuple[str, ...]
    skipped: tuple[str, ...] = ()


def scan(path: Path) -> FolderScan:
    """Find the documents of a folder. Hidden files and folders, and links that lead out of it, are skipped."""
    if not path.is_dir():
        raise FolderError(f"{path} is not a folder.")
    folder = Path(os.path.abspath(path))
    files, skipped = [], []
    for parent, names, file_names in os.walk(folder, onerror=_refuse):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in file_names:
            file = Path(parent, name)
            if name.startswith(".") or not file.resolve().is_relative_to(folder.resolve()):
                continue
            if file.suffix.lower() in KINDS and file.is_file():
                files.append(file.relative_to(folder).as_posix())
            else:
                skipped.append(file.relative_to(folder).as_posix())
    if not files:
        raise FolderError(
            f"{path.name or path} holds no document: looked for files that end in {', '.join(sorted(KINDS))}."
            f"{' ' if skipped else ''}{describe_skipped(sorted(skipped))}"
        )
    return FolderScan(folder, tuple(sorted(files)), tuple(sorted(skipped)))


def describe_skipped(names: Sequence[str]) -> str:
    """Return the sentence about files that are not read, with the remedy; "" for none."""
    return f"Not read: {list_some(names)}. Save them as .txt, .md or .html to search them." if names else ""


def read_files(folder_scan: FolderScan, *, uri_prefix: str | None = None) -> Iterator[DocumentRecord]:
    """Yield the documents of a scanned folder.

    `external_id` is the relative path with slashes; `uri` is `uri_prefix` followed by it; without a prefix, `file://`
    followed by the absolute path. `content_hash` is the SHA-256 of the file's bytes. The title is the first Markdown
    heading, the `<title>` or `<h1>` of HTML, else the file name without its ending. Headings begin sections. Files must
    be UTF-8.
    """
    for relative in folder_scan.files:
        yield _read_document(folder_scan.folder, relative, uri_prefix)


def _read_document(folder: Path, relative: str, uri_prefix: str | None) -> DocumentRecord:
    if not is_storable(relative):
        raise FolderError(f"The name of the file {relative!a} is not UTF-8: rename it.")
    file = folder / relative
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FolderError(f"{relative} cannot be read: {error.strerror}.") from None
    title, text, headings = _read(decode(content, location=relative), file.suffix.lower())
    return DocumentRecord(
        external_id=relative,
        title=title or file.stem,
        text=text,
        uri=f"file://{file.as_posix()}" if uri_prefix is None else uri_prefix + relative,
        file_name=file.name,
        content_hash=sha256(content).hexdigest(),
        sections=build_sections(headings, len(text)),
        location=relative,
    )


def _read(source: str, ending: str) -> tuple[str, str, list[Heading]]:
    """Return title, text and headings of a file."""
    if ending in HTML:
        return read_html(source)
    headings = list(yield_headings(source)) if ending in MARKDOWN else []
    return (headings[0].title if headings else ""), source, headings


def _refuse(error: OSError) -> None:
    raise FolderError(f"The folder {error.filename} cannot be read: {error.strerror}.")
