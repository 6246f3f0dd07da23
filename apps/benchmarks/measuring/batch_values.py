"""The values of a batch's rankings: measured once, while they are in memory, told as sums so far, and kept by query."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import rows_of
from apps.benchmarks.measuring.run_result import RunResult
from apps.benchmarks.models import BatchValues, Benchmark, Run
from apps.mappings.fingerprints import truth_hash
from apps.mappings.truth import Truth
from apps.operations.models import Batch
from benchbench.ir.measures import Measure, Truths, Values, evaluate

BRACES = str.maketrans("[]", "{}")


class Valued(NamedTuple):
    """The values of a run, (m, q), NaN where a query has none; and which queries are `missing`, failed or not asked."""

    values: Values
    missing: NDArray[np.bool_]


@dataclass(slots=True)
class _Part:
    """What is known of one run: queries in the order they were measured in, their values and whether each counts."""

    answered: dict[int, None] = field(default_factory=dict)
    failed: dict[int, None] = field(default_factory=dict)
    short: list[int] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)
    counted: list[NDArray[np.bool_]] = field(default_factory=list)


class Measuring:
    """Measures the rankings of one batch's queries, in any run: of several repetitions the first that did not fail."""

    def __init__(self, benchmark: Benchmark, truth: Truth) -> None:
        """`truth` is that of the batch's queries."""
        self.measures = list(benchmark.measures)
        self.truth_hash = truth_hash(truth)
        self._parsed = [Measure.parse(name) for name in benchmark.measures]
        self._skips_empty = benchmark.empty_queries == "skip"
        self._parts: dict[UUID, _Part] = {}
        # Most runs have all queries.
        self._truths = lru_cache(lambda query_ids: Truths.of([truth.grades[one] for one in query_ids]))

    def add(self, results: Iterable[RunResult]) -> None:
        """Measure what is new among `results`; repetitions of a query come in their order."""
        fresh: dict[UUID, dict[int, RunResult]] = {}
        for result in results:
            part = self._parts.setdefault(result.run_id, _Part())
            new = fresh.setdefault(result.run_id, {})
            if result.query_id in part.answered or result.query_id in new:
                continue
            if result.error:
                part.failed[result.query_id] = None
                continue
            part.failed.pop(result.query_id, None)
            new[result.query_id] = result
        for run_id, new in fresh.items():
            part = self._parts[run_id]
            if new or not part.values:
                self._measure(part, new)

    def _measure(self, part: _Part, new: Mapping[int, RunResult]) -> None:
        graded = self._truths(tuple(new)).grade_arrays([result.document_ids for result in new.values()])
        part.answered |= dict.fromkeys(new)
        part.short += [query_id for query_id, result in new.items() if result.short]
        part.values.append(evaluate(self._parsed, graded))
        part.counted.append(graded.has_relevant if self._skips_empty else np.ones(len(new), bool))

    def told(self) -> dict[str, dict[str, Any]]:
        """Return by run id what the values add to the provisional means: queries completed, failed and counted, those
        cut short; per measure the sum of the values and how many there are, since a query that counts may have none
        (`FirstRelevant`)."""
        return {str(run_id): _sums(part) for run_id, part in self._parts.items()}

    def rows(self, batch: Batch, hashes: Mapping[UUID, str]) -> list[BatchValues]:
        """Return the rows that keep the values."""
        return [
            BatchValues(
                run_id=run_id,
                batch=batch,
                measures=self.measures,
                query_ids=array_literal(list(part.answered)),
                failed_query_ids=array_literal(list(part.failed)),
                values=np.hstack(part.values).astype("<f8").tobytes(),
                truth_hash=self.truth_hash,
                rankings_hash=hashes.get(run_id, ""),
            )
            for run_id, part in self._parts.items()
        ]


def _sums(part: _Part) -> dict[str, Any]:
    counted = np.concatenate(part.counted)
    values = np.hstack(part.values)[:, counted]
    return {
        "completed": len(part.answered) + len(part.failed),
        "failed": len(part.failed),
        "counted": int(counted.sum()),
        "short": part.short,
        "sums": np.nansum(values, axis=1).tolist(),
        "valued": np.count_nonzero(~np.isnan(values), axis=1).tolist(),
    }


def array_literal(values: Sequence[Any]) -> str:
    """Return PostgreSQL's text of an array of numbers, or of arrays. Django would prepare each of thousands by itself.

    It is that of JSON, floats written to the last bit among it, but for the brackets.
    """
    return json.dumps(values).translate(BRACES)


def keep_values(batch: Batch, measuring: Measuring, hashes: Mapping[UUID, str]) -> None:
    """Store the values of a batch, with its rankings; `hashes` are those of the runs that it ranked every query for."""
    BatchValues.objects.bulk_create(measuring.rows(batch, hashes))


def forget_values(runs: Iterable[Run]) -> None:
    """Delete what batches kept of runs that have ended."""
    BatchValues.objects.filter(run__in=list(runs)).delete()


def kept_hashes(runs: Iterable[Run]) -> dict[UUID, str]:
    """Return the hash of the rankings of each run whose newest batch made them all."""
    rows = BatchValues.objects.filter(run__in=list(runs)).order_by("pk").values_list("run_id", "rankings_hash")
    return {run_id: known for run_id, known in dict(rows).items() if known}


def kept_values(run_ids: Collection[UUID], measures: Sequence[str], truth: Truth) -> dict[UUID, Valued]:
    """Return the values of each run of which batches kept every query's, by `measures` and against these grades.

    Queries are in the order of `truth`. What a later batch kept of a query replaces what was kept before. A run is left
    out where one of its queries has no values here, or was measured by other measures or against other grades.
    """
    places = {query_id: place for place, query_id in enumerate(truth.grades)}
    hash_of = cache(lambda queries: truth_hash(truth, queries))
    found: dict[UUID, tuple[Valued, NDArray[np.bool_]]] = {}
    rows = (
        BatchValues.objects.filter(run__in=run_ids)
        .order_by("pk")
        .values_list("run_id", "measures", "query_ids", "failed_query_ids", "truth_hash", "values")
    )
    for run_id, names, answered, failed, hashed, values in rows_of(rows):
        if run_id not in found:
            empty = np.full((len(measures), len(places)), np.nan)
            found[run_id] = Valued(empty, np.ones(len(places), bool)), np.zeros(len(places), bool)
        valued, known = found[run_id]
        both = [*answered, *failed]
        here = [places[one] for one in both if one in places]
        is_same = len(here) == len(both) and names == list(measures) and hash_of(frozenset(both)) == hashed
        known[here] = is_same
        if is_same:
            there = here[: len(answered)]
            valued.values[:, here] = np.nan
            valued.values[:, there] = np.frombuffer(values, "<f8").reshape(len(measures), len(answered))
            valued.missing[here] = True
            valued.missing[there] = False
    return {run_id: valued for run_id, (valued, known) in found.items() if known.all()}
