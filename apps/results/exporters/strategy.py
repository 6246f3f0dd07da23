"""The results directory of the retrieval-strategy benchmark: its configuration, log, index, searches and summary."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from datetime import datetime
from typing import Any

from apps.datasets.models import DatasetVersion
from apps.experiments.manifests import build_definition, load_own_evaluations
from apps.operations.handlers import load_tracebacks
from apps.records.models import Benchmark, Run
from apps.records.models.provenance import collect_facts
from apps.records.provenance import list_llms
from apps.results.exporters.outcomes import BenchmarkInputs, build_slug, load_inputs, require_evaluation
from apps.results.exporters.strategy_searches import list_failed_searches, list_searches
from apps.retrieval.models import Index
from apps.retrieval.naming import name_parameters, name_size
from apps.verdicts.configurations import build_configuration, list_keys, list_phrases
from benchbench.files import strategy_results as results
from benchbench.files.experiment import parse_experiment
from benchbench.files.strategy_results import Configuration, IndexStats, Summary
from benchbench.ir.planning.configuration import DEFAULTS
from benchbench.local_files.placing import Files, write_zip
from benchbench.reading import strict_yaml
from benchbench.timestamps import timestamp

CODE = ("git_revision", "python", "sentence-transformers", "transformers", "torch", "device")


def log_of(
    benchmark: Benchmark, version: DatasetVersion, runs: list[Run], names_by_run: Mapping[Any, Configuration]
) -> Iterator[str]:
    """Yield the log, one line per event; the first occurrence of an error is followed by its traceback.

    Configurations have their names in the CSV files, models their revisions. A configuration that was never started is
    marked so.
    """
    tracebacks = load_tracebacks([benchmark.pk, *(run.index_id for run in runs if run.index_id)])
    refused = {run.error_message: run.traceback for run in runs if run.traceback}
    tracebacks |= {error: text for error, text in refused.items() if not any(cause in error for cause in tracebacks)}
    yield _render_entry(
        benchmark.started_at or benchmark.created_at, "INFO", f"{benchmark.name}: {len(runs)} configurations"
    )
    for run in runs:
        yield from _render_run(run, " / ".join(filter(None, astuple(names_by_run[run.pk]))), tracebacks)
    if version != benchmark.dataset_version:
        text = f"values on {version}, measured from the rankings for {benchmark.dataset_version}"
        yield _render_entry(benchmark.completed_at, "INFO", f"{benchmark.name}: {text}")
    yield _render_entry(benchmark.completed_at, "INFO", f"{benchmark.name}: {benchmark.status}")


def describe_error(run: Run) -> str:
    """Return why a run has no values; "" for a completed run."""
    return "" if run.status == Run.Status.COMPLETED else run.error_message or f"The run is {run.status}."


def _render_run(run: Run, name: str, tracebacks: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a configuration; remove the printed tracebacks from `tracebacks`."""
    error, ended = describe_error(run), run.completed_at or run.benchmark.completed_at
    for text in (*_render_models(run), "started") if run.started_at else ():
        yield _render_entry(run.started_at, "INFO", f"{name}: {text}")
    failed = run.query_results.exclude(error="").order_by("query_id", "repetition").select_related("query")
    for result in failed.only("error", "repetition", "query__key").iterator(chunk_size=1000):
        text = f"{name}: query {result.query.key}, run {result.repetition}: {result.error}"
        yield _render_entry(ended, "ERROR", text) + _render_traceback(result.error, tracebacks)
    for warning in run.warnings:
        yield _render_entry(ended, "WARNING", f"{name}: {warning}")
    if not error:
        yield _render_entry(ended, "INFO", f"{name}: completed")
        return
    text = error if run.started_at else f"never started. {error}"
    yield _render_entry(ended, "ERROR", f"{name}: {text}") + _render_traceback(error, tracebacks)


def _render_models(run: Run) -> Iterator[str]:
    """Yield the models with their revisions, and the versions of the code."""
    index = run.index
    if index and index.encoder:
        yield f"embedding model {index.encoder}, revision {index.encoder_revision or 'unknown'}"
    if engine := run.lineage.engine:
        yield f"search engine {engine.alias}, version {engine.version or 'not stated'}"
    for llm in list_llms(run) or ([index.llm] if index and index.llm else []):
        revisions = run.lineage.list_revisions(llm)
        yield ", ".join([f"language model {llm}", *(f"revision {revision}" for revision in revisions)])
    facts = collect_facts(run.lineage.made_by)
    for environment in run.lineage.made_by:
        for reranker, revision in environment.rerankers.items():
            yield f"reranker {reranker}, revision {revision or 'unknown'}"
    if versions := [f"{name} {', '.join(sorted(facts[name]))}" for name in CODE if name in facts]:
        yield f"ran with {'; '.join(versions)}"


def _render_traceback(error: str, tracebacks: dict[str, str]) -> str:
    """Return the traceback of an error the first time, each of its lines indented."""
    message = next((message for message in tracebacks if message and message in error), "")
    return "".join(f"    {line}\n" for line in tracebacks.pop(message, "").splitlines())


def _render_entry(when: datetime | None, level: str, text: str) -> str:
    stamp = timestamp(when.replace(microsecond=0)) if when else "-"
    return f"{stamp} {level} {' '.join(text.split())}\n"


AGAIN = (
    "To run it again: manage.py reproduce config.yaml",
    "Its data is in the database: the hashes below identify it, even after a rename.",
)
EXTERNAL = "This cannot be run: its rankings were imported, so BenchBench cannot reproduce them."
MAX_ID = 100
BLOCK = 2**20
Configurations = Mapping[Any, Configuration]  # by run id


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[bytes]:
    """Write the directory as a zip; equal results give equal bytes."""
    folder = name_folder(benchmark, version)
    with tempfile.SpooledTemporaryFile(max_size=BLOCK) as archive:
        write_zip({f"{folder}/{name}": pieces for name, pieces in build_files(benchmark, version).items()}, archive)
        archive.seek(0)
        while block := archive.read(BLOCK):
            yield block


