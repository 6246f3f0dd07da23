"""Comparing runs query by query: whether they differ, by how much, and with what certainty."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast
from uuid import UUID

import numpy as np
from django.core.cache import cache
from numpy.typing import NDArray

from apps.datasets.models import DatasetVersion
from apps.records.comparability import Comparability, Difference, find_differences, load_related
from apps.records.measuring.selection import Selection
from apps.records.models import Baseline, Run
from apps.verdicts.configurations import build_labels
from apps.verdicts.values import RunValues, load_run_values
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.demand import name_mean
from benchbench.ir.measures import Measure, Values
from benchbench.ir.slices import MINIMUM, Slice
from benchbench.ir.statistics.significance import Comparison, compare
from benchbench.ir.statistics.verdict import Verdict, compute_rank_ranges, find_verdict

MOST_RUNS = 64
CACHED_SECONDS = 3600


class ComparingError(BenchbenchError):
    """The options of a comparison are invalid."""

    code = "comparison"


class IncomparableError(ConflictError):
    """The runs were measured against different truths. `comparability` names the differences."""

    code = "incomparable"

    def __init__(self, comparability: Comparability) -> None:
        super().__init__(" ".join(comparability.refusals))
        self.comparability = comparability


@dataclass(frozen=True, kw_only=True, eq=False)
class RunComparison(RunValues):
    """Runs of one dataset version, compared on the queries of `slice`, or on all.

    `runs`, `labels`, the rows of every array of `values` and the numbers in `comparison` and `verdict` have one order.
    The columns of `values` are `query_ids`. Every number covers the same queries: a column of a measure is NaN if some
    run has no value there, and `slices` have only the queries with a value of the compared measure. Queries that the
    policy for empty queries skips are left out.
    """

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    comparability: Comparability
    version: DatasetVersion
    measure: str  # the compared measure; only the primary one is tested, any other is described
    slice: Slice | None
    comparison: Comparison
    verdict: Verdict  # that of `carried`, if there is one
    carried: Selection | None = None  # the judging round whose verdict the version carries for all these runs

    @property
    def title(self) -> str:
        """The name of the means of the compared measure: "nDCG@10, weighted by demand"."""
        return name_mean(self.measure, self.means_name)

    @property
    def is_tested(self) -> bool:
        return self.measure == self.primary and not (self.slice and self.slice.is_small)

    @property
    def reference(self) -> int:
        """The run that the others are compared with: the baseline, else the best."""
        return self.verdict.reference

    @property
    def pinned(self) -> bool:
        """Whether the baseline is an approved baseline of the dataset, chosen before this comparison."""
        baseline = self.comparison.baseline
        return baseline is not None and bool(list_pinned_baselines([self.runs[baseline]]))

    @property
    def plain(self) -> "RunComparison":
        """The same by the plain means alone."""
        return replace(self, verdict=find_verdict(self.comparison), carried=None)

    @property
    def ids(self) -> list[UUID]:
        return [run.pk for run in self.runs]

    @property
    def order(self) -> list[int]:
        """The runs by falling mean: the expected one, if the version carries a round's verdict on them."""
        means = self.comparison.means
        if self.carried:
            means = tuple(expected.mean for expected in self.carried.list_expected(self.ids))
        return sorted(range(len(means)), key=lambda run: (-means[run], run))

    def list_rank_ranges(self) -> list[tuple[Run, str]]:
        """Return the runs whose rank is a range, with the range: "1–3"."""
        ranks = self.carried.find_rank_ranges(self.ids) if self.carried else compute_rank_ranges(self.comparison)
        ranges = zip(self.runs, ranks, strict=True)
        return [(run, f"{first}–{last}") for run, (first, last) in ranges if first < last]

    @property
    def members(self) -> NDArray[np.bool_]:
        """Mask of the queries of the slice, with those that some run did not answer."""
        return np.ones(len(self.query_ids), bool) if self.slice is None else self.slice.members

    @property
    def counted_as(self) -> str:
        """The unit of shares of the queries: "demand", or "queries" if they count alike."""
        return "demand" if self.comparison.is_weighted else "queries"

    @property
    def compared_weights(self) -> Values | None:
        """The weights of the compared queries, (queries,); None if means count them alike."""
        return None if self.weights is None else self.weights[self.members]

    @property
    def compared(self) -> Values:
        """The values of the compared measure on the compared queries, (runs, queries)."""
        return self.values[self.measure][:, self.members]


