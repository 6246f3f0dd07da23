"""The results directory of the retrieval-strategy benchmark: its configuration, log, index, searches and summary."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.provenance import facts_of, llm_revisions, llms_of
from apps.benchmarks.repeating.manifests import definition_of, own_evaluations
from apps.datasets.models import DatasetVersion
from apps.operations.handlers import tracebacks_of
from apps.results.configurations import keys_of, phrases, searched_by
from apps.results.exporters.outcomes import BenchmarkInputs, evaluation_on, load_inputs, slug_of
from apps.results.exporters.strategy_searches import failed_searches, searches_of
from apps.retrieval.models import Index
from apps.retrieval.naming import other_words, size_words
from benchbench.files import strategy_results as results
from benchbench.files.experiment import experiment_of
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
    tracebacks = tracebacks_of([benchmark.pk, *(run.index_id for run in runs if run.index_id)])
    refused = {run.error_message: run.traceback for run in runs if run.traceback}
    tracebacks |= {error: text for error, text in refused.items() if not any(cause in error for cause in tracebacks)}
    yield _entry(benchmark.started_at or benchmark.created_at, "INFO", f"{benchmark.name}: {len(runs)} configurations")
    for run in runs:
        yield from _of_run(run, " / ".join(filter(None, astuple(names_by_run[run.pk]))), tracebacks)
    if version != benchmark.dataset_version:
        text = f"values on {version}, measured from the rankings for {benchmark.dataset_version}"
        yield _entry(benchmark.completed_at, "INFO", f"{benchmark.name}: {text}")
    yield _entry(benchmark.completed_at, "INFO", f"{benchmark.name}: {benchmark.status}")


def error_of(run: Run) -> str:
    """Return why a run has no values; "" for a completed run."""
    return "" if run.status == Run.Status.COMPLETED else run.error_message or f"The run is {run.status}."


def _of_run(run: Run, name: str, tracebacks: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a configuration; remove the printed tracebacks from `tracebacks`."""
    error, ended = error_of(run), run.completed_at or run.benchmark.completed_at
    for text in (*_models(run), "started") if run.started_at else ():
        yield _entry(run.started_at, "INFO", f"{name}: {text}")
    failed = run.query_results.exclude(error="").order_by("query", "repetition").select_related("query")
    for result in failed.only("error", "repetition", "query__key").iterator(chunk_size=1000):
        text = f"{name}: query {result.query.key}, run {result.repetition}: {result.error}"
        yield _entry(ended, "ERROR", text) + _traceback(result.error, tracebacks)
    for warning in run.warnings:
        yield _entry(ended, "WARNING", f"{name}: {warning}")
    if not error:
        yield _entry(ended, "INFO", f"{name}: completed")
        return
    text = error if run.started_at else f"never started. {error}"
    yield _entry(ended, "ERROR", f"{name}: {text}") + _traceback(error, tracebacks)


def _models(run: Run) -> Iterator[str]:
    """Yield the models with their revisions, and the versions of the code."""
    index = run.index
    if index and index.encoder:
        yield f"embedding model {index.encoder}, revision {index.encoder_revision or 'unknown'}"
    made_by = run.provenance.get("made_by", [])
    for llm in llms_of(run) or ([index.llm] if index and index.llm else []):
        yield ", ".join([f"language model {llm}", *(f"revision {version}" for version in llm_revisions(run, llm))])
    facts = facts_of(made_by)
    for environment in made_by:
        for reranker, revision in environment.get("rerankers", {}).items():
            yield f"reranker {reranker}, revision {revision or 'unknown'}"
    if versions := [f"{name} {', '.join(sorted(facts[name]))}" for name in CODE if name in facts]:
        yield f"ran with {'; '.join(versions)}"


def _traceback(error: str, tracebacks: dict[str, str]) -> str:
    """Return the traceback of an error the first time, each of its lines indented."""
    message = next((message for message in tracebacks if message and message in error), "")
    return "".join(f"    {line}\n" for line in tracebacks.pop(message, "").splitlines())


def _entry(when: Any, level: str, text: str) -> str:
    stamp = timestamp(when.replace(microsecond=0)) if when else "-"
    return f"{stamp} {level} {' '.join(text.split())}\n"


AGAIN = (
    "To run it again: manage.py run_benchmark --experiment config.yaml",
    "Its data is in the database: the hashes below identify it, even after a rename.",
)
EXTERNAL = "This cannot be run: its rankings were imported, so BenchBench cannot reproduce them."
MAX_ID = 100
BLOCK = 2**20
Configurations = Mapping[Any, Configuration]  # by run id


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[bytes]:
    """Write the directory as a zip; equal results give equal bytes."""
    folder = folder_name(benchmark, version)
    with tempfile.SpooledTemporaryFile(max_size=BLOCK) as archive:
        write_zip({f"{folder}/{name}": pieces for name, pieces in files(benchmark, version).items()}, archive)
        archive.seek(0)
        while block := archive.read(BLOCK):
            yield block


