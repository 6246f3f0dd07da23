"""Flowbaby's run.json: what a run retrieved, keyed by ids that survive a new index (benchbench/ir/canonical.py)."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from apps.benchmarks.models import Run
from apps.collections.models import Document
from apps.datasets.models import DatasetVersion
from apps.results.exporters.outcomes import AT_ONCE, Outcome, measured, outcomes_of, run_id_of
from apps.results.exporters.trec import strictly_falling
from benchbench.files.flowbaby import written_run
from benchbench.ir.canonical import CURRENT, RunEntry, export_retrieval_results_to_run

FORMAT = "flowbaby"  # of a dataset whose references to documents are canonical ids
About = dict[int, tuple[Any, Any, Any]]
"""topic_id, topic and source that the metadata of documents state, by primary key."""


def write(run: Run, version: DatasetVersion) -> Iterator[str]:
    """The run as `export_retrieval_results_to_run` makes it of live results, a line an entry.

    A document is the item that its metadata names by `topic_id` or `topic`, else its external id. Over a Flowbaby
    dataset it is always its external id, since the judgments, which state canonical ids, were resolved by that: the
    file scored against the dataset has our values, unless documents are left out as written by a model. Scores fall
    strictly, as float32, so that whoever orders by them finds our ranks. A query that failed has no entry.
    """
    dataset = version.dataset
    rules = str(dataset.metadata.get("canonicalization_version") or CURRENT)
    outcomes = outcomes_of(run, measured(run, version))
    entries = _entries(outcomes, rules, resolved_by_id=dataset.source_format == FORMAT)
    yield from written_run(run_id_of(run), entries)


def _entries(outcomes: Iterator[Outcome], rules: str, *, resolved_by_id: bool) -> Iterator[RunEntry]:
    while part := list(islice(outcomes, AT_ONCE)):
        documents = {
            key for outcome in part if outcome.result and not outcome.error for key in outcome.result.document_ids
        }
        about = _stated(documents)
        for outcome in part:
            results = {outcome.query.key: _results(outcome, about, resolved_by_id)}
            yield from export_retrieval_results_to_run(results, "", version=rules).entries


def _results(outcome: Outcome, about: About, resolved_by_id: bool) -> Iterator[dict[str, Any]]:
    keys: Sequence[int] = outcome.result.document_ids if outcome.result and outcome.documents else []
    scores = map(float, strictly_falling(outcome.scores))
    for key, name, score in zip(keys, outcome.documents, scores, strict=True):
        topic_id, topic, source = about.get(key, (None, None, None))
        topic_facts = {} if resolved_by_id else {"topic_id": _text(topic_id), "topic": _text(topic)}
        named = topic_facts if any(topic_facts.values()) else {"topic_id": name}
        yield {**named, "score": score, "metadata": {"source": source}}


def _stated(keys: Collection[int]) -> About:
    some = Document.objects.filter(pk__in=keys).exclude(metadata={})
    rows = some.values_list("pk", "metadata__topic_id", "metadata__topic", "metadata__source")
    return {key: (topic_id, topic, source) for key, topic_id, topic, source in rows}


def _text(value: Any) -> str:
    """Return what a metadata value names; nothing for what is no name."""
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
