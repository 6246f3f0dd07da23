"""Comparing runs query by query: whether they differ, by how much, and how sure that is."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from django.core.cache import cache
from numpy.typing import NDArray

from apps.benchmarks.comparability import Comparability, Difference, differences, whole
from apps.benchmarks.measuring.reading import values_of
from apps.benchmarks.measuring.slicing import slicings_of
from apps.benchmarks.models import Baseline, Evaluation, Run
from apps.datasets.models import DatasetVersion
from apps.results.configurations import distinct_labels
from apps.results.leaderboard.runs import primary_measure
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.measures import Measure, Values
from benchbench.ir.slices import MINIMUM, Slice
from benchbench.ir.statistics.significance import Comparison, compare
from benchbench.ir.statistics.verdict import Verdict, verdict

MOST_RUNS = 64
CACHED_SECONDS = 3600
Standing = Literal["baseline", "best", "better", "worse", "not distinguishable"]


class ComparingError(BenchbenchError):
    """A comparison that was asked for wrongly."""

    code = "comparison"


class IncomparableError(ConflictError):
    """The runs were measured against different truths. `comparability` says in what they differ."""

    code = "incomparable"

    def __init__(self, comparability: Comparability) -> None:
        super().__init__(" ".join(comparability.refusals))
        self.comparability = comparability


@dataclass(frozen=True, kw_only=True, eq=False)
class RunValues:
    """The stored values of runs on the queries that count in their means."""

    primary: str
    seed: int
    values: dict[str, Values]  # of every measure that all runs have, (runs, queries)
    query_ids: NDArray[np.int64]
    slices: tuple[Slice, ...]  # of these queries
    skipped: int  # queries without a relevant judgment, under the policy to skip them


def read_values(runs: Sequence[Run], measured: Mapping[Any, Evaluation]) -> RunValues:
    """Return the values of runs whose evaluations are `measured`, by run id, in one query and what the slices cost.

    The primary measure, the seed, the slices and the policy are those of the first run's benchmark, the oldest. Under
    the policy to skip, a query counts if it has a relevant document by the mapping of every run.
    """
    benchmark, evaluations = runs[0].benchmark, [measured[run.pk] for run in runs]
    common = [name for name in evaluations[0].measures if all(name in row.measures for row in evaluations)]
    values = values_of(evaluations, common)
    of_mapping: dict[Any, Run] = {}
    for run in runs if benchmark.empty_queries == "skip" else runs[:1]:
        of_mapping.setdefault(run.benchmark.mapping_id, run)
    slicings = slicings_of([(run.benchmark, measured[run.pk]) for run in of_mapping.values()])
    counted = np.ones(len(evaluations[0].query_ids), bool)
    if benchmark.empty_queries == "skip":
        counted = np.all([slicing.has_relevant for slicing in slicings], axis=0)
    members = [(slice_, slice_.members[counted]) for slice_ in slicings[0].slices]
    return RunValues(
        primary=primary_measure(benchmark),
        seed=benchmark.seed,
        values={name: values[:, place, counted] for place, name in enumerate(common)},
        query_ids=np.array(evaluations[0].query_ids, np.int64)[counted],
        slices=tuple(
            replace(slice_, members=inside, is_small=bool(inside.sum() < MINIMUM)) for slice_, inside in members
        ),
        skipped=int((~counted).sum()),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RunComparison(RunValues):
    """Runs of one dataset version, compared on the queries of `slice`, or on all.

    `runs`, `labels`, the rows of every array of `values` and the numbers in `comparison` and `verdict` are in one
    order. The columns of `values` are `query_ids`, NaN where a run has no value; queries that the policy for empty
    queries skips are left out.
    """

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    comparability: Comparability
    version: DatasetVersion
    measure: str  # what is compared; only the primary one is tested, any other is described
    slice: Slice | None
    comparison: Comparison
    verdict: Verdict

    @property
    def tested(self) -> bool:
        return self.measure == self.primary and not (self.slice and self.slice.is_small)

    @property
    def reference(self) -> int:
        """The run that the others are shown against: the baseline, or else the best."""
        return self.verdict.reference

    @property
    def pinned(self) -> bool:
        """Whether the baseline is one that was approved for the dataset, and so named beforehand."""
        baseline = self.comparison.baseline
        return baseline is not None and bool(pinned_baselines([self.runs[baseline]]))

    @property
    def order(self) -> list[int]:
        """The runs by falling mean."""
        means = self.comparison.means
        return sorted(range(len(means)), key=lambda run: (-means[run], run))

    def standing(self, run: int) -> Standing:
        """Return how a run stands to the reference, as a Standing; it is said of a tested comparison only."""
        if run == self.reference:
            return "baseline" if self.verdict.against_baseline else "best"
        if run in self.verdict.better:
            return "better"
        return "worse" if run in self.verdict.worse else "not distinguishable"

    @property
    def members(self) -> NDArray[np.bool_]:
        """Which queries are compared, but for those that some run did not answer."""
        return np.ones(len(self.query_ids), bool) if self.slice is None else self.slice.members

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

    A measure is named as it is or as it is on the wire; without one it is the primary one.

    The family is all pairs, or every other run against `baseline`, which is one of them. Runs that lost too many
    queries to be ranked are left out of it, with a warning: it is compared on the queries that all of it answered. The
    values are those on `version`, by default as `comparability.differences` chooses. The primary measure and the seed
    are those of the oldest benchmark among them. The statistics are kept for an hour, by the values they are made of.

    Raises IncomparableError where the ground truth differs, ComparingError for fewer than 2 runs or more than 64, for
    fewer than 2 that are ranked and a baseline that is not, for fewer than 2 queries with a value in every run, and for
    a measure, baseline or slice that is not there; SlicingError where the mapping was resolved again since they were
    measured.
    """
    known, comparability = _ranked(_load(runs), baseline, version)
    if comparability.version is None:  # refused: no number may stand beside another
        raise IncomparableError(comparability)
    compared = read_values(known, comparability.measured)
    # Programs name measures as the API does (`ndcg@10`), people as the pages do (`nDCG@10`).
    by_wire_name = {Measure.parse(name).wire: name for name in compared.values}
    wanted = by_wire_name.get(measure, measure) if measure else compared.primary
    measure = _chosen(wanted, list(compared.values), "measure", "They have no common")
    if falls(measure):  # the verdict calls the greatest mean the best, which of ranks is the worst
        raise ComparingError(
            f"{measure} falls as a run improves, so it cannot say which run is best: compare by RR, its reciprocal.",
            field="measure",
        )
    slices = {slice_.name: slice_ for slice_ in compared.slices}
    asked = None if slice is None else slices[_chosen(slice, list(slices), "slice", "The dataset has no")]
    if baseline is not None and baseline not in known:
        raise ComparingError(f'The baseline "{baseline}" is not among the compared runs: add it.', field="baseline")
    values = compared.values[measure] if asked is None else compared.values[measure][:, asked.members]
    labels = tuple(distinct_labels(known))
    _require_common(values, labels)  # before the statistics, which know runs by number only: this names the run
    comparison = _compare(
        values, seed=compared.seed if seed is None else seed, baseline=known.index(baseline) if baseline else None
    )
    return RunComparison(
        **vars(compared),
        runs=tuple(known),
        labels=labels,
        comparability=comparability,
        version=comparability.version,
        measure=measure,
        slice=asked and replace(asked, is_small=comparison.n < MINIMUM),  # n: those that all answered
        comparison=comparison,
        verdict=verdict(comparison),
    )


