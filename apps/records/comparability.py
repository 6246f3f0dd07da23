"""Comparability of runs: their differences apart from the configuration."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from django.db.models import Model

from apps.datasets.models import DatasetVersion
from apps.records.circumstances import Difference, group_by, list_circumstances, list_groups, name_runs
from apps.records.measuring.selection import Selection, find_selection
from apps.records.models import Evaluation, Run

Measured = dict[Any, Evaluation]  # by run id, on one version
RELATED = ("index", "benchmark__dataset_version__dataset", "benchmark__mapping__dataset_version")  # of a run
UNFINISHED = {"failed": ("failed", "Retry it"), "cancelled": ("was cancelled", "Resume it")}
POLICIES = {
    "unresolved": "unresolved judgments",
    "empty_queries": "queries without a relevant judgment",
    "weighting": "the weights of queries",
    "exclude_self": "the document whose id is the query's key",
    "identical_texts": "documents with identical texts",
}
POLICY_WORDS = {True: "excluded", False: "searched"}  # of a policy that is on or off


@dataclass(frozen=True)
class Comparability:
    """The differences between runs. `version` is the dataset version to compare them on; None if they are refused."""

    version: DatasetVersion | None
    differences: tuple[Difference, ...]
    evaluations: Measured = field(default_factory=dict, compare=False)  # on `version`, without values

    @cached_property
    def selection(self) -> Selection | None:
        """The judging round that selected the judgments of `version`, if one did. One query on first access."""
        return None if self.version is None else find_selection(self.version, self.evaluations.keys())

    @property
    def refusals(self) -> list[str]:
        return [difference.sentence for difference in self.differences if difference.severity == "refuse"]

    @property
    def warnings(self) -> list[str]:
        caveat = [self.selection.caveat] if self.selection else []
        return caveat + [difference.sentence for difference in self.differences if difference.severity == "warn"]

    @property
    def comparable(self) -> bool:
        return not self.refusals


def find_differences(runs: Iterable[Run], *, version: DatasetVersion | None = None) -> Comparability:
    """Return the differences between `runs` of any benchmarks, apart from their configuration. Costs two queries.

    They are compared on `version`. Without it this is their benchmarks' version or, if these are several, the newest
    on which all have values.

    Refuses runs without values and runs measured against different truths. The truths differ if these do: dataset,
    version (re-score to fix that), policy, the resolution of one mapping, or the documents that mappings give judgments
    in equal collections. Warns about different collections, queries, and other circumstances.
    """
    loaded = load_related(runs)
    all_differences = [*_check_finished(loaded), *_check_datasets(loaded)]
    if all_differences or not loaded:
        return Comparability(None, tuple(all_differences))
    evaluations = _load_evaluations(loaded)
    common = _find_common(evaluations)
    own_versions = {run.benchmark.dataset_version for run in loaded}
    if version is None and len(own_versions) > 1 and common:
        version = evaluations[loaded[0].pk][max(common)].dataset_version
    version = version or max(own_versions, key=lambda version: version.number)
    measured = {key: rows[version.number] for key, rows in evaluations.items() if version.number in rows}
    all_differences = [
        *_check_versions(loaded, evaluations, version),
        *_check_policies(loaded),
        *_check_mappings(loaded, measured, version),
        *_check_queries(loaded, measured),
        *list_circumstances(loaded),
    ]
    refused = any(difference.severity == "refuse" for difference in all_differences)
    return Comparability(None if refused else version, tuple(all_differences), measured)


def load_related(runs: Iterable[Run]) -> list[Run]:
    """Return runs in their order with RELATED loaded: in one query, or none if all have it already."""
    loaded = list(runs)
    if all(_has(run, path) for run in loaded for path in RELATED):
        return loaded
    order = {run.pk: number for number, run in enumerate(loaded)}
    return sorted(Run.objects.filter(pk__in=order).select_related(*RELATED), key=lambda run: order[run.pk])


def _has(row: Model | None, path: str) -> bool:
    """Check whether the rows along a path of foreign keys are loaded, or a key on it is null."""
    name, _, tail = path.partition("__")
    if row is None or not name:
        return True
    return name in row._state.fields_cache and _has(getattr(row, name), tail)


def _load_evaluations(runs: Sequence[Run]) -> dict[Any, dict[int, Evaluation]]:
    """Load each run's evaluations without their values: {run id: {version: …}}."""
    by_version: dict[Any, dict[int, Evaluation]] = {run.pk: {} for run in runs}
    rows = Evaluation.objects.filter(run__in=by_version).select_related("dataset_version__dataset")
    for row in rows.defer("values", "query_ids"):
        by_version[row.run_id][row.dataset_version.number] = row
    return by_version


def find_newest_version(runs: Iterable[Run]) -> DatasetVersion | None:
    """Return the newest version on which all runs have values; None without one. One query."""
    evaluations = _load_evaluations(list(runs))
    newest = max(_find_common(evaluations), default=None)
    return None if newest is None else next(iter(evaluations.values()))[newest].dataset_version


def _find_common(evaluations: dict[Any, dict[int, Evaluation]]) -> set[int]:
    return set.intersection(*(set(rows) for rows in evaluations.values()))


def _check_finished(runs: Sequence[Run]) -> Iterator[Difference]:
    for run in runs:
        if run.status != Run.Status.COMPLETED:
            reason, act = UNFINISHED.get(run.status, ("is not finished", "Wait for it"))
            sentence = f"{name_runs([run])} {reason}: it has no values. {act}, or leave it out."
            yield Difference("status", "refuse", sentence)


