"""Builds of approximate indexes and of words: which one each batch searched, and what becomes of lists by another one.

Most methods are random: an index that was built again, by a restore, a REINDEX or another machine, may find other
chunks. Words that a run builds are built again by another version of the analyzer. So the lists of a run come from one
build, or the run says that they do not.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

from apps.records.models import Benchmark, Run, StageList
from apps.records.models.batches import load_searched_builds
from apps.records.planning import is_prepared, plan_of
from apps.retrieval.search.arms import find_build
from apps.retrieval.search.open_indexes import OpenIndex
from apps.retrieval.search.words import find_words
from benchbench.database.ordered import delete_in_order
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import DenseStage, LexicalStage

Builds = Mapping[str, Mapping[int, str]]  # by stage key and query


def find_builds(plan: Plan, indexes: Mapping[str | None, OpenIndex]) -> dict[str, str]:
    """Return the build that each stage of a plan searches here, by stage key; without those that cannot be searched."""
    builds = {}
    for stage in plan.stages:
        if isinstance(stage, DenseStage) and stage.ann != "exact":
            with suppress(BenchbenchError):
                builds[stage.key] = find_build(indexes[stage.index].index, Ann.parse(stage.ann))
        elif isinstance(stage, LexicalStage) and is_prepared(stage):
            chunk_set = indexes[stage.index].index.chunk_set
            words = find_words(chunk_set, Lexical.parse(stage.lexical)) if chunk_set else None
            builds[stage.key] = words.fingerprint if words else ""
    return {key: build for key, build in builds.items() if build}


def load_builds(benchmark: Benchmark) -> Builds:
    """Return the build by which each query was last searched, by stage key."""
    builds: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for searched, query_ids in load_searched_builds(benchmark):
        for key, build in searched.items():
            builds[key].update(dict.fromkeys(query_ids, build))
    return builds


def discard_other_builds(benchmark: Benchmark, runs: Sequence[Run], prepared: Mapping[str, str]) -> dict[Run, str]:
    """Delete the lists of unfinished runs by other builds than the prepared ones, so that they are searched again.

    Completed runs keep theirs: return the runs that share lists with one, each with a sentence.
    """
    earlier = load_builds(benchmark)
    changed = {key for key, build in prepared.items() if build and {*earlier.get(key, {}).values()} - {build}}
    if not changed:
        return {}
    completed = benchmark.runs.filter(status=Run.Status.COMPLETED, is_external=False).select_related("index")
    shared = {stage.key for stage in plan_of(list(completed)).stages} & changed
    by_key = {str(run.pk): run for run in runs}
    refused, sources = {}, set()
    for planned in plan_of(runs).runs:
        run, keys = by_key[planned.run_key], {stage.key for stage in planned.stages} & changed
        if keys & shared:
            configuration = run.configuration
            searched = configuration.lexical if configuration.ann == "exact" else configuration.ann
            refused[run] = (
                f"The index of {searched} was built again since runs that share its lists completed, and may find "
                "other chunks: clone the benchmark, and start the clone."
            )
        elif keys:
            sources.add(run.source_id)
    delete_in_order(StageList.objects.filter(source__in=sources))
    return refused


def count_builds(builds: Builds, stage: str) -> dict[str, int]:
    """Return how many queries a stage searched by each build."""
    return dict(Counter(builds.get(stage, {}).values()).most_common())
