"""The end of a benchmark's operation: evaluations for completed runs, a reason for the others."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from apps.benchmarks.launching import UNFINISHED
from apps.benchmarks.measuring.again import list_scored_versions, split_runs
from apps.benchmarks.measuring.approximations import (
    explain_exact,
    list_ann_warnings,
    measure_approximations,
    store_losses,
)
from apps.benchmarks.measuring.batch_values import delete_values
from apps.benchmarks.measuring.evaluating import evaluate_runs
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.benchmarks.planning import plan_of
from apps.benchmarks.provenance import build_provenance, collect_facts
from apps.benchmarks.running.builds import count_builds, load_builds
from apps.benchmarks.running.engines import DECLARED, DOWN, RETRIES
from apps.benchmarks.running.latencies import LATENCIES, merge_records
from apps.benchmarks.running.outcomes import STALLS, NotedQueries
from apps.benchmarks.running.timing import add_loop, compute_timings, count_calls
from apps.datasets.models import DatasetVersion
from apps.mappings.filters import filter_warnings
from apps.operations.handlers import MAY_RUN_TWICE
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation, Status
from benchbench.database.binary import execute_each
from benchbench.database.ordered import delete_in_order, update_in_order
from benchbench.decimals import counted
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import EngineStage

RESULT_FIELDS = (
    *("timing", "failed_queries", "provenance", "warnings", "status", "error_message"),
    *("completed_at", "embed_calls", "llm_calls"),
)
STORE_RESULTS = (
    f"UPDATE {Run._meta.db_table} SET updated_at = now(), {' = %s, '.join(RESULT_FIELDS)} = %s WHERE id = %s"  # nosec # only constants
)


EVALUATED = "evaluate"  # in the payload of a batch that evaluates some runs: their ids


def list_last_batches(operation: Operation) -> list[tuple[dict[str, Any], int]]:
    """Return the batches in which workers evaluate the runs, unless they exist or the rankings are few."""
    if operation.batches.filter(payload__has_key=EVALUATED).exists():
        return []
    benchmark = load_benchmark(operation)
    groups = split_runs(list(_filter_unfinished(operation, benchmark)), benchmark.dataset_version)
    return [({EVALUATED: run_ids, MAY_RUN_TWICE: True}, 0) for run_ids in groups] if len(groups) > 1 else []


def evaluate_batch(batch: Batch, lease: Lease) -> None:
    """Evaluate some of the runs on the benchmark's version, as `finish` would."""
    benchmark = load_benchmark(batch.operation)
    runs = _filter_unfinished(batch.operation, benchmark).filter(pk__in=batch.payload[EVALUATED])
    with lease.commit():
        evaluate_runs(benchmark, runs, version=benchmark.dataset_version)


def _filter_unfinished(operation: Operation, benchmark: Benchmark) -> QuerySet[Run]:
    return benchmark.runs.filter(pk__in=operation.parameters["run_ids"], status__in=UNFINISHED)


def finish(operation: Operation) -> None:
    """Evaluate the operation's runs and complete the benchmark, or fail it if no run completed."""
    benchmark = load_benchmark(operation)
    runs = list(_filter_unfinished(operation, benchmark).select_related("index__chunk_set", "index__lexical_index"))
    all_runs = [*runs, *benchmark.runs.filter(status=Run.Status.COMPLETED)]
    by_version = _evaluate(operation, benchmark, all_runs)
    evaluations = {evaluation.run_id: evaluation for evaluation in by_version[benchmark.dataset_version]}
    notes = load_notes(benchmark)
    plan = plan_of(runs)
    plans = {run.run_key: run for run in plan.runs}
    by_query = load_builds(benchmark)
    builds = {stage.key: count_builds(by_query, stage.key) for stage in plan.stages}
    by_id = {run.pk: run for run in runs}
    approximations = measure_approximations(operation, by_id, benchmark, plan, notes.queries, builds)
    timings, calls = compute_timings(runs), count_calls(runs)
    filter_notes = filter_warnings(benchmark.mapping, benchmark.dataset_version) if runs else []
    for run in runs:
        run.timing, run.failed_queries = timings[run.pk], evaluations[run.pk].failed_queries
        key, approximation = str(run.pk), approximations.get(run.pk)
        run.provenance = build_provenance(run, made_by=notes.environments[key])
        if approximation:
            run.provenance["ann"] = approximation
        run.embed_calls, run.llm_calls = calls[run.pk].embed, calls[run.pk].llm
        run_warnings = _list_warnings(
            benchmark, run, len(notes.short[key]), notes.count(plans[key], STALLS), calls[run.pk].fallbacks
        )
        run_warnings += _describe_load(run, plans[key], notes) + _describe_engine(run, plans[key], notes)
        run.warnings = run_warnings + filter_notes + list_ann_warnings(approximation)
        run.error_message = _explain_failure(run, evaluations[run.pk], approximation)
        run.error_message = run.error_message or _find_down(run, plans[key], notes)
        run.status = Run.Status.FAILED if run.error_message else Run.Status.COMPLETED
        run.completed_at = operation.finished_at
    _store_results(runs)
    for version, version_evaluations in by_version.items():
        store_losses(benchmark, all_runs, version_evaluations, version)
    delete_values(runs)  # the evaluations have them now
    completed = benchmark.runs.filter(status=Run.Status.COMPLETED).exists()
    _end(benchmark, Status.COMPLETED if completed else Status.FAILED)


