"""Evaluation of stored rankings on a dataset version, without searching."""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, cast
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from apps.datasets.models import DatasetVersion
from apps.datasets.versions import load_weights
from apps.mappings.truth import Truth, TruthPolicies, hash_truth, read_truth, read_truths
from apps.records.lists.reading import group_by_source, load_ranked_documents
from apps.records.measuring.batch_values import MeasuredValues, load_values, measure_runs
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.values import pack
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
    basis = _Basis(benchmark, version, load_truth(benchmark, version))
    stored = basis.load_stored(evaluated)
    measured = [run for run in runs if run.pk not in stored]
    by_run = basis.measure(measured)
    evaluations = [basis.build_evaluation(run, by_run[run.pk]) for run in measured]
    _store(evaluations, basis.query_ids)
    return [*stored.values(), *evaluations]


@dataclass(frozen=True)
class _Basis:
    """The truth of a version against which runs of a benchmark are measured, under its policies."""

    benchmark: Benchmark
    version: DatasetVersion
    truth: Truth

    @cached_property
    def query_ids(self) -> list[int]:
        return list(self.truth.grades)

    @cached_property
    def truths(self) -> Truths:
        return Truths.from_grades(list(self.truth.grades.values()))

    @cached_property
    def truth_hash(self) -> str:
        return hash_truth(self.truth)

    @cached_property
    def weights(self) -> Values | None:
        return load_weights(self.benchmark.weighting, self.version, self.query_ids)

    def load_stored(self, run_ids: Collection[UUID]) -> dict[UUID, Evaluation]:
        """Return the evaluations of runs against a truth with this hash, without their values."""
        hashes = {"policies_hash": _hash_policies(self.benchmark), "truth_hash": self.truth_hash}
        same = {"dataset_version": self.version, "measures": self.benchmark.measures, **hashes}
        rows = Evaluation.objects.filter(run__in=run_ids, **same)
        stored = {evaluation.run_id: evaluation for evaluation in rows.defer("values", "query_ids").order_by()}
        for evaluation in stored.values():
            evaluation.query_ids = self.query_ids
        return stored

    def measure(self, runs: Sequence[Run]) -> dict[UUID, MeasuredValues]:
        """Return the values of runs, from their batches or from the stored lists."""
        measures = [Measure.parse(name) for name in self.benchmark.measures]
        by_run = load_values([run.pk for run in runs], self.benchmark.measures, self.truth)
        for source_id, sharing in group_by_source([run for run in runs if run.pk not in by_run]).items():
            by_run |= measure_runs(measures, self.query_ids, self.truths, load_ranked_documents(source_id), sharing)
        return by_run

    def build_evaluation(self, run: Run, measured: MeasuredValues) -> Evaluation:
        benchmark, (values, missing) = self.benchmark, measured
        failed_queries = _count_failed(run, self.query_ids, missing)
        empty, answerable = cast(EmptyQueries, benchmark.empty_queries), self.truths.n_relevant > 0
        means = mean(values, has_relevant=answerable, failed=missing, empty=empty, weights=self.weights)
        pairs = zip(benchmark.measures, means.values.tolist(), strict=True)
        return Evaluation(
            run=run,
            dataset_version=self.version,
            policies=get_policies(benchmark),
            policies_hash=_hash_policies(benchmark),
            means={name: None if math.isnan(value) else value for name, value in pairs},
            measures=benchmark.measures,
            query_ids=self.query_ids,
            values=pack(values),
            query_count=means.counted,
            failed_queries=failed_queries,
            unsearched_queries=means.failed - failed_queries,
            truth_hash=self.truth_hash,
            unresolved_count=self.truth.unresolved_count,
            unresolved_share=self.truth.unresolved_share,
        )


LATER_POLICIES: dict[str, object] = {"weighting": "equal", "exclude_self": False, "identical_texts": "different"}


def get_policies(benchmark: Benchmark) -> dict[str, object]:
    """Return the policies under which the benchmark's runs are measured, as stored in evaluations.

    Defaults of LATER_POLICIES are left out, so that evaluations keep the hash that they had before there were these.
    """
    policies = {"unresolved": benchmark.unresolved, "empty_queries": benchmark.empty_queries}
    later = {name: getattr(benchmark, name) for name in LATER_POLICIES}
    return policies | {name: value for name, value in later.items() if value != LATER_POLICIES[name]}


def _hash_policies(benchmark: Benchmark) -> str:
    return hashlib.sha256(json.dumps(get_policies(benchmark), sort_keys=True).encode()).hexdigest()


def load_truth(benchmark: Benchmark, version: DatasetVersion, *, query_ids: Collection[int] | None = None) -> Truth:
    """Load the truth that the benchmark's runs are measured against, under its policy for unresolved judgments.

    Judgments find the documents that were searched, also if an import has changed or removed them since.
    """
    return read_truth(
        benchmark.mapping, version, state=benchmark.state, policies=get_truth_policies(benchmark), query_ids=query_ids
    )


def load_truths(benchmarks: Sequence[Benchmark], version: DatasetVersion, keys: dict[int, str]) -> list[Truth]:
    """Load the truths of benchmarks with the same policy. `keys` has the version's query keys by id."""
    resolved = [(benchmark.mapping, benchmark.state) for benchmark in benchmarks]
    return read_truths(resolved, version, keys, policies=get_truth_policies(benchmarks[0]))


def get_truth_policies(benchmark: Benchmark) -> TruthPolicies:
    """Return the benchmark's policies for unresolved judgments and identical texts."""
    # The database allows no other values.
    return TruthPolicies(cast(Any, benchmark.unresolved), cast(Any, benchmark.identical_texts))


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
