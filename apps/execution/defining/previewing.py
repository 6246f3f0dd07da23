"""Previews of a matrix: its runs, stages and costs, before anything is created."""

from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from django.conf import settings
from django.contrib.auth.models import User
from django.template.defaultfilters import filesizeformat

from apps.execution.defining.choosing import check_engines, choose_indexes
from apps.execution.defining.creating import require_current, require_documents, require_isolated
from apps.mappings.checking import require_found
from apps.mappings.filters import filter_warnings, require_modules
from apps.mappings.identity import duplicate_warnings, suggest_exclusion
from apps.mappings.models import Mapping
from apps.records.measuring.measures import list_measures
from apps.records.models import Benchmark
from apps.records.planning import estimate_costs, estimate_work, is_prepared, list_llm_indexes
from apps.retrieval.models import Index
from apps.retrieval.search.arms import find_missing_arm
from apps.retrieval.search.words import find_words
from apps.retrieval.unread import list_run_warnings
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.axes import run_label
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.matrix import Matrix
from benchbench.ir.planning.plan import Plan, plan
from benchbench.ir.planning.stages import DenseStage, LexicalStage


@dataclass(frozen=True)
class Preview:
    """The size of a benchmark: its runs by label, and the work over all its queries.

    `distinct` counts equal work once, but in isolated execution each time. `estimate_seconds` is for one worker, from
    costs measured here if there are any. It excludes `builds`, the missing approximate and full-text indexes, which are
    made before any query. `indexes` are those searched, and `resident_bytes` is their size in a worker's memory.
    `warnings` are sentences about runs that do not fit the measures, and queries that can find nothing.
    """

    labels: Annotated[list[str], "Labels of the runs, in their order."]
    queries: int
    distinct: Annotated[dict[str, int], "Work over all queries: equal work once, in isolated execution each time."]
    estimate_seconds: Annotated[float, "Time of one worker, without `builds`."]
    builds: Annotated[list[str], "Indexes to build before the first query."]
    indexes: Annotated[list[str], "Indexes that are searched."]
    resident_bytes: Annotated[int, "Memory that a worker needs."]
    warnings: list[str]
    explanation: str

    @property
    def total_runs(self) -> int:
        return len(self.labels)


def preview(
    mapping: Mapping,
    matrix: MappingType[str, object],
    *,
    owner: User | None = None,
    measures: Sequence[str] = (),
    allow_missing: bool = False,
    execution: str = Benchmark.Execution.SHARED,
    runs_per_query: int = 1,
    exclude_self: bool = False,
    identical_texts: str = "different",
) -> Preview:
    """Plan a matrix over a mapping without creating anything. Raises the same errors as `create_benchmark`."""
    version = require_current(mapping)
    if not allow_missing:
        require_modules(mapping)
        require_found(mapping)
    parsed = Matrix.parse(
        matrix, max_runs=settings.BENCHMARK_MAX_RUNS, max_values=settings.BENCHMARK_MAX_VALUES_PER_AXIS
    )
    configurations = parsed.list_configurations()
    require_documents(mapping, configurations)
    require_isolated(parsed, execution)
    check_engines(configurations, version)
    indexes = choose_indexes(mapping, configurations, owner)
    list_measures(parsed.k_values_for_metrics, measures, version)  # only for its errors
    queries = version.query_count
    used = {run.index: indexes[run.index] for run in configurations if run.needs_index}
    numbered = [(str(number), configuration) for number, configuration in enumerate(configurations)]
    planned: Plan = plan(numbered, asking=list_llm_indexes(used))
    costs = estimate_costs(planned, used)
    work, seconds = estimate_work(planned, dict(numbered), costs, queries, execution, runs_per_query)
    alone = work if execution == Benchmark.Execution.ISOLATED else None
    return Preview(
        labels=[run_label(configuration) for configuration in configurations],
        queries=queries,
        distinct=work,
        estimate_seconds=round(seconds, 3),
        builds=_list_builds(planned, used),
        indexes=sorted({str(index) for index in used.values()}),
        resident_bytes=_count_bytes(planned, used),
        warnings=_list_warnings(configurations, max(parsed.k_values_for_metrics))
        + _list_shortfalls(configurations)
        + _list_data_warnings(mapping, exclude_self, identical_texts)
        + _list_reading_warnings(configurations, used),
        explanation=planned.explain(queries, alone=alone),
    )