def _evaluate(
    operation: Operation, benchmark: Benchmark, runs: Iterable[Run]
) -> dict[DatasetVersion, list[Evaluation]]:
    """Evaluate all completed runs on every version, so that a page compares equal truths.

    The mapping may have been resolved again since, and a retry adds runs to a benchmark that was re-scored.
    """
    groups = operation.batches.filter(payload__has_key=EVALUATED).values_list(f"payload__{EVALUATED}", flat=True)
    evaluated = [UUID(run_id) for run_ids in groups for run_id in run_ids]
    searched = benchmark.dataset_version
    by_version = {searched: evaluate_runs(benchmark, runs, version=searched, evaluated=evaluated)}
    for version in list_scored_versions(benchmark):
        if version != searched:
            by_version[version] = evaluate_runs(benchmark, runs, version=version)
    return by_version


def _store_results(runs: Iterable[Run]) -> None:
    rows = [
        [*(_encode(getattr(run, name)) for name in RESULT_FIELDS), run.pk] for run in sorted(runs, key=attrgetter("pk"))
    ]
    execute_each(STORE_RESULTS, rows)


def _encode(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict | list) else value


def _describe_load(run: Run, planned: RunPlan, notes: "Notes") -> list[str]:
    """Store the latencies of a run's open loop, and return a warning if it did not keep up."""
    if not (records := notes.lists[str(run.pk), LATENCIES]):
        return []
    loop = merge_records(records)
    asks = any(isinstance(stage, EngineStage) for stage in planned.stages)
    run.timing = add_loop(run.timing, loop, is_whole=len(planned.stages) == 1 or not asks)
    if not loop["unsent"]:
        return []
    unsent, rate = counted(loop["unsent"], "request"), f"{loop['offered']:g}/s"
    return [f"Searches did not keep up with {rate}: the open loop ended without sending {unsent}. Choose a lower rate."]


def _describe_engine(run: Run, planned: RunPlan, notes: "Notes") -> list[str]:
    """Store what is known of the engine that a run asked, and return the warnings about it."""
    stage = next((stage for stage in planned.stages if isinstance(stage, EngineStage)), None)
    if stage is None:
        return []
    retries = notes.count(planned, RETRIES)
    if engines := notes.lists[stage.key, DECLARED]:
        run.provenance["engine"] = engines[-1] | {"retries": retries}
    warnings = ["The times are round trips to the search engine, as seen from the worker."]
    if run.timing.get("open_loop") and len(planned.stages) > 1:
        warnings.append(
            "The open loop sent the requests to the engine; the other stages followed one query at a time, so no total "
            "time is known."
        )
    if any(one != engines[0] for one in engines):
        warnings.append("The declaration of the engine changed meanwhile.")
    if retries:
        warnings.append(f"{counted(retries, 'request')} to the engine failed at first and succeeded when sent again.")
    return warnings


def _find_down(run: Run, planned: RunPlan, notes: "Notes") -> str:
    """Return why a run whose engine went down for good has no figures, as a sentence, or "".

    A query that a later attempt answered has the error no more.
    """
    down = [sentence for stage in planned.stages for sentence in notes.lists[stage.key, DOWN]]
    if not down:
        return ""
    return run.query_results.filter(error__in=down).values_list("error", flat=True).first() or ""


def _find_first_error(run: Run) -> str | None:
    return run.query_results.exclude(error="").values_list("error", flat=True).first()


