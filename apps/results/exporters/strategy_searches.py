"""Searches of a run in the form of the retrieval-strategy benchmark: ranks of the expected documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from apps.datasets.models import Query
from apps.execution.running.timing import find_execution
from apps.records.lists.reading import require_rankings
from apps.records.models import Evaluation, QueryResult, Run
from apps.results.exporters.outcomes import AT_ONCE, NOT_ASKED, BenchmarkInputs
from apps.results.triage.sections import NAMES, SectionHits, has_content, load_content, load_section_hits
from benchbench.database.binary import batched
from benchbench.files.strategy_results import Content, Search
from benchbench.ir.sections import SectionHit, doc_rank


@dataclass(frozen=True, slots=True)
class _StoredValues:
    """Values from stored lists: found sections by judgment, content of texts by cutoff and query."""

    sections: Mapping[int, SectionHits]
    content: Mapping[int, Mapping[int, Content]]


NO_VALUES = _StoredValues({}, {})


def list_failed_searches(inputs: BenchmarkInputs, error: str) -> Iterator[Search]:
    """Yield the searches of a run that failed with `error`."""
    for query in inputs.queries:
        for repetition in range(1, inputs.repetitions + 1):
            yield from _build_searches(inputs, query, repetition, NO_VALUES, error=error)


def list_searches(run: Run, evaluation: Evaluation, inputs: BenchmarkInputs) -> Iterator[Search]:
    """Yield the searches of a completed run: by query and repetition, one for each expected document.

    A query without expected documents has one search. Sections and texts come from the stored lists, which are those of
    the first repetition. They are unknown for external runs and for repetitions with another ranking. Raises CutError,
    ContentError.
    """
    sections = {} if run.is_external else {row.expected.judgment_id: row for row in load_section_hits(evaluation)}
    values = _StoredValues(sections, {} if run.is_external else _load_contents(evaluation, inputs.benchmark.k_values))
    require_rankings(run.benchmark)
    for group in batched(inputs.queries, AT_ONCE):
        rows = run.query_results.filter(query__in=group).order_by("query_id", "repetition")
        by_query: dict[int, dict[int, QueryResult]] = {}
        for row in rows.defer("chunk_ids", "scores"):
            by_query.setdefault(row.query_id, {})[row.repetition] = row
        for query in group:
            of_query = by_query.get(query.pk, {})
            first = next((row for row in of_query.values() if not row.error), None)
            for repetition in range(1, inputs.repetitions + 1):
                result = of_query.get(repetition)
                is_same = result and first and result.document_ids == first.document_ids
                yield from _build_searches(inputs, query, repetition, values if is_same else NO_VALUES, result=result)


def _load_contents(evaluation: Evaluation, cutoffs: Sequence[int]) -> dict[int, dict[int, Content]]:
    if not has_content(evaluation):
        return {}
    return {
        k: {
            row.query_id: Content(**{name: getattr(row, name) for name in NAMES})
            for row in load_content(evaluation, k=k).queries
        }
        for k in cutoffs
    }


def _build_searches(
    inputs: BenchmarkInputs,
    query: Query,
    repetition: int,
    values: _StoredValues,
    *,
    result: QueryResult | None = None,
    error: str = "",
) -> Iterator[Search]:
    error = error or (NOT_ASKED if result is None else result.error)
    ranked = tuple(result.document_ids[: max(inputs.benchmark.k_values)]) if result and not error else ()
    counted = result if result and (not error or result.embed_calls or result.llm_calls) else None
    content = {k: of_k[query.pk] for k, of_k in values.content.items() if query.pk in of_k}
    for expected in inputs.expected.get(query.pk, [None]):
        sections = values.sections.get(expected.judgment_id) if expected and not error else None
        yield Search(
            query_id=query.key,
            run=repetition,
            question=query.text,
            expected_doc=inputs.name_of(expected) if expected else "",
            expected_sections=",".join(expected.sections) if expected else "",
            doc_rank=doc_rank(list(map(SectionHit, ranked)), expected.document) if expected and not error else None,
            section_rank=sections.section_rank if sections else None,
            content={} if error else content,
            documents=ranked,
            search_time_ms=result.total_ms if result and not error else None,
            embed_calls=counted.embed_calls if counted else None,
            llm_calls=counted.llm_calls if counted else None,
            error=error,
            execution=find_execution(inputs.benchmark, result.total_ms) if result and not error else None,
        )
