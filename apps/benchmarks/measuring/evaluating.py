"""Evaluation of stored rankings on a dataset version, without searching."""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any, Literal, cast
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from apps.benchmarks.measuring.batch_values import MeasuredValues, load_values, measure_runs
from apps.benchmarks.measuring.reading import group_by_source, load_ranked_documents
from apps.benchmarks.measuring.weighting import load_weights
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.benchmarks.models.values import pack
from apps.datasets.models import DatasetVersion
from apps.mappings.truth import Truth, hash_truth, read_truth, read_truths
from benchbench.database.binary import execute_each
from benchbench.ir.measures import EmptyQueries, Measure, Truths, Values, mean

quoted = connection.ops.quote_name
IDENTITY = ("run_id", "dataset_version_id", "policies_hash")
RESULT_COLUMNS = (
    *("policies", "means", "measures", "query_ids", "values", "query_count", "failed_queries"),
    *("unsearched_queries", "truth_hash", "unresolved_count", "unresolved_share"),
)
COLUMNS = (*IDENTITY, *RESULT_COLUMNS)
# Values are sent as binary: Django would write them as hexadecimal text, which takes twice as long.
STORE = (
    f"INSERT INTO {Evaluation._meta.db_table} ({', '.join(map(quoted, COLUMNS))}, created_at)"  # nosec # only constants
    f" VALUES ({', '.join('%b' if name == 'values' else '%s' for name in COLUMNS)}, now())"
    f" ON CONFLICT ({', '.join(IDENTITY)}) DO UPDATE SET created_at = now(), "
    + ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in RESULT_COLUMNS)
)


def evaluate_runs(
    benchmark: Benchmark,
    runs: Iterable[Run],
    *,
    version: DatasetVersion,
    evaluated: Collection[UUID] = (),
) -> list[Evaluation]:
    """Measure runs of a benchmark against `version` under its policies, and store the evaluations.

    Batch values against the same truth are reused. All others are measured from the stored lists, one source at a time,
    since all lists may not fit into memory.

    Runs that were just `evaluated`, by a batch of the same operation, keep their evaluations if the truth is the same.
    Other evaluations of the same run, version and policies are replaced. A query that failed or was never searched has
    no values; it is left out of the means and counted. Of several repetitions, the first that did not fail is measured,
    since their rankings are the same. New evaluations have no id here, and their values are bytes. Raises TruthError if
    the mapping is not resolved for `version`.
    """
    ground_truth = load_truth(benchmark, version)
    truths = Truths.from_grades(list(ground_truth.grades.values()))
    truth_row: dict[str, Any] = {
        "truth_hash": hash_truth(ground_truth),
        "unresolved_count": ground_truth.unresolved_count,
        "unresolved_share": ground_truth.unresolved_share,
    }
    query_ids = list(ground_truth.grades)
    measures = [Measure.parse(name) for name in benchmark.measures]
    stored = _load_stored(benchmark, version, evaluated, query_ids, truth_row["truth_hash"])
    runs = [run for run in runs if run.pk not in stored]
    by_run = load_values([run.pk for run in runs], benchmark.measures, ground_truth)
    for source_id, sharing in group_by_source(run for run in runs if run.pk not in by_run).items():
        by_run |= measure_runs(measures, query_ids, truths, load_ranked_documents(source_id), sharing)
    weights = load_weights(benchmark.weighting, version, query_ids)
    evaluations = []
    for run in runs:
        counts = truth_row | {"failed_queries": _count_failed(run, query_ids, by_run[run.pk].missing)}
        evaluations.append(
            _build_evaluation(benchmark, run, version, query_ids, truths, weights, by_run[run.pk], counts)
        )
    _store(evaluations, query_ids)
    return [*stored.values(), *evaluations]


