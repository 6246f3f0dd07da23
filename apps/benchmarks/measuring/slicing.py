"""The queries of a dataset version by kind, and means over one kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.core.cache import cache
from numpy.typing import NDArray

from apps.benchmarks.measuring.evaluating import truths_of
from apps.benchmarks.models import Benchmark, Evaluation
from apps.datasets.models import DatasetVersion, Query
from apps.datasets.versions import FIELDS, facts_of
from apps.mappings.truth import truth_hash
from benchbench.errors import ConflictError
from benchbench.ir.measures import mean
from benchbench.ir.slices import LabelShape, Slice, label_shape, slices_of

KEPT_SECONDS = 24 * 3600


class SlicingError(ConflictError):
    """Values cannot be told by slice."""

    code = "slicing"


@dataclass(frozen=True, slots=True, eq=False)
class Slicing:
    """The queries of a version in the order of `query_ids`, their slices, and which have a relevant document."""

    query_ids: tuple[int, ...]
    slices: tuple[Slice, ...]
    has_relevant: NDArray[np.bool_]

    def find(self, name: str) -> Slice | None:
        """Return the slice of that name, such as `category: billing`."""
        return next((slice_ for slice_ in self.slices if slice_.name == name), None)

    def ids_in(self, chosen: Slice) -> frozenset[int]:
        return frozenset(query for query, inside in zip(self.query_ids, chosen.members.tolist(), strict=True) if inside)


def slicing_of(benchmark: Benchmark, evaluation: Evaluation) -> Slicing:
    """Return the slices of the queries that `evaluation` has values for, in its order; else as `slicings_of`."""
    return slicings_of([(benchmark, evaluation)])[0]


def slicings_of(measured: Sequence[tuple[Benchmark, Evaluation]]) -> list[Slicing]:
    """Return the slices of the queries that each evaluation has values for: on one version, under one policy.

    Relevant documents are counted in the truth that the benchmark is measured against. What a frozen version and a
    truth make is kept; the first look costs a query for the texts and one for the truths.

    Raises SlicingError where the judgments have been given other documents since an evaluation was made: which queries
    have a relevant document, and how many, is then not what its values rest on.
    """
    slicings = [_kept(*pair) for pair in measured]
    unknown = [pair for pair, slicing in zip(measured, slicings, strict=True) if slicing is None]
    made = iter(_made(unknown) if unknown else [])
    return [slicing or next(made) for slicing in slicings]


def _key(benchmark: Benchmark, evaluation: Evaluation) -> str:
    return f"slicing:{evaluation.dataset_version_id}:{evaluation.truth_hash}:{benchmark.unresolved}"


def _kept(benchmark: Benchmark, evaluation: Evaluation) -> Slicing | None:
    known = cache.get(_key(benchmark, evaluation)) if evaluation.truth_hash else None
    return known if isinstance(known, Slicing) and list(known.query_ids) == evaluation.query_ids else None


def _made(measured: Sequence[tuple[Benchmark, Evaluation]]) -> Iterator[Slicing]:
    version = measured[0][1].dataset_version
    rows = {row.pk: row for row in version.queries.only("key", *FIELDS)}
    truths = truths_of([benchmark for benchmark, _ in measured], version, {pk: row.key for pk, row in rows.items()})
    for (benchmark, evaluation), truth in zip(measured, truths, strict=True):
        if evaluation.truth_hash and evaluation.truth_hash != truth_hash(truth):
            raise SlicingError(
                "The mapping was resolved again since these values were measured, so they cannot be shown by slice: "
                "re-score the benchmark."
            )
        counts = {query: sum(grade > 0 for grade in grades.values()) for query, grades in truth.grades.items()}
        made = slicing_by(rows, evaluation.query_ids, counts)
        if evaluation.truth_hash:
            cache.set(_key(benchmark, evaluation), made, KEPT_SECONDS)
        yield made


def slicing_or_why(benchmark: Benchmark, evaluation: Evaluation | None) -> tuple[Slicing | None, str]:
    """Return the slices of an evaluation, or None and the sentence that says why there are none, if there is one."""
    try:
        return (slicing_of(benchmark, evaluation) if evaluation else None), ""
    except SlicingError as error:
        return None, error.message


def slicing_of_version(version: DatasetVersion) -> tuple[Slicing, LabelShape]:
    """Return the slices of a version's queries as its judgments are stated, and how many are relevant per query."""
    relevant = version.judgments.filter(grade__gt=0).order_by()
    rows = {row.pk: row for row in version.queries.order_by("id").only(*FIELDS)}
    counts = dict.fromkeys(rows, 0)
    for query_id in relevant.values_list("query_id", flat=True):
        counts[query_id] += 1
    return slicing_by(rows, list(counts), counts), label_shape(list(counts.values()))


def means_in(
    evaluation: Evaluation, slicing: Slicing, chosen: Slice, names: Sequence[str]
) -> Mapping[str, float | None]:
    """Return the means of the measures `names` over the queries of a slice, under the evaluation's policies.

    None where no query of the slice has a value. Over all queries these are the evaluation's own means.
    """
    known = [name for name in names if name in evaluation.measures]
    if not known:
        return {}
    values = np.stack([evaluation.column(name) for name in known])
    skip = evaluation.policies.get("empty_queries") == "skip"
    means = mean(
        values[:, chosen.members],
        has_relevant=slicing.has_relevant[chosen.members],
        empty="skip" if skip else "zero",
    )
    return {name: None if np.isnan(value) else float(value) for name, value in zip(known, means.values, strict=True)}


def slicing_by(rows: Mapping[int, Query], query_ids: Sequence[int], counts: Mapping[int, int]) -> Slicing:
    """Return the slices of queries with so many relevant documents each; `rows` has the queries by id."""
    facts = [facts_of(rows[query_id], counts.get(query_id, 0)) for query_id in query_ids]
    has_relevant = np.array([counts.get(query_id, 0) > 0 for query_id in query_ids], bool)
    return Slicing(tuple(query_ids), tuple(slices_of(facts)), has_relevant)
