"""Warnings of what the searches of an index did not read: sentences with a number, an example and a remedy."""

from collections.abc import Collection, Iterator

from apps.retrieval.encoders.prompts import describe_missing_prompts
from apps.retrieval.models import Index, LexicalIndex
from apps.retrieval.search.full_text import CONFIGURATIONS
from apps.retrieval.search.lexical import read_analyzer
from apps.retrieval.search.word_stats import WordStats
from apps.retrieval.search.words import describe_outdated_words, find_words
from apps.retrieval.strategies.base import FIT
from benchbench.decimals import counted, format_share
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.lexical import BM25, FULL_TEXT, Lexical
from benchbench.texts.languages import UNKNOWN

UNUSUAL, AGREEING = 0.5, 0.8  # shares from which a warning is given


def list_run_warnings(index: Index, configurations: Collection[Configuration]) -> list[str]:
    """Return the warnings of what runs with these configurations do not read of an index."""
    reads_vectors = any(run.uses_vectors or run.interacts_late for run in configurations)
    warnings = list_vector_warnings(index) if reads_vectors else []
    if not any(run.uses_words for run in configurations):
        warnings += describe_empty(index)
    settings = (Lexical.parse(run.lexical) for run in configurations if run.uses_words)
    for setting in {setting.words: setting for setting in settings}.values():
        assert index.chunk_set is not None
        usual = None if setting.is_built_by_run else index.lexical_index
        stored = usual or find_words(index.chunk_set, setting)
        warnings += list_word_warnings(index, stored) if stored else []
    return warnings


def list_index_warnings(index: Index) -> list[str]:
    """Return the warnings of what an index, as it is built, did not read."""
    words = list_word_warnings(index, index.lexical_index) if index.lexical_index else describe_empty(index)
    return [*list_vector_warnings(index), *filter(None, [describe_outdated_words(index)]), *words]


def list_vector_warnings(index: Index) -> list[str]:
    return [*filter(None, (describe_missing_prompts(index.encoder, index.prompts), describe_cut(index)))]


def describe_empty(index: Index) -> list[str]:
    """Return how many chunks have no text, which a count of chunks without words includes."""
    empty = index.stats.get("empty")
    if not empty:
        return []
    number, total = empty["chunks"], index.stats["num_chunks"]
    have = "has" if number == 1 else "have"
    return [
        f'{number:,} of {counted(total, "chunk")} of the index "{index}" {have} no text, such as one of the document '
        f'"{empty["document"]}": check the texts of the documents, and build a new version.'
    ]


def describe_cut(index: Index) -> str:
    """Return how much of the chunks lies beyond the window of the encoder, as a sentence; "" if nothing is known to."""
    cut = index.stats.get("cut")
    if not cut:
        return ""
    number, total = cut["chunks"], index.stats.get("num_vectors", 0)
    return (
        f'The encoder of the index "{index}" reads {cut["window"]:,} tokens of a text: {number:,} of '
        f"{counted(total, 'chunk')} {'is' if number == 1 else 'are'} longer, and "
        f"{format_share(cut['cut_tokens'] / cut['tokens'])} of their tokens were not read. {_advise_on_cut(index)}"
    )


def _advise_on_cut(index: Index) -> str:
    if may_fit(index):
        return "Build an index that divides documents at the end of the encoder's input (fit_encoder)."
    if _has_cut_leaves(index):
        return "Build an index with smaller chunks."
    return "All of these are summaries: build an index with an encoder that reads more."


def may_fit(index: Index) -> bool:
    """Return whether chunks of an index were cut which a next version may divide instead."""
    return FIT not in index.chunk_parameters and _has_cut_leaves(index)


def _has_cut_leaves(index: Index) -> bool:
    leaves = index.chunk_set.chunk_count if index.chunk_set else 0
    return "cut" in index.stats and index.cut_chunks.filter(position__lt=leaves).exists()


def list_word_warnings(index: Index, stored: LexicalIndex) -> list[str]:
    stats = WordStats.from_dict(stored.stats)
    return list(_yield_word_warnings(index, stored, stats)) if stats else []


def _yield_word_warnings(index: Index, stored: LexicalIndex, stats: WordStats) -> Iterator[str]:
    if stored.engine == FULL_TEXT:
        engine, language = "full text", stored.parameters["configuration"]
    else:
        engine, language = "BM25", read_analyzer(stored.parameters).language
    if stats.without_terms:
        number = stats.without_terms
        chunks = stored.chunk_set.chunks.filter(position=stats.first_without or 0)
        document = chunks.values_list("document__external_id", flat=True).first()
        yield (
            f'{number:,} of {counted(stats.chunks, "chunk")} of the index "{index}" {"has" if number == 1 else "have"} '
            f'no word that {engine} reads, such as one of the document "{document}": check the texts of the documents, '
            "and their language."
        )
    if stats.unusual_share >= UNUSUAL:
        yield (
            f'{format_share(stats.unusual_share)} of the words that BM25 reads of the index "{index}" are unusually '
            f"short or long, such as “{stats.example}”: its analyzer of {language.capitalize()} texts does not divide "
            "them. Search by bm25(language=…) in their language."
        )
    is_alike = stats.guessed == (UNKNOWN if language == "simple" else language)
    if stats.guessed and not is_alike and stats.agreeing >= AGREEING * stats.sampled:
        has_rules = engine == "BM25" or stats.guessed in CONFIGURATIONS
        look = "look" if stats.agreeing > 1 else "looks"
        look += " to be in a language without rules" if stats.guessed == UNKNOWN else f" {stats.guessed.capitalize()}"
        remedy = f"{stored.engine if has_rules else BM25}(language={stats.guessed})"
        way = "alone, in lower case" if language == "simple" else f"as {language.capitalize()}"
        yield (
            f'{stats.agreeing:,} of {counted(stats.sampled, "sampled chunk")} of the index "{index}" {look}, '
            f"and {engine} reads their words {way}: search by {remedy}, or import the "
            "documents with their language."
        )