def falls(measure: str) -> bool:
    """Tell whether the lower of two values of a measure is the better one."""
    return Measure.parse(measure).definition.better == "lower"


def pinned_baselines(runs: Sequence[Run]) -> list[Run]:
    """Return those of `runs` that are approved baselines of their dataset: named before anyone looked at these."""
    pinned = set(Baseline.objects.filter(run__in=runs, retired_at__isnull=True).values_list("run", flat=True))
    return [run for run in runs if run.pk in pinned]


def _load(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, the oldest benchmark's first: a fixed order, in which equal runs have equal statistics."""
    known = {run.pk: run for run in runs}
    if not 2 <= len(known) <= MOST_RUNS:
        raise ComparingError(f"A comparison takes 2 to {MOST_RUNS} runs, not {len(known)}.", field="run")
    return sorted(whole(known.values()), key=lambda run: (run.benchmark.created_at, run.benchmark_id, run.run_order))


def _ranked(known: list[Run], baseline: Run | None, version: DatasetVersion | None) -> tuple[list[Run], Comparability]:
    """Return the runs that lost few enough queries, and what differs between them; a warning names the others."""
    every = differences(known, version=version)
    why = {run: every.measured[run.pk].unranked for run in known if run.pk in every.measured}
    unranked = [run for run, sentence in why.items() if sentence]
    if every.version is None or not unranked:
        return known, every
    kept = [run for run in known if run not in unranked]
    told = [f"{run} is left out. {why[run]}" for run in unranked]
    if len(kept) < 2 or baseline in unranked:
        raise ComparingError(" ".join(told), field="baseline" if baseline in unranked else "run")
    among = differences(kept, version=every.version)
    warnings = tuple(Difference("queries", "warn", sentence) for sentence in told)
    return kept, replace(among, differences=(*among.differences, *warnings))


def _chosen(name: str, names: Sequence[str], what: str, lacking: str) -> str:
    if name not in names:
        raise ComparingError(f'{lacking} {what} "{name}"; there is {", ".join(names) or "none"}.', field=what)
    return name


def _require_common(values: Values, labels: Sequence[str]) -> None:
    """Raise the sentence for too few queries to compare, with the run that answered fewest by its name."""
    answered = ~np.isnan(values)
    common = int(answered.all(axis=0).sum())
    if common < 2:
        fewest = int(answered.sum(axis=1).argmin())
        raise ComparingError(
            f"Of {counted(values.shape[1], 'query')} {common} {'has' if common == 1 else 'have'} a value in every "
            f"compared run, and a comparison needs 2 at least. {labels[fewest]} answered fewest, "
            f"{answered[fewest].sum():,}."
        )


def _compare(values: Values, *, seed: int, baseline: int | None) -> Comparison:
    """Compare, or answer with what came of the same values before."""
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes())
    digest.update(repr((values.shape, seed, baseline)).encode())
    key, make = f"comparison:{digest.hexdigest()}", partial(compare, values, seed=seed, baseline=baseline)
    return cast(Comparison, cache.get_or_set(key, make, CACHED_SECONDS))
