"""Rereading of judgments whose references match no document: they may hold file names, addresses, titles or paths."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from django.conf import settings

from apps.collections.models import Collection, list_live
from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from apps.mappings.references import InvalidReferenceError, read_reference, resolve_reference
from apps.mappings.resolving import CHUNK, load_catalogue
from benchbench.errors import ConflictError
from benchbench.texts.words import normalize

SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?")
ENDINGS = {".pdf", ".md", ".markdown", ".txt", ".html", ".htm", ".docx", ".doc", ".odt", ".rst", ".json", ".xml"}


class UnmatchedError(ConflictError):
    """No judgment has a document in the collection, or several readings have as many and mean other documents."""


class Names(NamedTuple):
    """Names of a document. A reference gets the `external_id` as the key document_id."""

    pk: int
    external_id: str
    uri: str
    file_name: str
    title: str


@lru_cache(maxsize=2**18)
def _fold(path: str) -> str:
    """Return a path without what systems and links spell in different ways: case, letters, %20, separators, https."""
    folded = normalize(unquote(path), "NFC").casefold().replace("\\", "/").strip()
    return SCHEME.sub("", folded).removeprefix("./").strip("/")


def _fold_end(path: str) -> str:
    return _fold(path).rpartition("/")[2]


def _fold_stem(path: str) -> str:
    return re.sub(r"\.(?!\d+$)\w{1,8}$", "", _fold_end(path))  # 2.1 has no ending


def _fold_number(path: str) -> str:
    """Return an id that is a number without the zeros that spreadsheets remove and add: 00123 and 123.0 are 123."""
    digits, _, decimals = path.strip().partition(".")
    is_number = digits.isascii() and digits.isdecimal() and not decimals.strip("0")
    return (digits.lstrip("0") or "0") if is_number else _fold(path)


def _is_changed(text: str, name: str) -> bool:
    """Return whether a name may be a text in which programs changed folders and endings.

    One has the folders of the other and perhaps more; an ending is missing, or both are of documents. So en/a.md is not
    de/a.md, and 10.1000/182 not 10.2000/182.
    """
    ends = [_fold_end(path)[len(_fold_stem(path)) :] for path in (text, name)]
    folders = sorted((_fold(path).rpartition("/")[0] for path in (text, name)), key=len)
    has_folders = not folders[0] or f"/{folders[1]}".endswith(f"/{folders[0]}")
    return has_folders and (ends[0] == ends[1] or "" in ends or {*ends} <= ENDINGS)


# What references may hold: their new key, the field of documents that they equal, and how both are compared.
READINGS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "ids": ("document_id", "external_id", str),
    "file names": ("file_name", "file_name", str),
    "addresses": ("uri", "uri", str),
    "titles": ("", "title", str.strip),
    "ids in another spelling": ("", "external_id", _fold),
    "addresses in another spelling": ("", "uri", _fold),
    "paths that end with a file name": ("", "file_name", _fold_end),
    "file names with other endings": ("", "file_name", _fold_stem),
    "numbers without leading zeros": ("", "external_id", _fold_number),
    "ids without folders and endings": ("", "external_id", _fold_stem),
}


@dataclass(frozen=True)
class Reading:
    """A reading of references: what they hold, the key of a table's column that does, if any, and what they mean.

    `meant` has the new reference by the text of the old one. Of `total` texts, `written` match a document as they are.
    """

    words: str
    key: str
    meant: Mapping[str, dict[str, str]]
    written: int
    total: int

    @property
    def _counts(self) -> str:
        return f"{self.written + len(self.meant):,} of {self.total:,}"

    @property
    def sentence(self) -> str:
        return (
            f"{self.written:,} of {self.total:,} references match a document as written; the others were read as "
            f"{self.words}: {self._counts} match."
        )

    @property
    def remedy(self) -> str:
        by_key = f", or import them with their column as {self.key}, under Columns"
        return (
            f"As {self.words}, {self._counts} match: upload the queries with this collection on New evaluation, which "
            f"reads them so{by_key if self.key else ''}."
        )

    def apply(self, record: DatasetRecord) -> DatasetRecord:
        """Return the record with the new references. Raises DatasetError if two mean one document with two grades."""
        return replace(
            record,
            queries=[replace(query, judgments=self._reread(query)) for query in record.queries],
            description=f"{record.description} {self.sentence}".strip(),
            warnings=(*record.warnings, self.sentence),
        )

    def _reread(self, query: QueryRecord) -> list[JudgmentRecord]:
        judgments: dict[str, JudgmentRecord] = {}
        for judgment in query.judgments:
            text = _find_text(judgment.doc_ref)
            new = replace(judgment, doc_ref=self.meant.get(text, judgment.doc_ref))
            before = judgments.setdefault(new.canonical_ref, new)
            if before.grade != new.grade:
                raise DatasetError(
                    f"Read as {self.words}, {text[:60]!a} of the query {query.key[:60]!a} has the grade {new.grade}, "
                    f"but its document had {before.grade} before: keep one of the two judgments.",
                    field="grade",
                )
        return [*judgments.values()]


def find_reading(doc_refs: Iterable[object], collection: Collection) -> Reading | None:
    """Return the reading by which most references match a document of `collection`, if few match one as written.

    None if more than half of the first references match as written, or no more than half of all, or less than half of
    the others, in any other way that agrees with those, and for more documents than are looked up at once
    (BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS). Raises UnmatchedError if by two such readings a reference means other
    documents.
    """
    is_external = collection.kind == Collection.Kind.EXTERNAL
    if is_external or collection.document_count > settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS:
        return None
    remaining, written = iter(doc_refs), dict[str, int | None]()
    while chunk := list(islice(remaining, CHUNK)):
        catalogue = load_catalogue(collection, chunk)
        for doc_ref in chunk:  # a text may be an id here, and a file name there
            text = _find_text(doc_ref)
            written[text] = written.get(text) or resolve_reference(doc_ref, catalogue).document_id
        if 2 * len([pk for pk in written.values() if pk]) > len(written):
            return None
    matching = {text for text, pk in written.items() if pk}
    documents = [Names(*row) for row in list_live(collection).values_list(*Names._fields)]
    matches = {words: _match(written, documents, field, fold) for words, (_, field, fold) in READINGS.items()}
    _fold.cache_clear()
    matches = {
        words: {text: names for text, names in matched.items() if text not in matching}
        for words, matched in matches.items()
        if all(written[text] in (None, names.pk) for text, names in matched.items())
    }
    words = max(matches, key=lambda each: len(matches[each]), default="")
    unmatched = len(written) - len(matching)
    if not words or 2 * (len(matching) + len(matches[words])) <= len(written) or 2 * len(matches[words]) < unmatched:
        return None
    for rival, matched in matches.items():
        is_other = any(matches[words].get(text, names) != names for text, names in matched.items())
        if is_other and 2 * len(matched) >= unmatched:
            raise UnmatchedError(
                f'Read as {words} or as {rival}, judgments match documents of "{collection}", but not the same: '
                "choose what their column holds, under Columns, or write ids.",
                field="columns",
                by_command="--column FIELD=COLUMN",
            )
    key, *_ = READINGS[words]
    meant = {
        text: {key: getattr(names, key)} if key in Names._fields else {"document_id": names.external_id}
        for text, names in matches[words].items()
    }
    return Reading(words, key, meant, len(matching), len(written)) if meant else None


def _match(texts: Iterable[str], documents: list[Names], field: str, fold: Callable[[str], str]) -> dict[str, Names]:
    """Return the one document that each text means; none for a text that means several, nor for several of one."""
    by_name: dict[str, Names | None] = {}
    for document in documents:
        name = fold(getattr(document, field))
        by_name[name] = None if name in by_name else document
    by_name[""] = None
    matched = {text: by_name.get(fold(text)) for text in texts}
    if fold is _fold_stem:
        matched = {
            text: names if names and _is_changed(text, getattr(names, field)) else None
            for text, names in matched.items()
        }
    by_document = defaultdict[Names, list[str]](list)
    for text, names in matched.items():
        if names:
            by_document[names].append(text)
    alike = {names: each for names, each in by_document.items() if len(each) == 1 or len({*map(_fold, each)}) == 1}
    return {text: names for names, each in alike.items() for text in each}


def _find_text(doc_ref: object) -> str:
    try:
        return read_reference(doc_ref).value
    except InvalidReferenceError:
        return ""
