"""The work of one batch: its queries, the plan of its runs, and what searching takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running.open_indexes import OpenIndexes
from apps.benchmarks.running.pinning import PinnedRerankers
from apps.benchmarks.running.stages import Stages
from apps.benchmarks.sources import SharedList
from apps.datasets.models import Query
from apps.operations.handlers import Faults
from apps.operations.leasing import Lease
from benchbench.ir.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Work:
    """One batch of a benchmark. `plan` is that of its runs, their lists as deep as any run of the benchmark reads them.

    `lists` are those that the runs return the first documents of; each names every run that shares it, finished or not.
    `tolerant`: an error that might pass is recorded with the queries it hit, not raised. `faults` collects tracebacks.
    `hung`: where a model did not answer in an earlier attempt, as `Batch.hung` has it.
    """

    benchmark: Benchmark
    runs: Sequence[Run]
    plan: Plan
    lists: Sequence[SharedList]
    queries: Sequence[Query]
    indexes: OpenIndexes
    rerankers: PinnedRerankers
    lease: Lease
    tolerant: bool
    faults: Faults
    hung: Mapping[str, Mapping[str, str]]

    @property
    def query_ids(self) -> list[int]:
        return [query.pk for query in self.queries]

    @property
    def max_k(self) -> int:
        return int(max(self.benchmark.k_values))

    def stages(self, queries: Sequence[Query], **options: Any) -> Stages:
        """Return what does the stages for some of the queries; `options` as `Stages` takes them."""
        own: dict[str, Any] = {
            "tolerant": self.tolerant,
            "faults": self.faults,
            "hung": self.hung,
            "on_part": self.lease.check,
        }
        return Stages(queries, self.indexes, self.rerankers, **own | options)