def name_file(benchmark: Benchmark, version: DatasetVersion) -> str:
    return f"{name_folder(benchmark, version)}.zip"


def name_folder(benchmark: Benchmark, version: DatasetVersion) -> str:
    """Return the id of the experiment; for other benchmarks the name."""
    name = benchmark.experiment.get("id") or build_slug(benchmark)
    return name if version == benchmark.dataset_version else f"{name}.v{version.number}"


def build_files(benchmark: Benchmark, version: DatasetVersion) -> Files:
    """Return the files in the order for writing: writing the searches fills the summary."""
    runs = list(benchmark.runs.select_related("index").order_by("run_order"))
    names_by_run = map_configurations(runs)
    summaries: list[Summary] = []
    return {
        "config.yaml": [render_config(benchmark, version, runs)],
        "run.log": log_of(benchmark, version, runs, names_by_run),
        "index_stats.csv": results.index_stats((names_by_run[run.pk], build_stats(run.index)) for run in runs),
        "search_results.csv": _render_searches(runs, load_inputs(benchmark, version), version, names_by_run, summaries),
        "summary.csv": results.render_summary(summaries),
    }


def _render_searches(
    runs: Iterable[Run],
    inputs: BenchmarkInputs,
    version: DatasetVersion,
    names_by_run: Configurations,
    summaries: list[Summary],
) -> Iterator[str]:
    """Yield search_results.csv, one configuration at a time, and append the summary of each to `summaries`."""
    cutoffs = inputs.benchmark.k_values
    yield results.search_header()
    for run in runs:
        error = describe_error(run)
        stream = (
            list_failed_searches(inputs, error)
            if error
            else list_searches(run, require_evaluation(run, version), inputs)
        )
        searches = list(stream)
        rows = [row for search in searches for row in results.search_rows(search, cutoffs)]
        yield from (results.search_line(names_by_run[run.pk], row) for row in rows)
        summaries.append(
            results.summarise(
                *(names_by_run[run.pk], build_stats(run.index), rows),
                consistency_score=results.compute_consistency(searches, max(cutoffs)),
                runs_per_query=inputs.repetitions,
                error=error,
            )
        )


def map_configurations(runs: list[Run]) -> dict[Any, Configuration]:
    """Return the configuration of each run: strategy, store, encoder, language model.

    Equal names get additions to the strategy until they are distinct: chunk sizes, options that differ from the
    strategy's and the configuration's defaults, the hash. So "flat 200/20 hybrid" has one meaning in any set of runs.
    """
    names_by_run = {run.pk: build_configuration(run) for run in runs}
    for words in NAMING:
        counts = Counter(names_by_run.values())
        for run in runs:
            named_run = names_by_run[run.pk]
            if counts[named_run] > 1:
                names_by_run[run.pk] = replace(named_run, strategy=f"{named_run.strategy} {words(run)}".rstrip())
    return names_by_run


def _render_settings(run: Run) -> str:
    keys = [key for key in list_keys([run.config]) if key != "index" and run.config[key] != DEFAULTS.get(key)]
    return " · ".join(list_phrases(run.config, keys))


NAMING: tuple[Callable[[Run], str], ...] = (
    lambda run: name_size(run.index.chunk_parameters) if run.index else "",
    lambda run: name_parameters(run.index.strategy, run.index.chunk_parameters) if run.index else "",
    _render_settings,
    lambda run: run.config_hash[:6],
    lambda run: str(run.run_order),
)


def build_stats(index: Index | None) -> IndexStats:
    if index is None:
        return IndexStats()
    names = ("duration_sec", "num_documents", "num_chunks", "num_vectors", "llm_calls", "embed_calls")
    return IndexStats(**{name: index.stats.get(name) for name in names}, error=index.error)


def render_config(benchmark: Benchmark, version: DatasetVersion, runs: Iterable[Run]) -> str:
    """Return the experiment that was run, with every key; for other benchmarks an experiment file without figures.

    Comments above it list what that file or the other files leave out. The experiment is parsed again, because
    PostgreSQL does not keep the order of an object's keys.
    """
    if config := benchmark.experiment.get("config"):
        return parse_experiment(config, location="config").as_yaml()
    definition = build_definition(benchmark, load_own_evaluations(benchmark))
    sentences = [EXTERNAL] if benchmark.is_external else [*AGAIN, *_list_left_out(benchmark, version, runs)]
    comments = "".join(f"# {' '.join(sentence.split())}\n" for sentence in sentences)
    id = benchmark.experiment.get("id") or build_slug(benchmark)[:MAX_ID]
    return comments + strict_yaml.dump({"id": id, **definition})


def _list_left_out(benchmark: Benchmark, version: DatasetVersion, runs: Iterable[Run]) -> Iterator[str]:
    """Yield a sentence for each part of the runs or the other files that running it again would not give."""
    for index in dict.fromkeys(run.index for run in runs if run.index and run.index.status == Index.Status.FAILED):
        yield f'The index "{index}" could not be built: it and its runs are left out. {index.error}'
    if benchmark.means_name:
        yield f"The benchmark's means are {benchmark.means_name}; those of summary.csv count every query alike."
    if version != benchmark.dataset_version:
        yield (
            f"This file and the benchmark use version {benchmark.dataset_version.number} of the "
            f"dataset. The values in the other files are re-scored on version {version.number}."
        )