def _count_bytes(planned: Plan, indexes: MappingType[str | None, Index]) -> int:
    """Return the bytes of the indexes and of the copies of their vectors with fewer dimensions."""
    dense = [stage for stage in planned.stages if isinstance(stage, DenseStage)]
    shortened = {(indexes[stage.index], stage.dimensions) for stage in dense if stage.dimensions is not None}
    index_bytes = sum(int(index.stats.get("bytes", 0)) for index in set(indexes.values()))
    return index_bytes + sum(4 * dimensions * int(index.stats.get("num_vectors", 0)) for index, dimensions in shortened)


def _list_warnings(configurations: Sequence[Configuration], max_k: int) -> list[str]:
    depths = [configuration.effective_rerank_depth for configuration in configurations if configuration.use_reranker]
    shallow = sorted({depth for depth in depths if depth < max_k})
    if not shallow:
        return []
    count = sum(depth in shallow for depth in depths)
    runs = f"{count:,} reranked run{'s return' if count > 1 else ' returns'}"
    return [
        f"{runs} only the {' or '.join(map(str, shallow))} chunks per query that the reranker reads. Measures at a "
        f"larger k see no further results: use a rerank depth of {max_k}."
    ]


def _list_data_warnings(mapping: Mapping, exclude_self: bool, identical_texts: str) -> list[str]:
    version = require_current(mapping)
    duplicates = duplicate_warnings(mapping, version) if identical_texts == "different" else []
    return (
        filter_warnings(mapping, version) + duplicates + ([] if exclude_self else suggest_exclusion(mapping, version))
    )


def _list_shortfalls(configurations: Sequence[Configuration]) -> list[str]:
    """Return a sentence for each approximate setting that is too narrow for the depth of a run."""
    searches = [(run.ann, run.effective_candidates) for run in configurations if run.uses_vectors]
    return [*filter(None, (Ann.parse(ann).describe_shortfall(depth) for ann, depth in dict.fromkeys(searches)))]


def _list_reading_warnings(
    configurations: Sequence[Configuration], indexes: MappingType[str | None, Index]
) -> list[str]:
    searches: dict[Index, list[Configuration]] = {}
    for run in configurations:
        if run.index in indexes:
            searches.setdefault(indexes[run.index], []).append(run)
    return [warning for index, runs in searches.items() for warning in list_run_warnings(index, runs)]


def _list_builds(planned: Plan, indexes: MappingType[str | None, Index]) -> list[str]:
    """Return the names of the indexes that the first batch must make; settings that share an index count once."""
    missing: dict[str, str] = {}
    for stage in planned.stages:
        if not (isinstance(stage, DenseStage | LexicalStage) and is_prepared(stage)):
            continue
        index = indexes[stage.index]
        assert index.chunk_set is not None
        if isinstance(stage, DenseStage):
            if arm := find_missing_arm(index, Ann.parse(stage.ann)):
                missing.setdefault(*arm)
        elif find_words(index.chunk_set, setting := Lexical.parse(stage.lexical)) is None:
            missing[f"{index.chunk_set_id} {setting.words}"] = (
                f"{setting.words} of {index.chunk_set.chunk_count:,} chunks of {index}"
            )
    return list(missing.values())


def preview_text(planned: Preview, execution: str) -> str:
    """Return a preview as lines of text: the distinct work, the indexes, the time and the memory.

    Isolated execution takes at least the time, because costs are mostly shares of batches.
    """
    bound = "At least" if execution == Benchmark.Execution.ISOLATED else "About"
    seconds = f"{bound} {planned.estimate_seconds:,.1f} s with one worker"
    memory = f"{filesizeformat(planned.resident_bytes)} of its memory for the index {', '.join(planned.indexes)}"
    lines = [planned.explanation, f"{seconds}, and {memory}." if planned.indexes else f"{seconds}."]
    if planned.builds:
        lines.append("Missing parts are built first, which takes additional time:")
        lines += [f"{'':4}{build}" for build in planned.builds]
    return "\n".join([*lines, *planned.warnings])
