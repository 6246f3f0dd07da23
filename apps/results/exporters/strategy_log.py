"""The run.log of the retrieval-strategy benchmark: the outcome of each configuration, from stored facts."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import Any

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.provenance import facts_of, llm_revisions, llms_of
from apps.datasets.models import DatasetVersion
from apps.operations.handlers import tracebacks_of
from benchbench.files.strategy_results import Configuration
from benchbench.timestamps import timestamp

CODE = ("git_revision", "python", "sentence-transformers", "transformers", "torch", "device")


def log_of(
    benchmark: Benchmark, version: DatasetVersion, runs: list[Run], named: Mapping[Any, Configuration]
) -> Iterator[str]:
    """Yield the log: a line an event, each error with its traceback below it where it comes first.

    Configurations are called as in the CSV files, and models have their revisions. A configuration that was never
    started says so.
    """
    tracebacks = tracebacks_of([benchmark.pk, *(run.index_id for run in runs if run.index_id)])
    refused = {run.error_message: run.traceback for run in runs if run.traceback}
    tracebacks |= {error: told for error, told in refused.items() if not any(known in error for known in tracebacks)}
    yield _entry(benchmark.started_at or benchmark.created_at, "INFO", f"{benchmark.name}: {len(runs)} configurations")
    for run in runs:
        yield from _of_run(run, " / ".join(filter(None, astuple(named[run.pk]))), tracebacks)
    if version != benchmark.dataset_version:
        told = f"values on {version}, measured from the rankings for {benchmark.dataset_version}"
        yield _entry(benchmark.completed_at, "INFO", f"{benchmark.name}: {told}")
    yield _entry(benchmark.completed_at, "INFO", f"{benchmark.name}: {benchmark.status}")


def error_of(run: Run) -> str:
    """Return why a run has no values; nothing where it has completed."""
    if run.status == Run.Status.COMPLETED:
        return ""
    return run.error_message or f"The run is {run.status}."


def _of_run(run: Run, name: str, tracebacks: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a configuration; a traceback that was told is taken out of `tracebacks`."""
    error, ended = error_of(run), run.completed_at or run.benchmark.completed_at
    if run.started_at:
        for told in (*_models(run), "started"):
            yield _entry(run.started_at, "INFO", f"{name}: {told}")
    failed = run.query_results.exclude(error="").order_by("query", "repetition").select_related("query")
    for result in failed.only("error", "repetition", "query__key").iterator(chunk_size=1000):
        told = f"{name}: query {result.query.key}, run {result.repetition}: {result.error}"
        yield _entry(ended, "ERROR", told) + _traceback(result.error, tracebacks)
    for warning in run.warnings:
        yield _entry(ended, "WARNING", f"{name}: {warning}")
    if not error:
        yield _entry(ended, "INFO", f"{name}: completed")
        return
    told = error if run.started_at else f"never started. {error}"
    yield _entry(ended, "ERROR", f"{name}: {told}") + _traceback(error, tracebacks)


def _models(run: Run) -> Iterator[str]:
    """Yield what ran: each model with its revision, and the code."""
    index = run.index
    if index and index.encoder:
        yield f"embedding model {index.encoder}, revision {index.encoder_revision or 'unknown'}"
    made_by = run.provenance.get("made_by", [])
    for llm in llms_of(run) or ([index.llm] if index and index.llm else []):
        yield ", ".join([f"language model {llm}", *(f"revision {known}" for known in llm_revisions(run, llm))])
    facts = facts_of(made_by)
    for environment in made_by:
        for reranker, revision in environment.get("rerankers", {}).items():
            yield f"reranker {reranker}, revision {revision or 'unknown'}"
    if told := [f"{name} {', '.join(sorted(facts[name]))}" for name in CODE if name in facts]:
        yield f"ran with {'; '.join(told)}"


def _traceback(error: str, tracebacks: dict[str, str]) -> str:
    """Return the traceback of an error, once, each of its lines indented."""
    message = next((message for message in tracebacks if message and message in error), None)
    if message is None:
        return ""
    return "".join(f"    {line}\n" for line in tracebacks.pop(message).splitlines())


def _entry(when: Any, level: str, told: str) -> str:
    stamp = timestamp(when.replace(microsecond=0)) if when else "-"
    return f"{stamp} {level} {' '.join(told.split())}\n"
