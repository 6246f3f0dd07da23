"""At which rank a run finds the sections that judgments name, from the lists that are stored (formats.md)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Q

from apps.benchmarks.evaluating import rankings_of, truth_of
from apps.benchmarks.models import Evaluation
from apps.collections.models import Section
from apps.datasets.models import alive_in
from apps.mappings.fingerprints import truth_hash
from apps.mappings.models import Resolution
from apps.results.kept import KeptError, kept_chunks
from apps.retrieval.models import Chunk
from benchbench.ir.sections import SectionHit, doc_rank, doc_recall, reciprocal, section_rank, section_recall

Span = tuple[int, int, str]
"""First character, one past the last, section id."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A judgment that names sections: its query, its document (None: unresolved) and the sections' ids."""

    query_id: int
    document: int | None
    sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SectionRow:
    """Means at one cutoff over all judgments that name sections."""

    k: int
    doc_recall: float
    section_recall: float


@dataclass(frozen=True, slots=True)
class SectionMeans:
    """How well a run finds documents and sections; `n` judgments name sections and their query was answered."""

    n: int
    rows: list[SectionRow]
    doc_mrr: float
    section_mrr: float


def section_means(evaluation: Evaluation) -> SectionMeans | None:
    """Return the section-level means of an evaluation's run; None where no relevant judgment names sections.

    A chunk's section is the one whose span overlaps it most; of spans that overlap alike, the shortest. Each judgment
    counts once; one that is unresolved is not found, or left out, by the evaluation's policy; queries that failed are
    left out. Raises KeptError where the run's chunks cannot be told from what is stored, or not its judgments any more.
    """
    run = evaluation.run
    expected = _expected(evaluation)
    if not expected:
        return None
    rankings = rankings_of(run)
    asked = [one for one in expected if one.query_id in rankings]
    if not asked:
        return None
    if truth_hash(truth_of(run.benchmark, evaluation.dataset_version)) != evaluation.truth_hash:
        raise KeptError(
            "The mapping was resolved anew since this run was measured, and its judgments stand for other documents: "
            "re-score the benchmark."
        )
    hits = _hits(kept_chunks(run, {one.query_id: rankings[one.query_id] for one in asked}))
    return _means(asked, hits, run.benchmark.k_values)


def _means(
    asked: Sequence[Expected], hits: Mapping[int, Sequence[SectionHit]], k_values: Iterable[int]
) -> SectionMeans:
    found = [(hits[one.query_id], one.document, one.sections) for one in asked]
    return SectionMeans(
        n=len(found),
        rows=[
            SectionRow(
                k,
                float(np.mean([doc_recall(ranked, document, k) for ranked, document, _ in found])),
                float(np.mean([section_recall(*one, k) for one in found])),
            )
            for k in k_values
        ],
        doc_mrr=float(np.mean([reciprocal(doc_rank(ranked, document)) for ranked, document, _ in found])),
        section_mrr=float(np.mean([reciprocal(section_rank(*one)) for one in found])),
    )


def _expected(evaluation: Evaluation) -> list[Expected]:
    """Return the relevant judgments of the evaluation's version that name sections, with their documents."""
    version = evaluation.dataset_version
    alive = alive_in(version.number, "judgment__") & alive_in(version.number, "judgment__query__")
    named = Q(judgment__grade__gt=0, judgment__section_refs__isnull=False)
    rows = Resolution.objects.filter(alive, named, mapping=evaluation.run.benchmark.mapping_id).order_by("judgment_id")
    columns = ("judgment__query_id", "document_id", "judgment__section_refs")
    found = [Expected(query, document, tuple(refs)) for query, document, refs in rows.values_list(*columns) if refs]
    drop = evaluation.policies.get("unresolved") == "drop"
    return [one for one in found if one.document is not None or not drop]


def _hits(chunks: Mapping[int, Sequence[int]]) -> dict[int, list[SectionHit]]:
    """Return what each query found, chunk by chunk, best first, in two queries."""
    every = {chunk for found in chunks.values() for chunk in found}
    rows = Chunk.objects.filter(pk__in=every).values_list("pk", "document_id", "section__section_id", "start", "end")
    known: dict[int, tuple[Any, ...]] = {pk: rest for pk, *rest in rows.iterator(chunk_size=10_000)}  # type: ignore[misc]
    spans = _spans({document for document, *_ in known.values()})
    hit = {
        pk: SectionHit(document, stated or section_at(start, end, spans.get(document, ())))
        for pk, (document, stated, start, end) in known.items()
    }
    return {query: [hit[chunk] for chunk in found] for query, found in chunks.items()}


def _spans(documents: set[int]) -> dict[int, list[Span]]:
    spans: dict[int, list[Span]] = {}
    rows = Section.objects.filter(document__in=documents).order_by("document", "ordinal")
    for document, start, end, name in rows.values_list("document_id", "start", "end", "section_id"):
        spans.setdefault(document, []).append((start, end, name))
    return spans


def section_at(start: int, end: int, spans: Sequence[Span]) -> str | None:
    """Return the section that overlaps [start, end) most, of equals the shortest, then the first; None without one."""
    overlaps = [(min(end, last) - max(start, first), first - last, name) for first, last, name in spans]
    best = max(overlaps, key=lambda one: one[:2], default=None)
    return best[2] if best is not None and best[0] > 0 else None


def names_sections(evaluation: Evaluation) -> bool:
    """Tell whether any judgment of the evaluation's version names sections."""
    judgments: Any = evaluation.dataset_version.judgments
    return bool(judgments.filter(section_refs__isnull=False).exclude(section_refs=[]).exists())
