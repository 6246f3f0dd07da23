"""What a matrix would do, before anything is created."""

from collections.abc import Mapping as MappingType
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings

from apps.benchmarks.costs import costs_of
from apps.benchmarks.creating import choose_indexes, require_current
from apps.mappings.models import Mapping
from benchbench.ir.matrix import Matrix
from benchbench.ir.plan import Plan, plan


@dataclass(frozen=True)
class Preview:
    """The size of a benchmark: its runs by label, and the distinct work over all its queries.

    `estimate_seconds` is for one worker in shared execution, from costs measured here before where there are any;
    `resident_bytes` is what the indexes take in a worker's memory.
    """

    labels: list[str]
    queries: int
    distinct: dict[str, int]
    estimate_seconds: float
    resident_bytes: int
    explanation: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as `run_benchmark --dry-run --json` prints it."""
        facts = asdict(self)
        labels = facts.pop("labels")
        facts.pop("explanation")
        return {"runs": len(labels), **facts}


def preview(mapping: Mapping, matrix: MappingType[str, Any]) -> Preview:
    """Plan a matrix over a mapping without creating anything. Raises what `create_benchmark` raises."""
    queries = require_current(mapping).query_count
    parsed = Matrix.parse(
        matrix, max_runs=settings.BENCHMARK_MAX_RUNS, max_values=settings.BENCHMARK_MAX_VALUES_PER_AXIS
    )
    configurations = parsed.configurations()
    indexes = choose_indexes(mapping, configurations)
    planned: Plan = plan((str(number), configuration) for number, configuration in enumerate(configurations))
    used = {configuration.index: indexes[configuration.index] for configuration in configurations}
    return Preview(
        labels=[configuration.label for configuration in configurations],
        queries=queries,
        distinct=planned.distinct(queries),
        estimate_seconds=round(costs_of(planned, used).per_query * queries, 3),
        resident_bytes=sum(int(index.stats.get("bytes", 0)) for index in set(used.values())),
        explanation=planned.explain(queries),
    )
