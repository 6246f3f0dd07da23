"""Search by words over a chunk set: BM25 by one or more analyzers, and PostgreSQL's full text."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from apps.retrieval.analysis.analyzers import Analyzer, describe_missing_parts
from apps.retrieval.models import ChunkSet, Index, LexicalIndex
from apps.retrieval.search import full_text
from apps.retrieval.search.lexical import Bm25
from apps.retrieval.search.lexical_indexes import (
    USUAL,
    OutdatedWordsError,
    choose_analyzer,
    describe_outdated,
    find_lexical_index,
    has_outdated_words,
    load_lexical_index,
    locate_lexical_index,
    make_lexical_index,
    read_current_analyzer,
)
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.lexical import FULL_TEXT, Lexical
from benchbench.ir.records import Mask, ScoredList
from benchbench.local_files.sealed import find_identity, is_unchanged

NO_TERM, UNKNOWN_TERMS = "no term", "unknown terms"  # of a query that finds nothing


class SearchError(BenchbenchError):
    """An index cannot be searched, or not in this way."""

    code = "search"


def find_words(chunk_set: ChunkSet, setting: Lexical) -> LexicalIndex | None:
    """Return the stored words of a chunk set that a setting searches, or None."""
    if setting.engine == FULL_TEXT:
        return full_text.find_full_text(chunk_set, setting)
    return find_lexical_index(chunk_set, choose_analyzer(chunk_set, setting))


def make_words(chunk_set: ChunkSet, setting: Lexical) -> LexicalIndex:
    """Return the stored words that a setting searches, made if missing. Raises LexicalIndexError."""
    if setting.engine == FULL_TEXT:
        return full_text.make_full_text(chunk_set, setting)
    return make_lexical_index(chunk_set, setting)


def describe_outdated_words(index: Index, setting: Lexical = USUAL) -> str:
    """Return why the stored words of an index cannot be searched, as a sentence; "" if a setting can.

    Words that a run builds are never outdated: they are built again.
    """
    stored = None if setting.is_built_by_run else index.lexical_index
    if stored is None or read_current_analyzer(stored) is not None:
        return ""
    return describe_outdated(index)


def describe_missing_words(lexical: str) -> str:
    """Return why a setting cannot read texts on this site, as a clause; "" if it can."""
    setting = Lexical.parse(lexical)
    if setting.engine != FULL_TEXT:
        return describe_missing_parts(setting["words"], setting["stop"], setting["stem"])
    language = setting["language"]
    if not language or language in full_text.CONFIGURATIONS:
        return ""
    return f"PostgreSQL has no full text for {language}: use bm25(language={language})"


def read_terms(index: Index, setting: Lexical, texts: Sequence[str]) -> list[list[str]] | None:
    """Return the terms of texts as a search of an index reads them.

    None if its words or analyzer are not here or of another version, or the analyzer has a dictionary, which web
    requests never load.
    """
    assert index.chunk_set is not None
    if setting.engine == FULL_TEXT:
        words = full_text.find_full_text(index.chunk_set, setting)
        return full_text.parse_texts(words, texts) if words else None
    if index.lexical_index is None or describe_missing_words(str(setting)):
        return None
    usual = read_current_analyzer(index.lexical_index)
    analyzer = choose_analyzer(index.chunk_set, setting) if setting.is_built_by_run else usual
    return None if analyzer is None or analyzer.has_dictionary else [analyzer.analyze(text) for text in texts]


class OpenWords:
    """The words of an index, loaded for search by any setting. Chunks have the positions 0..n-1."""

    def __init__(self, index: Index) -> None:
        assert index.chunk_set is not None
        self._index, self._chunk_set = index, index.chunk_set
        self._loaded: dict[Analyzer | None, Bm25] = {}  # None: the usual words of the index
        self._mapped: dict[Path, Any] = {}
        self._loading = Lock()

    @property
    def is_current(self) -> bool:
        """Return whether the mapped files are unchanged since they were checked."""
        return all(is_unchanged(file, identity) for file, identity in self._mapped.items())

    @property
    def nbytes(self) -> int:
        return sum(bm25.nbytes for bm25 in self._loaded.values())

    def prepare(self, setting: Lexical) -> None:
        """Load what searches by a setting need."""
        if setting.engine != FULL_TEXT:
            self.load_bm25(setting)

    def search(
        self, setting: Lexical, texts: Sequence[str], depth: int, *, mask: Mask | None = None
    ) -> list[ScoredList]:
        """Return the best `depth` chunks that share a word with each text. Raises SearchError."""
        if setting.engine == FULL_TEXT:
            return full_text.search_full_text(self._require(setting), texts, depth, mask=mask)
        return self.load_bm25(setting).search(texts, depth, mask=mask)

    def explain_nothing(self, setting: Lexical, text: str) -> str:
        """Return NO_TERM or UNKNOWN_TERMS if no filter can make a text find something; "" if one may."""
        if setting.engine == FULL_TEXT:
            (terms,) = full_text.parse_texts(self._require(setting), [text])
            occurs = bool(len(full_text.search_full_text(self._require(setting), [text], 1)[0]))
        else:
            bm25 = self.load_bm25(setting)
            terms = bm25.analyzer.analyze(text)
            occurs = any(term in bm25.terms for term in terms)
        return "" if occurs else UNKNOWN_TERMS if terms else NO_TERM

    def load_bm25(self, setting: Lexical = USUAL) -> Bm25:
        """Return the BM25 index with the analyzer, k1 and b of a setting. Raises SearchError, LexicalIndexError."""
        usual = self._index.lexical_index
        if usual is None:
            raise SearchError(f'The index "{self._index}" has no BM25 index: make a version of it with BM25.')
        analyzer = choose_analyzer(self._chunk_set, setting) if setting.is_built_by_run else None
        with self._loading:
            bm25 = self._loaded.get(analyzer) or self._load(analyzer, self._require(setting) if analyzer else usual)
        return bm25.tune(setting["k1"], setting["b"])

    def _load(self, analyzer: Analyzer | None, stored: LexicalIndex) -> Bm25:
        bm25 = load_lexical_index(stored)
        bm25.search(["warm"], 1)  # triggers imports, to keep them out of the first query's cost
        file = locate_lexical_index(stored)
        self._mapped = self._mapped | {file: find_identity(file)}
        self._loaded = self._loaded | {analyzer: bm25}
        return bm25

    def _require(self, setting: Lexical) -> LexicalIndex:
        words = find_words(self._chunk_set, setting)
        if words is None and has_outdated_words(self._chunk_set, setting):
            raise OutdatedWordsError(describe_outdated(self._index))
        if words is None:
            raise SearchError(
                f'The chunks of the index "{self._index}" are not indexed for {setting}: start a benchmark with it to '
                "index them."
            )
        return words
