"""Records of documents: readers yield them, importing takes them."""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from hashlib import sha256

from benchbench.errors import BenchbenchError
from benchbench.ir.chunking import find_first_sentences
from benchbench.reading.ids import SHA256
from benchbench.reading.strict_json import fault

LIMITS = {"external_id": 500, "file_name": 500, "content_hash": 64}
URI_BYTES = 2000
SECTION_ID_LENGTH = 200


class DocumentError(BenchbenchError):
    """A document cannot be stored; the message names it and its place in the source."""

    code = "invalid_document"
    reading: "Reading | None" = None  # of the table until there


@dataclass
class Reading:
    """Description of what was read of a file: columns of a table with their fields, "" if not read, and sentences.

    `samples` are how the first cells of columns begin.
    """

    columns: dict[str, str] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SectionRecord:
    """A part of a document's text that judgments may point at; `start` and `end` count characters."""

    section_id: str
    heading: str = ""
    level: int = 1
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document as its source states it.

    `content_hash` is the SHA-256 of the file's bytes; left blank, it is that of title, newline, text. `sections` are in
    the order of the document, depth first. `location` is its place in the source, for errors: "corpus.jsonl, line 3".
    """

    external_id: str
    title: str
    text: str
    uri: str = ""
    file_name: str = ""
    content_hash: str = ""
    metadata: dict[str, object] = field(default_factory=dict)
    sections: Sequence[SectionRecord] = ()
    location: str = ""

    @property
    def summary(self) -> str:
        """Return the `summary` in the document's metadata, if that is a text; else its first sentences."""
        summary = self.metadata.get("summary")
        return summary.strip() if isinstance(summary, str) and summary.strip() else find_first_sentences(self.text)

    def hash(self) -> str:
        return self.content_hash or sha256(f"{self.title}\n{self.text}".encode()).hexdigest()

    def digest(self) -> bytes:
        """Return 16 bytes that are the same for equal records."""
        content = (*self._list_texts(), self.metadata, [astuple(section) for section in self.sections])
        return sha256(json.dumps(content, sort_keys=True).encode()).digest()[:16]

    def check(self) -> None:
        """Raise a `DocumentError` for what the database would refuse."""
        if not self.external_id.strip():
            raise self.build_error("has no id", "external_id")
        for name, limit in LIMITS.items():
            if len(getattr(self, name)) > limit:
                raise self.build_error(f"has more than {limit} characters in its {name}", name)
        if self.content_hash and not SHA256.fullmatch(self.content_hash):
            raise self.build_error("has a content_hash that is not 64 hexadecimal digits (SHA-256)", "content_hash")
        if problem := fault([*self._list_texts(), self.metadata, [astuple(section)[:2] for section in self.sections]]):
            raise self.build_error(problem)
        if len(self.uri.encode()) > URI_BYTES:  # an index entry of PostgreSQL holds no more
            raise self.build_error(f"has more than {URI_BYTES} bytes in its uri", "uri")
        self._check_sections()

    def build_error(self, problem: str, field: str | None = None) -> DocumentError:
        suffix = f" ({self.location})" if self.location else ""
        return DocumentError(f"The document {self.external_id[:100]!a}{suffix} {problem}.", field=field)

    def _list_texts(self) -> tuple[str, ...]:
        return self.external_id, self.title, self.text, self.uri, self.file_name, self.content_hash

    def _check_sections(self) -> None:
        ids = set()
        for section in self.sections:
            name = section.section_id
            if not name.strip() or len(name) > SECTION_ID_LENGTH:
                raise self.build_error(
                    f"has a section whose id is blank or longer than {SECTION_ID_LENGTH}", "sections"
                )
            if name in ids:
                raise self.build_error(f"has two sections with the id {name!a}", "sections")
            if not 0 <= section.start <= section.end <= len(self.text):
                raise self.build_error(
                    f"has a section {name!a} that ends before it begins or outside the text", "sections"
                )
            ids.add(name)