def file_name(benchmark: Benchmark, version: DatasetVersion) -> str:
    return f"{folder_name(benchmark, version)}.zip"


def folder_name(benchmark: Benchmark, version: DatasetVersion) -> str:
    """Return the id of the experiment; for other benchmarks the name."""
    name = benchmark.experiment.get("id") or slug_of(benchmark)
    return name if version == benchmark.dataset_version else f"{name}.v{version.number}"


def files(benchmark: Benchmark, version: DatasetVersion) -> Files:
    """Return the files in the order for writing: writing the searches fills the summary."""
    runs = list(benchmark.runs.select_related("index").order_by("run_order"))
    names_by_run = configurations(runs)
    summaries: list[Summary] = []
    return {
        "config.yaml": [config_of(benchmark, version, runs)],
        "run.log": log_of(benchmark, version, runs, names_by_run),
        "index_stats.csv": results.index_stats((names_by_run[run.pk], stats_of(run.index)) for run in runs),
        "search_results.csv": _searches(runs, load_inputs(benchmark, version), version, names_by_run, summaries),
        "summary.csv": results.summary(summaries),
    }


def _searches(
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
        error = error_of(run)
        stream = failed_searches(inputs, error) if error else searches_of(run, evaluation_on(run, version), inputs)
        searches = list(stream)
        rows = [row for search in searches for row in results.search_rows(search, cutoffs)]
        yield from (results.search_line(names_by_run[run.pk], row) for row in rows)
        summaries.append(
            results.summarised(
                *(names_by_run[run.pk], stats_of(run.index), rows),
                consistency_score=results.consistency_of(searches, max(cutoffs)),
                runs_per_query=inputs.repetitions,
                error=error,
            )
        )


def configurations(runs: list[Run]) -> dict[Any, Configuration]:
    """Return the configuration of each run: strategy, store, encoder, language model.

    Equal names get additions to the strategy until they are distinct: chunk sizes, options that differ from the
    strategy's and the configuration's defaults, the hash. So "flat 200/20 hybrid" has one meaning in any set of runs.
    """
    names_by_run = {run.pk: searched_by(run) for run in runs}
    for words in NAMING:
        counts = Counter(names_by_run.values())
        for run in runs:
            named_run = names_by_run[run.pk]
            if counts[named_run] > 1:
                names_by_run[run.pk] = replace(named_run, strategy=f"{named_run.strategy} {words(run)}".rstrip())
    return names_by_run


def _settings(run: Run) -> str:
    keys = [key for key in keys_of([run.config]) if key != "index" and run.config[key] != DEFAULTS.get(key)]
    return " · ".join(phrases(run.config, keys))


NAMING: tuple[Callable[[Run], str], ...] = (
    lambda run: size_words(run.index.chunk_parameters) if run.index else "",
    lambda run: other_words(run.index.strategy, run.index.chunk_parameters) if run.index else "",
    _settings,
    lambda run: run.config_hash[:6],
    lambda run: str(run.run_order),
)


def stats_of(index: Index | None) -> IndexStats:
    if index is None:
        return IndexStats()
    names = ("duration_sec", "num_documents", "num_chunks", "num_vectors", "llm_calls", "embed_calls")
    return IndexStats(**{name: index.stats.get(name) for name in names}, error=index.error)


def config_of(benchmark: Benchmark, version: DatasetVersion, runs: Iterable[Run]) -> str:
    """Return the experiment that was run, with every key; for other benchmarks an experiment file without figures.

    Comments above it list what that file or the other files leave out. The experiment is parsed again, because
    PostgreSQL does not keep the order of an object's keys.
    """
    if config := benchmark.experiment.get("config"):
        return experiment_of(config, location="config").as_yaml()
    definition = definition_of(benchmark, own_evaluations(benchmark))
    sentences = [EXTERNAL] if benchmark.is_external else [*AGAIN, *_left_out(benchmark, version, runs)]
    comments = "".join(f"# {' '.join(sentence.split())}\n" for sentence in sentences)
    id = benchmark.experiment.get("id") or slug_of(benchmark)[:MAX_ID]
    return comments + strict_yaml.dump({"id": id, **definition})


def _left_out(benchmark: Benchmark, version: DatasetVersion, runs: Iterable[Run]) -> Iterator[str]:
    """Yield a sentence for each part of the runs or the other files that running it again would not give."""
    for index in dict.fromkeys(run.index for run in runs if run.index and run.index.status == Index.Status.FAILED):
        yield f'The index "{index}" could not be built: it and its runs are left out. {index.error}'
    if version != benchmark.dataset_version:
        yield (
            f"This file and the benchmark use version {benchmark.dataset_version.number} of the "
            f"dataset. The values in the other files are re-scored on version {version.number}."
        )
