"""Verdicts on benchmarks as lists show them: stored when a benchmark ends, and renewed once their basis has changed."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db import IntegrityError
from django.db.models import F, Func, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import MD5

from apps.operations.models import Status
from apps.records.comparability import find_newest_version
from apps.records.measuring.alternatives import choose_alternatives
from apps.records.models import Benchmark, BenchmarkVerdict, Evaluation, RoundVerdict, Run
from apps.verdicts.comparing import ComparingError, RunComparison, compare_runs
from apps.verdicts.describing import pick_strongest
from apps.verdicts.sentences import build_verdict
from benchbench.errors import BenchbenchError
from benchbench.ir.statistics.wording import summarise_verdict

WORDING = 1  # greater once the words of a verdict or the statistics change, so that stored ones are renewed
AT_ONCE = 50  # verdicts that a sweep lets workers store
TOO_FEW = "Too few queries to conclude anything from them."


def annotate_stamps(benchmarks: QuerySet[Benchmark]) -> QuerySet[Any]:
    """Annotate `basis`: the hash of all that a verdict rests on. A stored verdict with another stamp is out of date.

    These are the runs, their values on every version, the mapping, and the judging rounds of the dataset.
    """
    runs = Run.objects.filter(benchmark=OuterRef("pk")).order_by().values("benchmark")
    evaluations = Evaluation.objects.filter(run__benchmark=OuterRef("pk")).order_by().values("run__benchmark")
    rounds = RoundVerdict.objects.filter(dataset_version__dataset=OuterRef("dataset_version__dataset"))
    grouped = rounds.order_by().values("dataset_version__dataset")
    basis = [
        _join(runs, "pk", "status", "failed_queries", "updated_at", "label"),
        _join(evaluations, "pk", "created_at"),
        _join(grouped, "pk"),
        *("mapping__updated_at", "name", "status"),
    ]
    return benchmarks.annotate(basis=MD5(_write(str(WORDING), *basis)))


def _join(rows: QuerySet[Any], *names: str) -> Subquery:
    """Return the fields of grouped rows as one text, in the order of their keys."""
    return Subquery(rows.annotate(text=StringAgg(_write("", *names), "\n", order_by="pk")).values("text"))


def _write(first: str, *fields: object) -> Func:
    return Func(Value(" "), Value(first), *fields, function="CONCAT_WS", output_field=TextField())


def get_current(benchmark: Any) -> BenchmarkVerdict | None:
    """Return the stored verdict on an annotated benchmark; None if none is stored or it is out of date."""
    stored: BenchmarkVerdict | None = getattr(benchmark, "verdict", None)
    return stored if stored and stored.stamp == benchmark.basis else None


def load_verdict(benchmark: Benchmark) -> BenchmarkVerdict | None:
    """Return the verdict on a benchmark, and store it unless the stored one holds.

    None before the benchmark is completed, and for a single run. It is on the newest version on which all completed
    runs have values.
    """
    row = annotate_stamps(Benchmark.objects.filter(pk=benchmark.pk).select_related("verdict")).first()
    if row is None or not has_verdict(row):
        return None
    if stored := get_current(row):
        return stored
    words, sentence = _conclude(row)
    verdict = BenchmarkVerdict(benchmark=row, words=words, sentence=sentence, stamp=row.basis)
    with suppress(IntegrityError):  # the benchmark was deleted meanwhile
        BenchmarkVerdict.objects.bulk_create(
            [verdict],
            update_conflicts=True,
            unique_fields=["benchmark"],
            update_fields=["words", "sentence", "stamp"],
        )
    return verdict


def has_verdict(benchmark: Benchmark) -> bool:
    return benchmark.status == Status.COMPLETED and benchmark.total_runs > 1


def _conclude(benchmark: Benchmark) -> tuple[str, str]:
    """Return the verdict in a few words and in sentences."""
    runs = list(benchmark.runs.filter(status=Run.Status.COMPLETED))
    try:
        if len(runs) < 2:
            raise ComparingError("It needs two completed runs.")
        version = find_newest_version(runs)
        compared = pick_strongest(choose_alternatives(runs)[0], version=version)
        if len(compared) < 2:
            raise ComparingError("It needs two runs that answer the same question.")
        comparison = compare_runs(compared, version=version)
    except BenchbenchError as error:
        return "no verdict", f"No verdict: {error.message}"
    later = comparison.version.number if comparison.version != benchmark.dataset_version else None
    sentence = build_verdict(comparison).verdict or TOO_FEW
    words = _summarise(comparison)
    return (f"{words}, on v{later}", f"On version {later}: {sentence}") if later else (words, sentence)


def _summarise(comparison: RunComparison) -> str:
    if not comparison.is_tested:
        return "too few queries"
    words = summarise_verdict(comparison.verdict, comparison.labels)
    settled = comparison.carried is None or comparison.carried.round.state.is_settled
    return words if settled else f"not settled: {words}"


def store_verdict(benchmark_id: str) -> None:
    """Store the verdict on a benchmark that has ended."""
    if benchmark := Benchmark.objects.filter(pk=benchmark_id).first():
        load_verdict(benchmark)


def list_unstored() -> Iterable[tuple[object, Any]]:
    """Return the latest benchmarks that ended without a stored verdict, with the time of their end."""
    ended = Benchmark.objects.filter(status=Status.COMPLETED, completed_at__isnull=False, total_runs__gt=1)
    latest = ended.filter(verdict=None).order_by(F("completed_at").desc())
    return latest.values_list("pk", "completed_at")[:AT_ONCE]