def compare_runs(
    runs: Iterable[Run],
    *,
    measure: str | None = None,
    baseline: Run | None = None,
    slice: str | None = None,
    seed: int | None = None,
    version: DatasetVersion | None = None,
) -> RunComparison:
    """Compare `runs`, of any benchmarks, by `measure` on the queries of `slice`, or all.

    `measure` is a name or a wire name, by default the primary measure.

    The family is all pairs, or every other run against `baseline`, which must be one of `runs`. Runs that lost too many
    queries to be ranked are left out with a warning; the queries are those that all the others answered. The values are
    those on `version`, by default the choice of `comparability.differences`. The primary measure and the seed come from
    the oldest benchmark. The statistics are cached for an hour by a hash of their values.

    Raises IncomparableError if the truths differ, SlicingError if the mapping was resolved again after measuring.
    Raises ComparingError for fewer than 2 runs or more than 64, and for fewer than 2 ranked runs or an unranked
    baseline. Also for fewer than 2 queries with a value in every run, and for an unknown measure, baseline or slice.
    """
    ranked, comparability = _select_ranked(_load(runs), baseline, version)
    if comparability.version is None:  # refused: incomparable numbers are never shown together
        raise IncomparableError(comparability)
    compared = load_run_values(ranked, comparability.evaluations)
    measure = _choose_measure(measure, compared)
    slices = {slice_.name: slice_ for slice_ in compared.slices}
    subset = None if slice is None else slices[_check_name(slice, list(slices), "slice", "The dataset has no")]
    if baseline is not None and baseline not in ranked:
        raise ComparingError(f'The baseline "{baseline}" is not among the compared runs: add it.', field="baseline")
    values, weights = compared.values[measure], compared.weights
    if subset is not None:
        values, weights = values[:, subset.members], None if weights is None else weights[subset.members]
    labels = tuple(build_labels(ranked))
    _require_common(values, labels)  # before the statistics, which know runs only by number: this names the run
    comparison = compare_values(
        values,
        weights,
        seed=compared.seed if seed is None else seed,
        baseline=ranked.index(baseline) if baseline else None,
    )
    every = {name: np.where(np.isnan(rows).any(axis=0), np.nan, rows) for name, rows in compared.values.items()}
    answered = ~np.isnan(every[measure][0])
    common = {"values": every, "slices": tuple(slice_.restrict(answered) for slice_ in compared.slices)}
    carried = _find_carried(comparability.selection, measure, compared, subset)
    verdict = carried and carried.judge([run.pk for run in ranked], comparison.baseline)
    return RunComparison(
        **vars(compared) | common,
        runs=tuple(ranked),
        labels=labels,
        comparability=comparability,
        version=comparability.version,
        measure=measure,
        slice=subset and replace(subset, is_small=comparison.n < MINIMUM),  # n: the queries that all runs answered
        comparison=comparison,
        verdict=verdict or find_verdict(comparison),
        carried=carried,
    )


def _find_carried(
    selection: Selection | None, measure: str, compared: RunValues, subset: Slice | None
) -> Selection | None:
    """Return the round whose verdict answers the comparison; a round counts queries alike, and settles one measure."""
    is_asked = measure == compared.primary and compared.weights is None and subset is None
    return selection if selection and is_asked and selection.settles(measure) else None


