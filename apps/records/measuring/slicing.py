"""Slices of the queries of a dataset version, and means over a slice."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.core.cache import cache
from numpy.typing import NDArray

from apps.datasets.models import DatasetVersion, Query
from apps.datasets.versions import FIELDS, build_facts
from apps.mappings.truth import Truth, hash_truth
from apps.records.measuring.evaluating import load_truths
from apps.records.models import Benchmark, Evaluation
from benchbench.errors import ConflictError
from benchbench.ir.measures import count_once, mean
from benchbench.ir.slices import LabelShape, Slice, cut_slices, label_shape

CACHE_SECONDS = 24 * 3600


class SlicingError(ConflictError):
    """The values cannot be shown by slice."""

    code = "slicing"


@dataclass(frozen=True, slots=True, eq=False)
class Slicing:
    """The queries of a version in the order of `query_ids`: slices, which have relevant documents, and weights."""

    query_ids: tuple[int, ...]
    slices: tuple[Slice, ...]
    has_relevant: NDArray[np.bool_]
    weights: NDArray[np.float64]  # of the queries, whether or not means count them

    def find(self, name: str) -> Slice | None:
        """Return the slice called `name`, such as `category: billing`."""
        return next((slice_ for slice_ in self.slices if slice_.name == name), None)

    def list_ids(self, chosen: Slice) -> frozenset[int]:
        return frozenset(query for query, inside in zip(self.query_ids, chosen.members.tolist(), strict=True) if inside)


def load_slicing(benchmark: Benchmark, evaluation: Evaluation) -> Slicing:
    """Return the slices of the queries of `evaluation`, in its order. Raises the same errors as `load_slicings`."""
    return load_slicings([(benchmark, evaluation)])[0]


def load_slicings(measured: Sequence[tuple[Benchmark, Evaluation]]) -> list[Slicing]:
    """Return the slices of the queries of each evaluation; all are on one version and under one policy.

    Relevant documents are counted in the truth that the benchmark is measured against. Results are cached by version
    and truth; a miss costs one query for the texts and one for the truths.

    Raises SlicingError if the mapping was resolved differently since an evaluation: its values then rest on other
    numbers of relevant documents.
    """
    slicings = [_load_cached(*pair) for pair in measured]
    uncached = [pair for pair, slicing in zip(measured, slicings, strict=True) if slicing is None]
    computed = iter(_compute_slicings(uncached) if uncached else [])
    return [slicing or next(computed) for slicing in slicings]


def _build_key(benchmark: Benchmark, evaluation: Evaluation) -> str:
    return f"slicing:3:{evaluation.dataset_version_id}:{evaluation.truth_hash}:{benchmark.unresolved}"


def _load_cached(benchmark: Benchmark, evaluation: Evaluation) -> Slicing | None:
    cached = cache.get(_build_key(benchmark, evaluation)) if evaluation.truth_hash else None
    return cached if isinstance(cached, Slicing) and list(cached.query_ids) == evaluation.query_ids else None


def _compute_slicings(measured: Sequence[tuple[Benchmark, Evaluation]]) -> Iterator[Slicing]:
    version = measured[0][1].dataset_version
    rows = {row.pk: row for row in version.queries.only("key", *FIELDS)}
    truths = load_truths([benchmark for benchmark, _ in measured], version, {pk: row.key for pk, row in rows.items()})
    for (benchmark, evaluation), truth in zip(measured, truths, strict=True):
        if evaluation.truth_hash and evaluation.truth_hash != hash_truth(truth):
            raise SlicingError(
                "The mapping was resolved again since these values were measured, so they cannot be shown by slice: "
                "re-score the benchmark."
            )
        slicing = build_slicing(rows, evaluation.query_ids, _count_relevant(truth))
        if evaluation.truth_hash:
            cache.set(_build_key(benchmark, evaluation), slicing, CACHE_SECONDS)
        yield slicing


def try_slicing(benchmark: Benchmark, evaluation: Evaluation | None) -> tuple[Slicing | None, str]:
    """Return the slices of an evaluation and "", or None and the reason ("" without an evaluation)."""
    try:
        return (load_slicing(benchmark, evaluation) if evaluation else None), ""
    except SlicingError as error:
        return None, error.message


def slice_truth(version: DatasetVersion, truth: Truth) -> Slicing:
    """Return the slices of a version's queries, in the order of its `truth`. One query."""
    rows = {row.pk: row for row in version.queries.only("key", *FIELDS)}
    return build_slicing(rows, list(truth.grades), _count_relevant(truth))


def _count_relevant(truth: Truth) -> dict[int, int]:
    counted = {query: count_once(grades) for query, grades in truth.grades.items()}
    return {query: sum(grade > 0 for grade in grades.values()) for query, grades in counted.items()}


def slice_version(version: DatasetVersion) -> tuple[Slicing, LabelShape]:
    """Return the slices of a version's queries, and its label shape, from its judgments without a mapping."""
    relevant = version.judgments.filter(grade__gt=0).order_by()
    rows = {row.pk: row for row in version.queries.order_by("id").only(*FIELDS)}
    counts = dict.fromkeys(rows, 0)
    for query_id in relevant.values_list("query_id", flat=True):
        counts[query_id] += 1
    return build_slicing(rows, list(counts), counts), label_shape(list(counts.values()))


def compute_means(
    evaluation: Evaluation, slicing: Slicing, chosen: Slice, names: Sequence[str]
) -> Mapping[str, float | None]:
    """Return the means of the measures `names` over the queries of a slice, under the evaluation's policies.

    None means that no query of the slice has a value. Over all queries the means are the evaluation's own.
    """
    measured = [name for name in names if name in evaluation.measures]
    if not measured:
        return {}
    values = np.stack([evaluation.get_column(name) for name in measured])
    skip = evaluation.policies.get("empty_queries") == "skip"
    means = mean(
        values[:, chosen.members],
        has_relevant=slicing.has_relevant[chosen.members],
        empty="skip" if skip else "zero",
        weights=slicing.weights[chosen.members] if evaluation.weighting == "demand" else None,
    )
    return {name: None if np.isnan(value) else float(value) for name, value in zip(measured, means.values, strict=True)}


def build_slicing(rows: Mapping[int, Query], query_ids: Sequence[int], counts: Mapping[int, int]) -> Slicing:
    """Return the slices of the queries in `rows`; `counts` has their numbers of relevant documents by id."""
    facts = [build_facts(rows[query_id], counts.get(query_id, 0)) for query_id in query_ids]
    has_relevant = np.array([counts.get(query_id, 0) > 0 for query_id in query_ids], bool)
    weights = np.array([rows[query_id].weight for query_id in query_ids], np.float64)
    return Slicing(tuple(query_ids), tuple(cut_slices(facts)), has_relevant, weights)
