"""Ranks of the expected document and its sections, by the rules of the strategy benchmark."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

NOT_FOUND = -1
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SectionHit:
    """A hit of a search: its document, and its section if any. Section ids are local to their document."""

    document: Hashable
    section: Hashable | None = None


def doc_rank(hits: Sequence[SectionHit], document: Hashable) -> int:
    """Return the rank, from 1, of the document in the ranking collapsed to documents, or NOT_FOUND."""
    return _rank(list(dict.fromkeys(hit.document for hit in hits)), {document})


def section_rank(hits: Sequence[SectionHit], document: Hashable, sections: Collection[Hashable]) -> int:
    """Return the rank, from 1, among distinct (document, section) of the first expected section; NOT_FOUND without one.

    A section counts only in its own document.
    """
    return _rank(_list_distinct(hits), {(document, section) for section in sections})


def section_share(hits: Sequence[SectionHit], document: Hashable, sections: Collection[Hashable], k: int) -> float:
    """Return the share of expected sections among the first k distinct (document, section); 0 without expected ones."""
    expected = {(document, section) for section in sections}
    return len(expected.intersection(_list_distinct(hits)[:k])) / len(expected) if expected else 0.0


def reciprocal(rank: int) -> float:
    """Return 1 / rank; 0 if nothing was found."""
    return 0.0 if rank == NOT_FOUND else 1 / rank


def order_statistic(values: Sequence[float], p: float) -> float | None:
    """Return sorted[min(⌊n · p⌋, n − 1)], by which summary.csv defines its p50 and p95; None without values."""
    return sorted(values)[min(int(len(values) * p), len(values) - 1)] if values else None


def consistency(rankings: Sequence[Sequence[Sequence[Hashable]]]) -> float | None:
    """Return the share of queries whose document lists are equal in all repetitions; `rankings[query][repetition]`.

    None without queries.
    """
    same = [all(list(ranking) == list(repetitions[0]) for ranking in repetitions) for repetitions in rankings]
    return sum(same) / len(same) if same else None


def _list_distinct(hits: Sequence[SectionHit]) -> list[tuple[Hashable, Hashable | None]]:
    return list(dict.fromkeys((hit.document, hit.section) for hit in hits))


def _rank(ranking: Sequence[T], expected: Collection[T]) -> int:
    return next((rank for rank, item in enumerate(ranking, start=1) if item in expected), NOT_FOUND)