def _explain_failure(run: Run, evaluation: Evaluation, approximation: dict[str, Any] | None) -> str:
    """Return why a run has no figures, as a sentence, or "" if it has.

    A run whose times have no samples had no successful search. A run without queries did not fail.
    """
    if evaluation.query_ids and not run.timing["samples"]:
        return f"Every query failed; the first: {_find_first_error(run)}"
    return explain_exact(approximation, len(evaluation.query_ids))


def stop(operation: Operation) -> None:
    """Cancel or fail the unfinished runs with the operation's error. Launching the benchmark again resumes them."""
    benchmark = load_benchmark(operation)
    status = Run.Status.CANCELLED if operation.status == Status.CANCELLED else Run.Status.FAILED
    unfinished = _filter_unfinished(operation, benchmark)
    # By a batch, or of an earlier attempt. Values on other versions say where to evaluate when the runs are resumed.
    delete_in_order(Evaluation.objects.filter(run__in=unfinished, dataset_version=benchmark.dataset_version))
    update_in_order(unfinished, status=status, error_message=operation.error, completed_at=Now())
    _end(benchmark, Status(operation.status))


def load_benchmark(operation: Operation) -> Benchmark:
    benchmarks = Benchmark.objects.select_related("mapping__collection", "dataset_version__dataset")
    return benchmarks.get(pk=operation.subject_id)


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of all batches of a benchmark, also of earlier operations.

    By run: the queries for which a depth left too few documents (`short`), and the distinct environments of the
    workers. By stage: `queries`, each once even if retried; the sums of numbers such as STALLS; and `lists` of what the
    batches noted of a search engine.
    """

    short: defaultdict[str, set[int]]
    environments: defaultdict[str, list[Any]]
    queries: NotedQueries
    numbers: Counter[tuple[str, str]]
    lists: defaultdict[tuple[str, str], list[Any]]

    def count(self, run: RunPlan, name: str) -> int:
        """Return the sum of a number over the stages of a run."""
        return sum(self.numbers[stage.key, name] for stage in run.stages)


def load_notes(benchmark: Benchmark) -> Notes:
    notes = Notes(defaultdict(set), defaultdict(list), {}, Counter(), defaultdict(list))
    batches = Batch.objects.filter(
        operation__subject_id=benchmark.pk, state=Batch.State.DONE, result__has_key="made_by"
    )
    rows = batches.order_by("pk").values_list("result__made_by", "result__runs", "result__notes")
    for made_by, runs, notes_by_stage in rows.iterator():
        for run_id, sums in runs.items():
            notes.short[run_id].update(sums["short"])
            if made_by not in notes.environments[run_id]:
                notes.environments[run_id].append(made_by)
        for stage, stage_notes in notes_by_stage.items():
            for name in (STALLS, RETRIES):
                notes.numbers[stage, name] += stage_notes.pop(name, 0)
            for name in (DECLARED, DOWN, LATENCIES):
                notes.lists[stage, name] += stage_notes.pop(name, [])
            for name, ids in stage_notes.items():
                notes.queries.setdefault(stage, {}).setdefault(name, set()).update(ids)
    return notes


def _list_warnings(benchmark: Benchmark, run: Run, short: int, stalls: int, fallbacks: int) -> list[str]:
    warnings = []
    if short:
        warnings.append(
            f"In {counted(short, 'query')} the returned chunks cover fewer than {max(benchmark.k_values)} documents: "
            "raise top_k_values, or candidates and rerank_depths."
        )
    if run.failed_queries:
        warnings.append(
            f"{counted(run.failed_queries, 'query')} failed and {'is' if run.failed_queries == 1 else 'are'} left "
            f"out of the means; the first: {_find_first_error(run)}"
        )
    if stalls:
        warnings.append(
            f"{counted(stalls, 'stall')} did not recur: queries that exceeded BENCHBENCH_QUERY_TIMEOUT_MS in a batch "
            "took less than half of it one by one. The times exclude the stall."
        )
    if run.configuration.uses_vectors and run.timing["samples"] and "encode_ms" not in run.timing:
        warnings.append("The times exclude encoding the queries: their vectors were imported.")
    if any(len(values) > 1 for values in collect_facts(run.provenance["made_by"]).values()):
        warnings.append("Workers with different libraries, models or devices took part: see the provenance.")
    if fallbacks:
        warnings.append(
            f"In {counted(fallbacks, 'query')} the language model chose none of its options, so the nearest documents "
            "or sections were used instead."
        )
    return warnings


def _end(benchmark: Benchmark, status: Status) -> None:
    Benchmark.objects.filter(pk=benchmark.pk).update(status=status, completed_at=Now())