def _load_stored(
    benchmark: Benchmark, version: DatasetVersion, run_ids: Collection[UUID], query_ids: list[int], truth_hash: str
) -> dict[UUID, Evaluation]:
    """Return the evaluations of runs against a truth with this hash, without their values."""
    hashes = {"policies_hash": _hash_policies(benchmark), "truth_hash": truth_hash}
    rows = Evaluation.objects.filter(run__in=run_ids, dataset_version=version, measures=benchmark.measures, **hashes)
    stored = {evaluation.run_id: evaluation for evaluation in rows.defer("values", "query_ids").order_by()}
    for evaluation in stored.values():
        evaluation.query_ids = query_ids
    return stored


def get_policies(benchmark: Benchmark) -> dict[str, str]:
    """Return the policies under which the benchmark's runs are measured, as stored in evaluations.

    Equal weights are left out, so that evaluations keep the hash that they had before there were weights.
    """
    policies = {"unresolved": benchmark.unresolved, "empty_queries": benchmark.empty_queries}
    return policies | ({"weighting": benchmark.weighting} if benchmark.weighting != "equal" else {})


def _hash_policies(benchmark: Benchmark) -> str:
    return hashlib.sha256(json.dumps(get_policies(benchmark), sort_keys=True).encode()).hexdigest()


def load_truth(benchmark: Benchmark, version: DatasetVersion, *, query_ids: Collection[int] | None = None) -> Truth:
    """Load the truth that the benchmark's runs are measured against, under its policy for unresolved judgments.

    Judgments find the documents that were searched, also if an import has changed or removed them since.
    """
    return read_truth(
        benchmark.mapping, version, state=benchmark.state, unresolved=get_policy(benchmark), query_ids=query_ids
    )


def load_truths(benchmarks: Sequence[Benchmark], version: DatasetVersion, keys: dict[int, str]) -> list[Truth]:
    """Load the truths of benchmarks with the same policy. `keys` has the version's query keys by id."""
    resolved = [(benchmark.mapping, benchmark.state) for benchmark in benchmarks]
    return read_truths(resolved, version, keys, unresolved=get_policy(benchmarks[0]))


def get_policy(benchmark: Benchmark) -> Literal["count", "drop"]:
    """Return the benchmark's policy for unresolved judgments."""
    return cast(Literal["count", "drop"], benchmark.unresolved)  # the database allows no other value


def _build_evaluation(
    benchmark: Benchmark,
    run: Run,
    version: DatasetVersion,
    query_ids: list[int],
    truths: Truths,
    weights: Values | None,
    measured_values: MeasuredValues,
    counts: dict[str, Any],
) -> Evaluation:
    values, missing = measured_values
    empty = cast(EmptyQueries, benchmark.empty_queries)
    means = mean(values, has_relevant=truths.n_relevant > 0, failed=missing, empty=empty, weights=weights)
    return Evaluation(
        run=run,
        dataset_version=version,
        policies=get_policies(benchmark),
        policies_hash=_hash_policies(benchmark),
        means={
            name: None if math.isnan(value) else value
            for name, value in zip(benchmark.measures, means.values.tolist(), strict=True)
        },
        measures=benchmark.measures,
        query_ids=query_ids,
        values=pack(values),
        query_count=means.counted,
        unsearched_queries=means.failed - counts["failed_queries"],
        **counts,
    )


def _count_failed(run: Run, query_ids: list[int], missing: NDArray[np.bool_]) -> int:
    """Return the number of queries that the run searched, of those without a ranking."""
    missing_ids = [query_id for query_id, is_missing in zip(query_ids, missing.tolist(), strict=True) if is_missing]
    return run.query_results.filter(query__in=missing_ids).values("query").distinct().count() if missing_ids else 0


def _store(evaluations: Iterable[Evaluation], query_ids: list[int]) -> None:
    """Store evaluations, which have the same queries, and replace those of the same run, version and policies."""
    ids = f"{{{','.join(map(str, query_ids))}}}"
    ordered = sorted(evaluations, key=attrgetter("run_id"))
    rows = [{name: getattr(evaluation, name) for name in COLUMNS} | {"query_ids": ids} for evaluation in ordered]
    encoded = [row | {name: Jsonb(row[name]) for name in ("policies", "means")} for row in rows]
    execute_each(STORE, [list(row.values()) for row in encoded])
