"""Sections, evidence and expected answers in the chunks that a run found (docs/formats.md)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Annotated, Any, Literal

import numpy as np
from django.db.models import QuerySet

from apps.collections.states import Span, load_spans
from apps.datasets.models import DatasetVersion, Query, filter_alive
from apps.mappings.models import Resolution
from apps.mappings.truth import Unresolved, hash_truth
from apps.records.lists.reading import CutError, find_kept_chunks, load_rankings
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Benchmark, Evaluation, Run
from apps.retrieval.models import Chunk
from apps.verdicts.coverage import get_cached
from benchbench.database.binary import batched
from benchbench.errors import ConflictError
from benchbench.ir.content import answer_token_overlap, evidence_recall, rouge_l
from benchbench.ir.sections import SectionHit, doc_rank, reciprocal, section_rank, section_share


@dataclass(frozen=True, slots=True)
class Expected:
    """A relevant judgment: its query, its document (None: unresolved) and the ids of the sections that it names."""

    judgment_id: int
    query_id: int
    document: int | None
    sections: tuple[str, ...]

    @property
    def key(self) -> int:
        """Its key in a truth."""
        return Unresolved.from_judgment(self.judgment_id) if self.document is None else self.document


@dataclass(frozen=True, slots=True)
class SectionHits:
    """Result of a run for a judgment that names sections: the sections of the chunks that it kept, best first."""

    expected: Expected
    hits: Sequence[SectionHit]

    @property
    def doc_rank(self) -> int:
        return doc_rank(self.hits, self.expected.document)

    @property
    def section_rank(self) -> int:
        return section_rank(self.hits, self.expected.document, self.expected.sections)


@dataclass(frozen=True, slots=True)
class SectionRow:
    """Means at one cutoff over all judgments that name sections.

    How many have their document, and any of their sections, in the first k; and the share of their sections there.
    """

    k: int
    doc_recall: float
    section_recall: float
    section_share: float


@dataclass(frozen=True)
class SectionMeans:
    """Means of a run's document and section ranks; None without judgments."""

    judgments: Annotated[int, "Judgments that name sections and whose query was answered; 0: no means."]
    rows: list[SectionRow]
    doc_mrr: float | None
    section_mrr: float | None


def load_section_means(evaluation: Evaluation) -> SectionMeans:
    """Return the section-level means of an evaluation's run.

    Each judgment counts once. Raises CutError as `load_section_hits` does.
    """
    ranks = load_section_hits(evaluation)
    return _compute_means(ranks, evaluation.run.benchmark.k_values) if ranks else SectionMeans(0, [], None, None)


def load_section_hits(evaluation: Evaluation) -> list[SectionHits]:
    """Return the result of an evaluation's run for each judgment with sections whose query was answered.

    A chunk's section is the one whose span overlaps it most, and the shortest of equals. An unresolved judgment counts
    as not found, or is left out, by the benchmark's policy. Raises CutError if the stored data no longer shows which
    chunks the run kept, or if the mapping was resolved again.
    """
    if not has_sections(evaluation):
        return []
    run = evaluation.run
    expected = [judgment for judgment in load_expected(run.benchmark, evaluation.dataset_version) if judgment.sections]
    rankings = load_rankings(run)
    judgments = [judgment for judgment in expected if judgment.query_id in rankings]
    if not judgments:
        return []
    if hash_truth(load_truth(run.benchmark, evaluation.dataset_version)) != evaluation.truth_hash:
        raise CutError(
            "The mapping was resolved again after this run was measured, and its judgments now match "
            "other documents: re-score the benchmark."
        )
    chunks = find_kept_chunks(run, {judgment.query_id: rankings[judgment.query_id] for judgment in judgments})
    hits = _load_hits(chunks, run.benchmark.state)
    return [SectionHits(judgment, hits[judgment.query_id]) for judgment in judgments]


def load_expected(benchmark: Benchmark, version: DatasetVersion) -> list[Expected]:
    """Return the relevant judgments of a version, without unresolved ones if the benchmark drops them."""
    alive = filter_alive(version.number, "judgment__") & filter_alive(version.number, "judgment__query__")
    resolved = Resolution.objects.at(benchmark.state)
    rows = resolved.filter(alive, mapping=benchmark.mapping_id, judgment__grade__gt=0).order_by("judgment_id")
    if benchmark.unresolved == "drop":
        rows = rows.filter(document__isnull=False)
    judgments = rows.values_list("judgment_id", "judgment__query_id", "document_id", "judgment__section_refs")
    return [Expected(judgment, query, document, tuple(refs or ())) for judgment, query, document, refs in judgments]


def _compute_means(hits: Sequence[SectionHits], k_values: Iterable[int]) -> SectionMeans:
    doc_ranks, section_ranks = [row.doc_rank for row in hits], [row.section_rank for row in hits]

    def compute_share(row: SectionHits, k: int) -> float:
        return section_share(row.hits, row.expected.document, row.expected.sections, k)

    def recall(ranks: Sequence[int], k: int) -> float:
        return float(np.mean([1 <= rank <= k for rank in ranks]))

    rows = [
        SectionRow(
            k, recall(doc_ranks, k), recall(section_ranks, k), float(np.mean([compute_share(row, k) for row in hits]))
        )
        for k in k_values
    ]
    doc_mrr, section_mrr = (float(np.mean(list(map(reciprocal, ranks)))) for ranks in (doc_ranks, section_ranks))
    return SectionMeans(len(hits), rows, doc_mrr, section_mrr)


