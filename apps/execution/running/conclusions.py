"""Results of a run: its times, provenance, warnings and error, concluded from what its batches did."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Exists, OuterRef

from apps.datasets.models import Query
from apps.execution.running.engines import DECLARED, RETRIES, UNPROMPTED
from apps.execution.running.latencies import LATENCIES, merge_records
from apps.execution.running.notes import Notes
from apps.execution.running.outcomes import DOWN, STALLS
from apps.execution.running.timing import CallTotals, add_loop
from apps.execution.running.unanswered import list_unread_queries
from apps.records.measuring.approximations import Facts, explain_exact, list_ann_warnings
from apps.records.measuring.batch_values import Ties
from apps.records.models import Evaluation, Run
from apps.records.models.provenance import Approximation, Provenance, collect_facts
from apps.records.models.timing import OpenLoop, Timing
from apps.records.provenance import build_provenance
from benchbench.decimals import counted, format_share
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import EngineStage

MOST_TIED = 0.2  # share of positions without a warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Columns of a run's row that are filled when it ends."""

    timing: dict[str, object]
    failed_queries: int
    provenance: dict[str, object]
    warnings: list[str]
    status: Run.Status
    error_message: str
    completed_at: datetime | None
    embed_calls: int
    llm_calls: int

    def assign_to(self, run: Run) -> None:
        for name in RESULT_FIELDS:
            setattr(run, name, getattr(self, name))