def _check_datasets(runs: Sequence[Run]) -> Iterator[Difference]:
    groups = group_by(runs, lambda run: run.benchmark.dataset_version.dataset)
    if len(groups) > 1:
        values = {f'"{dataset}"': group for dataset, group in groups.items()}
        yield Difference(
            "dataset", "refuse", f"They use different datasets: {list_groups(values)}. Compare runs of one dataset."
        )


def _check_versions(
    runs: Sequence[Run], evaluations: dict[Any, dict[int, Evaluation]], version: DatasetVersion
) -> Iterator[Difference]:
    """Refuse if a run has no values on `version`, and name the remedy."""
    unmeasured = [run for run in runs if version.number not in evaluations[run.pk]]
    if not unmeasured:
        return
    common = _find_common(evaluations)
    remedy = (
        f"Compare them on version {max(common)}, on which all have values"
        if common
        else _suggest_rescoring(unmeasured, version)
    )
    groups = group_by(runs, lambda run: str(run.benchmark.dataset_version))
    problem = f"Without values on {version}: {name_runs(unmeasured)}"
    if len(groups) > 1:
        problem = f"They were measured on different versions: {list_groups(groups)}"
    yield Difference("dataset version", "refuse", f"{problem}. {remedy}.")


def _suggest_rescoring(runs: Sequence[Run], version: DatasetVersion) -> str:
    benchmarks = ", ".join(f'"{benchmark}"' for benchmark in dict.fromkeys(run.benchmark for run in runs))
    return f"Re-score {benchmarks} on version {version.number}; this runs no searches"


def _check_policies(runs: Sequence[Run]) -> Iterator[Difference]:
    for name, subject in POLICIES.items():
        by_value = group_by(runs, attrgetter(f"benchmark.{name}"))
        if len(by_value) > 1:
            groups = {POLICY_WORDS.get(value, value): group for value, group in by_value.items()}
            remedy = "Run one benchmark again under the other policy."
            yield Difference(
                f"policy {name}", "refuse", f"They treat {subject} differently: {list_groups(groups)}. {remedy}"
            )


def _check_mappings(runs: Sequence[Run], measured: Measured, version: DatasetVersion) -> Iterator[Difference]:
    """Refuse if one mapping changed between measurements, or two give judgments other documents of equal collections.

    Warn if judgments mean documents of different collections, or states of one: each may be right for its own.
    """
    if len(group_by(runs, attrgetter("benchmark.unresolved", "benchmark.identical_texts"))) > 1:
        return  # refused already; the policies change the truth hashes too
    measured_runs = [run for run in runs if run.pk in measured]
    hashes: set[str] = set()
    by_mapping = group_by(measured_runs, lambda run: (run.benchmark.mapping, _find_fingerprint(run)))
    for (mapping, _), group in by_mapping.items():
        truths = {measured[run.pk].truth_hash for run in group}
        hashes |= truths
        if len(truths) > 1:
            yield Difference(
                "mapping",
                "refuse",
                f'The mapping "{mapping}" was resolved again between their measurements, so judgments now refer to '
                f"other documents. {_suggest_rescoring(group, version)}.",
            )
    by_documents = group_by(by_mapping, lambda searched: searched[1])
    for mappings in by_documents.values():
        truths = {measured[run.pk].truth_hash for searched in mappings for run in by_mapping[searched]}
        mapping_names = " and ".join(f'"{mapping}"' for mapping, _ in mappings)
        if len(mappings) > 1 and len(truths) > 1:
            yield Difference(
                "mapping",
                "refuse",
                f"Their collections hold the same documents, but the mappings {mapping_names} resolve judgments to "
                "different ones. Resolve both alike and re-score, or run both on one mapping.",
            )
    if len(by_documents) > 1 and len(hashes) > 1:
        several = len({mapping for mapping, _ in by_mapping}) < len(by_mapping)
        values = {
            f'"{mapping}"{f" on {mark[:12]}" if several else ""}, '
            f"{measured[group[0].pk].unresolved_count:,} unresolved": group
            for (mapping, mark), group in by_mapping.items()
        }
        yield Difference("mapping", "warn", f"Their judgments refer to different documents: {list_groups(values)}.")


def _find_fingerprint(run: Run) -> str:
    """Return the fingerprint of the documents among which a run's judgments find theirs."""
    searched = run.lineage.collection
    recorded = searched.fingerprint if searched and run.benchmark.state is not None else ""
    return recorded or run.benchmark.mapping.collection_fingerprint


def _check_queries(runs: Sequence[Run], measured: Measured) -> Iterator[Difference]:
    """Warn if the means are over different queries."""
    is_reported = False
    paired = "Only queries that every run answered are paired."
    for name, phrase in (("failed_queries", "failed"), ("unsearched_queries", "never asked")):
        counts = {run: f"{getattr(measured[run.pk], name):,} {phrase}" for run in runs if run.pk in measured}
        groups = group_by(counts, counts.__getitem__)
        if len(groups) > 1:
            is_reported = True
            yield Difference(
                "queries", "warn", f"Their means are over different queries: {list_groups(groups)}. {paired}"
            )
    incomplete = [row for row in measured.values() if row.failed_queries or row.unsearched_queries]
    if not is_reported and len(_list_answered(incomplete)) > 1:
        phrase = "Their means are over different queries of the same number, because different queries failed."
        yield Difference("queries", "warn", f"{phrase} {paired}")


def _list_answered(evaluations: Sequence[Evaluation]) -> set[frozenset[int]]:
    """Return the distinct sets of queries that have values."""
    rows = Evaluation.objects.filter(pk__in=[row.pk for row in evaluations]).values_list("query_ids", "values")
    return {
        frozenset(query for query, value in zip(query_ids, values[0], strict=True) if value is not None)
        for query_ids, values in rows
    }
