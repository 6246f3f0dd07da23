"""The measures of a benchmark: those at its cutoffs, added ones, and `Judged` at each cutoff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from apps.datasets.models import DatasetVersion
from apps.operations.models import Operation
from apps.records.measuring.again import list_scored_versions, lock_benchmark, measure_or_queue
from apps.records.models import Benchmark
from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Measure, MeasureError, Truths, evaluate

MAX_MEASURES = 60
FAMILIES = ("nDCG", "P", "R")
USUAL = ("ndcg", "precision", "recall", "mrr", "ap", "map")  # wire names; in every benchmark, at its cutoffs


class MeasuresError(BenchbenchError):
    """The benchmark cannot have this measure."""

    code = "invalid_measure"


class MeasureNameError(MeasuresError):
    """A text names no measure."""

    is_misuse = True


def list_measures(k_values: Iterable[int], more: Sequence[str], version: DatasetVersion) -> list[str]:
    """Return the names of all measures: nDCG, P and R at each k, RR and AP, `more`, and `Judged` at each cutoff.

    `more` may have any names that `Measure` reads. Raises MeasuresError, which names an invalid measure.
    """
    at_k = [str(Measure(name, k)) for name in FAMILIES for k in k_values]
    return extend_measures(extend_measures([], [*at_k, "RR", "AP"], version), more, version)


def extend_measures(current: Sequence[str], additions: Sequence[str], version: DatasetVersion) -> list[str]:
    """Return `current`, then the new names of `additions` as stored, then missing `Judged` at each cutoff.

    Raises MeasuresError.
    """
    names = list(dict.fromkeys([*current, *(str(_parse(text)) for text in additions)]))
    judged = [str(Measure("Judged", Measure.parse(name).cutoff)) for name in names]
    complete = list(dict.fromkeys([*names, *judged]))
    if len(complete) > MAX_MEASURES:
        raise MeasuresError(
            f"These are {len(complete)} measures; a benchmark has at most {MAX_MEASURES}.", field="measures"
        )
    _require_measurable([name for name in complete if name not in current], version)
    return complete


def list_extra_measures(names: Iterable[str]) -> list[str]:
    """Return the measures in `names`, wire names or ours, that are not in every benchmark.

    `ndcg` means nDCG at every cutoff and is left out; `ndcg@3`, `map@10` and `ERR@20` are further measures. Raises
    MeasuresError for an unknown name.
    """
    stripped = [name.strip() for name in names]
    return [str(_parse(name)) for name in stripped if name.lower() not in USUAL]


@dataclass(frozen=True, slots=True)
class AddedMeasures:
    """The new names, including `Judged` measures, all measures, and the operation if measuring is queued."""

    names: list[str]
    measures: list[str]
    operation: Operation | None = None

    @property
    def sentence(self) -> str:
        """Describe the result to the user."""
        if self.operation:
            return f"Measuring by {', '.join(self.names)} is queued; the page shows the old values until it ends."
        return f"Measured by {', '.join(self.names)} from stored rankings."


def add_measures(
    benchmark: Benchmark, additions: Sequence[str], *, by: User | None = None, at_once: bool = False
) -> AddedMeasures:
    """Measure `benchmark` by `additions` too, from the stored rankings, without searching.

    Measures its completed runs again on every version on which they have values, so that all runs of a page have the
    same measures. Many rankings are queued, as by `rescore`. Raises MeasuresError for an invalid measure or if none is
    new. Raises ConflictError while the benchmark is running or being measured again, and QuotaError.
    """
    with transaction.atomic():
        benchmark = lock_benchmark(benchmark)
        complete = extend_measures(benchmark.measures, additions, benchmark.dataset_version)
        added = [name for name in complete if name not in benchmark.measures]
        if not added:
            raise MeasuresError("The benchmark already has these measures.", field="measures")
        result = measure_or_queue(benchmark, list_scored_versions(benchmark), complete, by=by, at_once=at_once)
    return AddedMeasures(added, complete, result if isinstance(result, Operation) else None)


def _parse(text: str) -> Measure:
    try:
        return Measure.read(text)
    except MeasureError as error:
        raise MeasureNameError(f"measures: {error.message}", field="measures") from None


def _require_measurable(names: Sequence[str], version: DatasetVersion) -> None:
    """Raise MeasuresError for measures that cannot be computed from the grades of `version`, before hours of search.

    Errors depend only on the grades, so it tries one query with a document of each grade.
    """
    external = [measure for measure in map(Measure.parse, names) if not measure.is_ours]
    if not external:
        return
    grades = sorted(version.judgments.order_by().values_list("grade", flat=True).distinct(), reverse=True)
    graded = Truths.from_grades([dict(enumerate(map(float, grades)))]).grade([range(len(grades))])
    for measure in external:
        try:
            evaluate([measure], graded)
        except MeasureError as error:
            raise MeasuresError(f"measures: {error.message}", field="measures") from None