RESULT_FIELDS = tuple(field.name for field in fields(Results))


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a run over all its queries; `approximation` as `measure_approximations` returns it."""

    times: Timing
    calls: CallTotals
    evaluation: Evaluation
    approximation: Facts | None


def conclude(
    run: Run,
    planned: RunPlan,
    notes: Notes,
    measured: Measured,
    searched: list[str],
    *,
    ended_at: datetime | None,
) -> Results:
    """Return the results of a run, and change nothing. Queries the run's first error if it has one.

    `searched` are the warnings of what it searched.
    """
    stage = next((stage for stage in planned.stages if isinstance(stage, EngineStage)), None)
    loop = merge_records(records) if (records := notes.lists[planned.run_key, LATENCIES]) else None
    times, calls, evaluation = measured.times, measured.calls, measured.evaluation
    if loop:
        times = add_loop(times, loop, is_whole=len(planned.stages) == 1 or stage is None)
    made_by, engine = notes.environments[planned.run_key], stage and _describe_engine(planned, stage, notes)
    provenance = build_provenance(run, made_by=made_by, ann=measured.approximation, engine=engine)
    lineage = Provenance.from_dict(provenance)
    warnings = [
        *_warn_of_queries(run, planned, notes, evaluation.failed_queries),
        *list_unread_queries(run, planned, notes),
        *_warn_of_work(run, measured, lineage),
        *(_warn_of_load(loop) if loop else ()),
        *(_warn_of_engine(planned, stage, notes, in_loop=loop is not None) if stage else ()),
        *searched,
        *list_ann_warnings(lineage.approximation),
    ]
    error = _explain_failure(run, times, len(evaluation.query_ids), lineage.approximation)
    error = error or _find_down(run, planned, notes)
    return Results(
        timing=times.as_dict(),
        failed_queries=evaluation.failed_queries,
        provenance=provenance,
        warnings=warnings,
        status=Run.Status.FAILED if error else Run.Status.COMPLETED,
        error_message=error,
        completed_at=ended_at,
        embed_calls=calls.embed,
        llm_calls=calls.llm,
    )


def _warn_of_load(loop: OpenLoop) -> Iterator[str]:
    if loop.unsent:
        unsent, rate = counted(loop.unsent, "request"), f"{loop.offered:g}/s"
        yield (
            f"Searches did not keep up with {rate}: the open loop ended without sending {unsent}. Choose a lower rate."
        )


def _describe_engine(planned: RunPlan, stage: EngineStage, notes: Notes) -> dict[str, object] | None:
    """Return what is known of the engine that a run asked; None if no batch noted it."""
    engines = notes.lists[stage.key, DECLARED]
    return engines[-1] | {"retries": notes.count(planned, RETRIES)} if engines else None


def _warn_of_engine(planned: RunPlan, stage: EngineStage, notes: Notes, *, in_loop: bool) -> list[str]:
    retries, engines = notes.count(planned, RETRIES), notes.lists[stage.key, DECLARED]
    warnings = ["The times are round trips to the search engine, as seen from the worker."]
    if in_loop and len(planned.stages) > 1:
        warnings.append(
            "The open loop sent the requests to the engine; the other stages followed one query at a time, so no total "
            "time is known."
        )
    warnings += dict.fromkeys(notes.lists[stage.key, UNPROMPTED])
    if any(one != engines[0] for one in engines):
        warnings.append("The declaration of the engine changed meanwhile.")
    if retries:
        warnings.append(f"{counted(retries, 'request')} to the engine failed at first and succeeded when sent again.")
    return warnings


def _find_down(run: Run, planned: RunPlan, notes: Notes) -> str:
    """Return why a run whose engine, index or model went down for good has no figures, as a sentence, or "".

    A query that a later attempt, or another repetition, answered did not fail.
    """
    down = [sentence for stage in planned.stages for sentence in notes.lists[stage.key, DOWN]]
    if not down:
        return ""
    results = run.query_results.all()
    failed = results.filter(~Exists(results.filter(query=OuterRef("query"), error="")), error__in=down)
    return failed.values_list("error", flat=True).first() or ""


def _find_first_error(run: Run) -> str | None:
    return run.query_results.exclude(error="").values_list("error", flat=True).first()


def _explain_failure(run: Run, times: Timing, queries: int, approximation: Approximation | None) -> str:
    """Return why a run has no figures, as a sentence, or "" if it has.

    A run whose times have no samples had no successful search. A run without queries did not fail.
    """
    if queries and not times.samples:
        return f"Every query failed; the first: {_find_first_error(run)}"
    return explain_exact(approximation, queries)


def _warn_of_queries(run: Run, planned: RunPlan, notes: Notes, failed: int) -> Iterator[str]:
    if short := len(notes.short[planned.run_key]):
        yield (
            f"In {counted(short, 'query')} the returned chunks cover fewer than {max(run.benchmark.k_values)} "
            "documents: raise top_k_values, or candidates and rerank_depths."
        )
    if (ties := notes.ties[planned.run_key]).tied >= MOST_TIED * max(ties.ranked, 1):
        yield _describe_ties(run, ties)
    if failed:
        yield (
            f"{counted(failed, 'query')} failed and {'is' if failed == 1 else 'are'} left out of the means; the "
            f"first: {_find_first_error(run)}"
        )
    if stalls := notes.count(planned, STALLS):
        yield (
            f"{counted(stalls, 'stall')} did not recur: queries that exceeded BENCHBENCH_QUERY_TIMEOUT_MS in a batch "
            "took less than half of it one by one. The times exclude the stall."
        )


def _describe_ties(run: Run, ties: Ties) -> str:
    query, k = Query.objects.get(pk=ties.tied_query or 0), max(run.benchmark.k_values)
    return (
        f"{format_share(ties.tied / ties.ranked)} of the first {k} positions have the score of a neighbour, as for the "
        f"query {query.key}: {advise_on_ties(run)}"
    )


def advise_on_ties(run: Run) -> str:
    fuses = run.configuration.search_mode == "hybrid" and run.configuration.fusion == "rrf"
    fusion = "the fusion weighted instead of rrf, " if fuses else ""
    return (
        f"external ids decide their order, not the search. Use {fusion}a reranker, or a search whose scores differ "
        "more."
    )


def _warn_of_work(run: Run, measured: Measured, lineage: Provenance) -> Iterator[str]:
    """Yield the warnings about times, workers and language models."""
    times, fallbacks = measured.times, measured.calls.fallbacks
    if run.configuration.uses_vectors and times.samples and times.encode_ms is None:
        yield "The times exclude encoding the queries: their vectors were imported."
    if any(len(values) > 1 for values in collect_facts(lineage.made_by).values()):
        yield "Workers with different libraries, models or devices took part: see the provenance."
    if fallbacks:
        yield (
            f"In {counted(fallbacks, 'query')} the language model chose none of its options, so the nearest documents "
            "or sections were used instead."
        )