def _load_hits(chunks: Mapping[int, Sequence[int]], state: int | None) -> dict[int, list[SectionHit]]:
    """Return the sections of each query's chunks, best first, as the documents had them in a state. Three queries."""
    every = {chunk for chunk_ids in chunks.values() for chunk in chunk_ids}
    rows = Chunk.objects.filter(pk__in=every).values_list("pk", "document_id", "section__section_id", "start", "end")
    details: dict[int, tuple[Any, ...]] = {pk: row for pk, *row in rows.iterator(chunk_size=10_000)}  # type: ignore[misc]
    spans = load_spans({document for document, *_ in details.values()}, state=state)
    hit = {
        pk: SectionHit(document, section or find_section(start, end, spans.get(document, ())))
        for pk, (document, section, start, end) in details.items()
    }
    return {query: [hit[chunk] for chunk in chunk_ids] for query, chunk_ids in chunks.items()}


def find_section(start: int, end: int, spans: Sequence[Span]) -> str | None:
    """Return the section that overlaps [start, end) most, of equals the shortest, then the first; None without any."""
    overlaps = [(min(end, last) - max(start, first), first - last, name) for first, last, name in spans]
    best = max(overlaps, key=lambda overlap: overlap[:2], default=None)
    return best[2] if best is not None and best[0] > 0 else None


def has_sections(evaluation: Evaluation) -> bool:
    """Return whether any judgment of the evaluation's version names sections."""
    judgments = evaluation.dataset_version.judgments
    return bool(judgments.filter(section_refs__isnull=False).exclude(section_refs=[]).exists())


Name = Literal["evidence_recall", "answer_token_overlap", "rouge_l"]
NAMES: dict[Name, str] = {
    "evidence_recall": "Evidence recall",
    "answer_token_overlap": "Answer token overlap",
    "rouge_l": "ROUGE-L",
}
QUERIES_AT_ONCE = 200  # whose texts are in memory: about 40 MB if a chunk is a document of 20,000 characters


class ContentError(ConflictError):
    """Retrieved texts cannot be compared with the evidence of a query."""

    code = "content"


@dataclass(frozen=True, slots=True)
class QueryContent:
    """The values of one query, each in [0, 1]; None without evidence or answer to compare with."""

    query_id: int
    evidence_recall: float | None
    answer_token_overlap: float | None
    rouge_l: float | None

    @property
    def values(self) -> list[float | None]:
        return [getattr(self, name) for name in NAMES]


@dataclass(frozen=True)
class ContentMean:
    """A mean over the queries with evidence or an answer."""

    name: Name
    mean: float | None
    queries: int

    @property
    def title(self) -> str:
        return NAMES[self.name]


@dataclass(frozen=True, slots=True)
class Content:
    """The values of a run over its first `k` chunks.

    `queries` are the answered ones with evidence or an answer, by evidence recall, then overlap, the least first.
    `unanswered` counts those that failed or were not asked.
    """

    k: int
    queries: list[QueryContent]
    unanswered: int

    @property
    def means(self) -> list[ContentMean]:
        by_name = {
            name: [value for query in self.queries if (value := getattr(query, name)) is not None] for name in NAMES
        }
        return [ContentMean(name, fmean(values) if values else None, len(values)) for name, values in by_name.items()]


def load_content(evaluation: Evaluation, *, k: int | None = None) -> Content:
    """Return the content values of the first `k` chunks of an evaluation's run (by default primary_k); cached.

    The chunks are those that the run kept, before they are collapsed to documents. A failed query is left out; one
    without results has 0. Raises CutError if the stored data does not show which chunks the run kept, ContentError for
    evidence that is not text.
    """
    k = k or evaluation.run.benchmark.primary_k
    return get_cached(f"content:2:{k}", evaluation, partial(_compute_content, evaluation, k))


def has_content(evaluation: Evaluation) -> bool:
    """Return whether any query of the evaluation's version has evidence or an expected answer."""
    return bool(_select_queries(evaluation).exists())


def _select_queries(evaluation: Evaluation) -> QuerySet[Query]:
    return evaluation.dataset_version.queries.exclude(expected_answer="", evidence=[])


def _compute_content(evaluation: Evaluation, k: int) -> Content:
    run = evaluation.run
    rankings = load_rankings(run)
    stating: list[Query] = list(_select_queries(evaluation).only("key", "evidence", "expected_answer"))
    queries = [query for query in stating if query.pk in rankings]
    compared = []
    for group in batched(queries, QUERIES_AT_ONCE):
        texts = _load_texts(run, {query.pk: rankings[query.pk] for query in group}, k)
        compared += [_compare_texts(query, texts[query.pk]) for query in group]
    return Content(k, sorted(compared, key=_sort_key), unanswered=len(stating) - len(queries))


def _load_texts(run: Run, rankings: Mapping[int, Sequence[int]], k: int) -> dict[int, list[str]]:
    """Return the texts of the first k chunks of each query, best first, as they were indexed."""
    first = {query: chunks[:k] for query, chunks in find_kept_chunks(run, rankings).items()}
    chunk_ids = {chunk for chunks in first.values() for chunk in chunks}
    texts = dict(Chunk.objects.filter(pk__in=chunk_ids).values_list("pk", "text"))
    return {query: [texts[chunk] for chunk in chunks] for query, chunks in first.items()}


def _compare_texts(query: Query, texts: Sequence[str]) -> QueryContent:
    passages, answer = query.evidence, query.expected_answer
    if not isinstance(passages, list) or not all(isinstance(passage, str) for passage in passages):
        raise ContentError(
            f"The evidence of the query {query.key!r} must be a list of texts: write each passage as a "
            "text, and import the dataset as a new version."
        )
    return QueryContent(
        query.pk, evidence_recall(passages, texts), answer_token_overlap(answer, texts), rouge_l(answer, texts)
    )


def _sort_key(query: QueryContent) -> list[tuple[bool, float]]:
    return [(value is None, value or 0.0) for value in query.values]
