"""Content measures of a run: evidence and expected answers in the chunks that it found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Literal, cast

from django.core.cache import cache

from apps.benchmarks.measuring.reading import kept_chunks, rankings_of
from apps.benchmarks.models import Evaluation, Run
from apps.datasets.models import Query
from apps.results.leaderboard.coverage import KEPT_SECONDS, state_of
from apps.retrieval.models import Chunk
from benchbench.database.binary import batched
from benchbench.errors import ConflictError
from benchbench.ir.content import answer_token_overlap, evidence_recall, rouge_l

NAMES: dict[Literal["evidence_recall", "answer_token_overlap", "rouge_l"], str] = {
    "evidence_recall": "Evidence recall",
    "answer_token_overlap": "Answer token overlap",
    "rouge_l": "ROUGE-L",
}
QUERIES_AT_ONCE = 200  # whose texts are in memory: about 40 MB where a chunk is a document of 20,000 characters


class ContentError(ConflictError):
    """Retrieved texts and what queries state cannot be compared."""

    code = "content"


@dataclass(frozen=True, slots=True)
class QueryContent:
    """The values of one query, each in [0, 1]; None where it states nothing to compare with."""

    query_id: int
    evidence_recall: float | None
    answer_token_overlap: float | None
    rouge_l: float | None

    @property
    def values(self) -> list[float | None]:
        return [getattr(self, name) for name in NAMES]


@dataclass(frozen=True, slots=True)
class Content:
    """The values of a run over its first `k` chunks.

    `queries` are those that state evidence or an answer and were answered, the least evidence recall first, then the
    least overlap; `unanswered` counts those that state some, and failed or were not asked.
    """

    k: int
    queries: list[QueryContent]
    unanswered: int

    @property
    def means(self) -> list[tuple[str, float | None, int]]:
        """Each measure's name, its mean, and over how many queries that is: those that have a value."""
        known = {
            field: [value for query in self.queries if (value := getattr(query, field)) is not None] for field in NAMES
        }
        return [(NAMES[field], fmean(values) if values else None, len(values)) for field, values in known.items()]


def content_of(evaluation: Evaluation, *, k: int | None = None) -> Content:
    """Return what the first `k` chunks of an evaluation's run hold (by default primary_k); kept by evaluation.

    They are the chunks that the run kept, before they are collapsed to documents. A query that failed is left out, one
    that found nothing has 0. Raises KeptError where the run's chunks cannot be told from what is stored, ContentError
    for evidence that is not text.
    """
    k = k or evaluation.run.benchmark.primary_k
    key = f"content:{evaluation.pk}:{k}:{state_of(evaluation)}"
    return cast(Content, cache.get_or_set(key, partial(_content, evaluation, k), KEPT_SECONDS))


def has_content(evaluation: Evaluation) -> bool:
    """Tell whether any query of the evaluation's version states evidence or an expected answer."""
    return bool(_stating(evaluation).exists())


def _stating(evaluation: Evaluation) -> Any:
    return evaluation.dataset_version.queries.exclude(expected_answer="", evidence=[])


def _content(evaluation: Evaluation, k: int) -> Content:
    run = evaluation.run
    rankings = rankings_of(run)
    stating: list[Query] = list(_stating(evaluation).only("key", "evidence", "expected_answer"))
    asked = [query for query in stating if query.pk in rankings]
    compared = []
    for part in batched(asked, QUERIES_AT_ONCE):
        texts = _texts(run, {query.pk: rankings[query.pk] for query in part}, k)
        compared += [_compared(query, texts[query.pk]) for query in part]
    return Content(k, sorted(compared, key=_place), unanswered=len(stating) - len(asked))


def _texts(run: Run, rankings: Mapping[int, Sequence[int]], k: int) -> dict[int, list[str]]:
    """Return the texts of the first k chunks of each query, best first, as they were indexed."""
    first = {query: chunks[:k] for query, chunks in kept_chunks(run, rankings).items()}
    wanted = {chunk for chunks in first.values() for chunk in chunks}
    texts = dict(Chunk.objects.filter(pk__in=wanted).values_list("pk", "text"))
    return {query: [texts[chunk] for chunk in chunks] for query, chunks in first.items()}


def _compared(query: Query, texts: Sequence[str]) -> QueryContent:
    passages, answer = query.evidence, query.expected_answer
    if not isinstance(passages, list) or not all(isinstance(passage, str) for passage in passages):
        raise ContentError(
            f"The evidence of the query {query.key!r} is not a list of texts, so nothing can be compared with it: "
            "state each passage as a text, and import the dataset as a new version."
        )
    return QueryContent(
        query.pk, evidence_recall(passages, texts), answer_token_overlap(answer, texts), rouge_l(answer, texts)
    )


def _place(query: QueryContent) -> list[tuple[bool, float]]:
    return [(value is None, value or 0.0) for value in query.values]
