"""Flowbaby's files for a run: its results under either aggregation profile, and run.json with its rankings."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from apps.collections.models import Document
from apps.collections.states import load_former_metadata
from apps.datasets.models import DatasetVersion
from apps.execution.running.timing import find_execution
from apps.records.lists.reading import load_rankings, load_results
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Run
from apps.results.exporters.outcomes import AT_ONCE, NOT_ASKED, Outcome, require_evaluation, run_id_of, stream_outcomes
from apps.results.exporters.spec002 import find_end
from apps.results.exporters.tables import format_scores
from benchbench import SOFTWARE
from benchbench.files import flowbaby_results as files
from benchbench.files.flowbaby import DEFAULT_SLICE, render_run
from benchbench.ir.canonical import CURRENT, RunEntry, export_retrieval_results_to_run
from benchbench.ir.measures import count_once, name_texts
from benchbench.ir.profiles import Profile
from benchbench.markup import text
from benchbench.scoring.measuring import build_figures, score
from benchbench.timestamps import timestamp

FAILED = "failed_queries"  # {key: error}; only present with failures: Flowbaby's own files have no such key
FORMAT = "flowbaby"  # a dataset's format in which references to documents are canonical ids
About = dict[int, tuple[Any, Any, Any]]  # topic_id, topic and source from documents' metadata, by primary key


def write_results(run: Run, version: DatasetVersion, *, profile: Profile) -> Iterator[str]:
    yield files.render_json(_build_results(run, version, profile))


def write_markdown(run: Run, version: DatasetVersion, *, profile: Profile) -> Iterator[str]:
    results = _build_results(run, version, profile)
    yield files.render_markdown(results)
    if failed := results.get(FAILED):
        yield "\n## Failed Queries\n\n" + "".join(f"- {text(key)}: {text(error)}\n" for key, error in failed.items())


def write_summary(run: Run, version: DatasetVersion, *, profile: Profile) -> Iterator[str]:
    """Write summary.json. Its git_sha is that of the workers if all had the same, its duration that of the run."""
    results = _build_results(run, version, profile)
    splits = set(version.queries.values_list("split", flat=True))
    metadata = version.dataset.metadata
    about = files.Provenance(
        run_id=run_id_of(run),
        timestamp=timestamp(find_end(run)),
        dataset_id=str(metadata.get("dataset_id") or version.dataset.name),
        dataset_version=version.label or str(version.number),
        canonicalization_version=str(metadata.get("canonicalization_version") or CURRENT),
        git_sha=run.lineage.git_revision,
        evaluation_split=splits.pop() or None if len(splits) == 1 else None,
        duration_ms=run.times.cost_ms,
    )
    failed = results.get(FAILED)
    more: dict[str, object] = {"software": SOFTWARE} | ({FAILED: len(failed)} if failed else {})
    more |= {"execution": execution} if (execution := find_execution(run.benchmark, run.times.cost_ms)) else {}
    yield files.render_json(files.build_summary(results, about) | more)


def _build_results(run: Run, version: DatasetVersion, profile: Profile) -> dict[str, Any]:
    """Return the content of results.json: judged queries that did not fail, measured at the benchmark's cutoffs."""
    require_evaluation(run, version)
    truth = load_truth(run.benchmark, version).grades
    grades = {pk: count_once(graded) for pk, graded in truth.items()}
    queries = {query.pk: query for query in version.queries.order_by("pk")}
    ranked = load_rankings(run)
    judged = {query.key: grades[pk] for pk, query in queries.items() if grades[pk] and pk in ranked}
    rankings = {query.key: name_texts(truth[pk], ranked[pk]) for pk, query in queries.items() if pk in ranked}
    scores = score(judged, rankings, files.list_measures(run.benchmark.k_values))
    slices = {query.key: query.slices or [DEFAULT_SLICE] for query in queries.values()}
    figures = build_figures(scores, slices, {key: len(graded) for key, graded in judged.items()})
    judgments = [len(grades[pk]) for pk in queries]
    results = files.build_results(figures, profile=profile, cutoffs=run.benchmark.k_values, judged=judgments)
    missing = {pk: query.key for pk, query in queries.items() if pk not in ranked}
    outcomes = load_results(run, list(missing))
    failed = {key: outcomes[pk].error if pk in outcomes else NOT_ASKED for pk, key in missing.items()}
    return results | ({FAILED: failed} if failed else {})


def write_run(run: Run, version: DatasetVersion) -> Iterator[str]:
    """Write the run like `export_retrieval_results_to_run`, which exports live results, one line per entry.

    A document is named by `topic_id` or `topic` of its metadata, else by its external id. Over a Flowbaby dataset it is
    always the external id, by which the judgments' canonical ids were resolved. Scoring the file against the dataset
    thus gives our values, unless documents written by a model are left out. Scores fall strictly, as float32, so that
    sorting by them gives our ranks. A failed query has no entry.
    """
    dataset = version.dataset
    rules = str(dataset.metadata.get("canonicalization_version") or CURRENT)
    outcomes = stream_outcomes(run, require_evaluation(run, version))
    state = run.benchmark.state
    entries = _list_entries(outcomes, rules, resolved_by_id=dataset.source_format == FORMAT, state=state)
    yield from render_run(run_id_of(run), entries)


def _list_entries(
    outcomes: Iterator[Outcome], rules: str, *, resolved_by_id: bool, state: int | None
) -> Iterator[RunEntry]:
    while group := list(islice(outcomes, AT_ONCE)):
        documents = {key for outcome in group for key in outcome.document_ids}
        some = Document.objects.filter(pk__in=documents).exclude(metadata={})
        rows = some.values_list("pk", "metadata__topic_id", "metadata__topic", "metadata__source")
        about = {key: (topic_id, topic, source) for key, topic_id, topic, source in rows}
        for key, metadata in load_former_metadata(documents, state).items():
            about[key] = (metadata.get("topic_id"), metadata.get("topic"), metadata.get("source"))
        for outcome in group:
            results = {outcome.query.key: _list_results(outcome, about, resolved_by_id)}
            yield from export_retrieval_results_to_run(results, "", version=rules).entries


def _list_results(outcome: Outcome, about: About, resolved_by_id: bool) -> Iterator[dict[str, object]]:
    scores = map(float, format_scores(outcome.scores))
    for key, name, falling in zip(outcome.document_ids, outcome.documents, scores, strict=True):
        topic_id, topic, source = about.get(key, (None, None, None))
        topic_facts = {} if resolved_by_id else {"topic_id": _parse_name(topic_id), "topic": _parse_name(topic)}
        identity = topic_facts if any(topic_facts.values()) else {"topic_id": name}
        yield {**identity, "score": falling, "metadata": {"source": source}}


def _parse_name(value: object) -> str:
    """Return a metadata value as a name; "" if it cannot be one."""
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