def _choose_measure(measure: str | None, compared: RunValues) -> str:
    """Return the measure to compare by. Programs use wire names (`ndcg@10`), people the names on the pages."""
    by_wire_name = {Measure.parse(name).wire: name for name in compared.values}
    measure_name = by_wire_name.get(measure, measure) if measure else compared.primary
    name = _check_name(measure_name, list(compared.values), "measure", "The runs have no common")
    if is_lower_better(name):  # the verdict calls the greatest mean the best, which is the worst for ranks
        raise ComparingError(
            f"{name} falls as a run improves, so it cannot say which run is best: use RR, its reciprocal.",
            field="measure",
        )
    return name


def is_lower_better(measure: str) -> bool:
    """Return whether lower values of a measure are better."""
    return Measure.parse(measure).definition.better == "lower"


def list_pinned_baselines(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that are approved baselines of their dataset, chosen before this comparison."""
    pinned = set(Baseline.objects.filter(run__in=runs, retired_at__isnull=True).values_list("run", flat=True))
    return [run for run in runs if run.pk in pinned]


def _load(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, the oldest benchmark's first: in a fixed order, so that equal runs have equal statistics."""
    by_id = {run.pk: run for run in runs}
    if not 2 <= len(by_id) <= MOST_RUNS:
        raise ComparingError(f"A comparison takes 2 to {MOST_RUNS} runs, not {len(by_id)}.", field="run")
    return sorted(
        load_related(by_id.values()), key=lambda run: (run.benchmark.created_at, run.benchmark_id, run.run_order)
    )


def _select_ranked(
    runs: list[Run], baseline: Run | None, version: DatasetVersion | None
) -> tuple[list[Run], Comparability]:
    """Return the runs that lost few enough queries, and their differences; a warning names the others."""
    comparability = find_differences(runs, version=version)
    reasons = {run: comparability.evaluations[run.pk].unranked for run in runs if run.pk in comparability.evaluations}
    unranked = [run for run, sentence in reasons.items() if sentence]
    if comparability.version is None or not unranked:
        return runs, comparability
    ranked = [run for run in runs if run not in unranked]
    sentences = [f"{run} is left out. {reasons[run]}" for run in unranked]
    if len(ranked) < 2 or baseline in unranked:
        raise ComparingError(" ".join(sentences), field="baseline" if baseline in unranked else "run")
    remaining = find_differences(ranked, version=comparability.version)
    warnings = tuple(Difference("queries", "warn", sentence) for sentence in sentences)
    return ranked, replace(remaining, differences=(*remaining.differences, *warnings))


def _check_name(name: str, names: Sequence[str], kind: str, lacking: str) -> str:
    if name not in names:
        raise ComparingError(f'{lacking} {kind} "{name}"; choose one of {", ".join(names) or "none"}.', field=kind)
    return name


def _require_common(values: Values, labels: Sequence[str]) -> None:
    """Raise ComparingError if too few queries have values in all runs; it names the run that answered fewest."""
    answered = ~np.isnan(values)
    common = int(answered.all(axis=0).sum())
    if common < 2:
        counts, with_values = answered.sum(axis=1), answered.any(axis=0).sum()
        remedy = (
            "Judge relevant documents of more queries."
            if with_values < 2
            else f"{labels[counts.argmin()]} answered the fewest, {counts.min():,}: retry it, or leave it out."
        )
        raise ComparingError(
            f"Only {common} of {counted(values.shape[1], 'query')} {'has' if common == 1 else 'have'} "
            f"a value in every compared run; a comparison needs at least 2. {remedy}"
        )


def compare_values(values: Values, weights: Values | None, *, seed: int, baseline: int | None) -> Comparison:
    """Return the statistics of these values, from the cache if possible."""
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes())
    digest.update(b"" if weights is None else weights.tobytes())
    digest.update(repr((values.shape, seed, baseline, weights is None)).encode())
    make = partial(compare, values, seed=seed, baseline=baseline, weights=weights)
    key = f"comparison:3:{digest.hexdigest()}"
    return cast(Comparison, cache.get_or_set(key, make, CACHED_SECONDS))
