"""Plans: the distinct stages that the runs of a matrix need. Stages that runs share are done once.

A run's result is a function of its own configuration alone. Exact lists are made once per index, at the depth of the
deepest run, and each run reads only the first `candidates` entries. Approximate lists depend on the requested depth, so
they are made per depth. The losses of an approximate search are measured against exact search: such a run has a
counterpart in `Plan.truths`, the same configuration with exact search, whose stages are done too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeVar, cast, get_args

from benchbench.decimals import counted
from benchbench.ir.planning.axes import normalize
from benchbench.ir.planning.configuration import DEFAULTS, LATE_INTERACTION, Configuration
from benchbench.ir.planning.query_text import HYDE, QueryText
from benchbench.ir.planning.stages import (
    AskStage,
    DenseStage,
    EncodeStage,
    EngineStage,
    FuseStage,
    LexicalStage,
    LocateStage,
    MergeStage,
    RerankStage,
    RewriteStage,
    Stage,
    Wording,
    name_stage,
)
from benchbench.ir.ranking import UnitKind

S = TypeVar("S", DenseStage, LexicalStage, FuseStage)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run: its own stages in order, and its processing of the last stage's list.

    The processing takes the first `candidates` entries, applies the threshold to their unit scores, keeps the first
    `top_k` chunks, and collapses them to documents.
    """

    run_key: str
    index: str | None
    stages: tuple[Stage, ...]
    candidates: int
    top_k: int
    threshold: float | None
    unit_kind: UnitKind

    @property
    def final(self) -> str:
        """Return the key of the stage whose list is the run's."""
        return self.stages[-1].key

    @property
    def list_key(self) -> str:
        """Return the key of the list whose first documents the run returns.

        The run has its own list if its threshold compares other scores than the ranking, and so drops inner entries.
        """
        if self.threshold is None or self.unit_kind != "late_interaction":
            return self.final
        return name_stage("above", self.final, self.candidates, self.threshold)

    @property
    def dense(self) -> DenseStage | None:
        """Return the run's dense search, if any."""
        return next((stage for stage in self.stages if isinstance(stage, DenseStage)), None)

    @property
    def exact_keys(self) -> list[str]:
        """Return the key of the exact list that belongs to each approximate one of the run: that of `Plan.truths`."""
        dense = [stage for stage in self.stages if isinstance(stage, DenseStage) and stage.ann != "exact"]
        return [replace(stage, ann="exact").key for stage in dense]


@dataclass(frozen=True, slots=True)
class Plan:
    """The distinct stages, each after those that it needs, and the runs that read them.

    `truths` are the exact counterparts of the approximate runs, under the same keys. Their stages are among `stages`,
    but belong to no run: no run's time or calls count them.
    """

    stages: tuple[Stage, ...]
    runs: tuple[RunPlan, ...]
    truths: tuple[RunPlan, ...] = ()

    def select(self, run_keys: Collection[str], *, truth: bool = True) -> Plan:
        """Return the plan of some runs, with or without exact counterparts; stages keep their depth."""
        runs = tuple(run for run in self.runs if run.run_key in run_keys)
        truths = tuple(run for run in self.truths if truth and run.run_key in run_keys)
        needed = {stage.key for run in (*runs, *truths) for stage in run.stages}
        return Plan(tuple(stage for stage in self.stages if stage.key in needed), runs, truths)

    def count_work(self, queries: int) -> dict[str, int]:
        """Return how often each kind of work is done for `queries` queries.

        The number of pairs of query and chunk is an upper bound. Each pair is scored once per reranker, and the overlap
        of the reranker's lists is unknown until they exist.
        """
        counts = Counter(type(stage) for stage in self.stages)
        kinds = {"encode": EncodeStage, "dense": DenseStage, "lexical": LexicalStage, "fuse": FuseStage}
        pairs = _bound_pairs(self.stages) * queries
        work = {name: counts[kind] * queries for name, kind in kinds.items()} | {"rerank_pairs_at_most": pairs}
        asking = {"ask": AskStage, "rewrite": RewriteStage, "merge": MergeStage, "engine": EngineStage}
        return work | {name: counts[kind] * queries for name, kind in asking.items() if counts[kind]}

    def count_alone(self, requests: Mapping[str, int], queries: int, repetitions: int) -> dict[str, int]:
        """Return how often each kind of work is done if each run does its own. Exact counterparts are searched once.

        `requests` are the searches of each run; those of a run that asks an engine are requests to the engine, and its
        other stages follow once per query and repetition.
        """
        work = Counter[str]()
        for run in self.runs:
            sent = [stage for stage in run.stages if isinstance(stage, EngineStage)] or run.stages
            work.update(Plan(tuple(sent), ()).count_work(requests[run.run_key]))
            stages = tuple(stage for stage in run.stages if stage not in sent)
            work.update(Plan(stages, ()).count_work(queries * repetitions))
        for stage in self.list_truth_stages():
            work.update(Plan((stage,), ()).count_work(queries))
        return dict(work)

    def list_truth_stages(self) -> list[Stage]:
        """Return the stages of each exact counterpart that its run does not have."""
        by_run = {run.run_key: run.stages for run in self.runs}
        return [stage for truth in self.truths for stage in truth.stages if stage not in by_run[truth.run_key]]

    def explain(self, queries: int, *, alone: Mapping[str, int] | None = None) -> str:
        """Return the work in a few lines: of the plan and of the runs one by one; or `alone`, of isolated execution."""
        one_by_one = Counter[str]()
        for run in self.runs:
            one_by_one.update(Plan(run.stages, (run,)).count_work(queries))
        work = self.count_work(queries) if alone is None else alone
        lines = [
            f"{count:>12,}  {WORK[kind]} instead of {one_by_one[kind]:,}"
            if alone is None
            else f"{count:>12,}  {WORK[kind].strip(',')}"
            for kind, count in work.items()
            if count
        ]
        if self.truths:
            lines.append(f"{'':>12}  (including exact searches to check {len(self.truths):,} approximate runs)")
        subject = f"{counted(len(self.runs), 'run')} over {counted(queries, 'query')}"
        division = "equal work done once" if alone is None else "each run alone"
        return "\n".join([f"{subject}, {division}:", *lines])


WORK = {
    "encode": "query encodings",
    "dense": "dense searches",
    "ask": "searches that ask a language model",
    "lexical": "lexical searches",
    "fuse": "fusions",
    "rewrite": "rewritings by a language model",
    "merge": "fusions of the lists of variants",
    "engine": "requests to search engines",
    "rerank_pairs_at_most": "reranked pairs at most,",
}


def plan(runs: Iterable[tuple[str, Configuration]], *, asking: Collection[str | None] = ()) -> Plan:
    """Return the plan of runs, each given by key and configuration. Equal runs in equal order give equal plans.

    `asking` are the indexes whose strategies ask a language model. Their exact counterparts ask the same again, which
    is answered from what is kept.
    """
    normal = [(run_key, normalize(configuration)) for run_key, configuration in runs]
    exact = [(key, replace(run, ann="exact")) for key, run in normal if run.ann != "exact"]
    depths = _find_exact_depths((configuration for _, configuration in [*normal, *exact]), asking)
    planned = tuple(_run_plan(run_key, configuration, depths, asking) for run_key, configuration in normal)
    truths = tuple(_run_plan(run_key, configuration, depths, asking) for run_key, configuration in exact)
    distinct = {stage.key: stage for run in [*planned, *truths] for stage in run.stages}
    kinds = get_args(Stage)
    return Plan(tuple(sorted(distinct.values(), key=lambda stage: kinds.index(type(stage)))), planned, truths)


def _run_plan(
    run_key: str, configuration: Configuration, depths: dict[str, int], asking: Collection[str | None]
) -> RunPlan:
    return RunPlan(
        run_key=run_key,
        index=configuration.index,
        stages=tuple(_list_stages(configuration, depths, asking)),
        candidates=configuration.effective_candidates,
        top_k=configuration.top_k,
        threshold=configuration.score_threshold,
        unit_kind=_find_unit_kind(configuration),
    )


def _find_unit_kind(configuration: Configuration) -> UnitKind:
    if not configuration.use_reranker:
        if configuration.rewrites and QueryText.parse(configuration.query).count > 1:
            return "hybrid"  # of reciprocal ranks too
        return "hybrid" if configuration.is_fused else cast(UnitKind, configuration.search_mode)
    return "late_interaction" if configuration.effective_reranker == LATE_INTERACTION else "cross_encoder"


def _list_stages(run: Configuration, depths: dict[str, int], asking: Collection[str | None]) -> list[Stage]:
    """Return the stages of one run, each after those that it needs; the last one's list is the run's."""
    stages: list[Stage] = [RewriteStage(run.query, run.llm or "")] if run.rewrites else []
    if run.uses_vectors:
        stages += [EncodeStage(run.index, wording) for wording in _list_wordings(run)]
    merges: list[Stage] = []
    lists: list[str] = []  # of each engine, the key of its one list
    for engine in _list_searches(run, asking):
        variants = [replace(stage, depth=depths[stage.key]) for stage in engine]
        stages += variants
        if len(variants) > 1:
            merges.append(MergeStage(run.index, tuple(stage.key for stage in variants), run.effective_candidates))
        lists.append((merges if len(variants) > 1 else variants)[-1].key)
    stages += merges
    if run.asks_engine:
        stages += _list_engine_stages(run, lists)
    if run.is_fused:
        both = {"dense": lists[0], "lexical": lists[1]}
        stages.append(_build_stage(FuseStage, run, **both, candidates=run.effective_candidates))
    if run.use_reranker:
        stages.append(RerankStage(run.index, stages[-1].key, run.effective_reranker, run.effective_rerank_depth))
    return stages


def _build_stage(kind: type[S], run: Configuration, **settings: object) -> S:
    """Return a stage whose fields have the run's values of the axes that they are named after, or these `settings`."""
    set_by_run = {each.name: getattr(run, each.name) for each in fields(kind) if each.name in DEFAULTS}
    return kind(**{**set_by_run, **settings})


def _list_engine_stages(run: Configuration, lists: list[str]) -> list[Stage]:
    """Return the stages that ask the engine and find its documents in the index; put its list into `lists`."""
    stage = EngineStage(run.engine or "", run.effective_candidates)
    if not run.needs_index:
        return [stage]
    located = LocateStage(run.index, stage.key, stage.depth, lists[0] if lists else None)
    lists.insert(0 if run.uses_words else len(lists), located.key)
    return [stage, located]


def _list_wordings(run: Configuration) -> list[Wording | None]:
    """Return the texts of a query that the run searches for by vectors; None: as asked."""
    if not run.rewrites:
        return [None]
    query_text = QueryText.parse(run.query)
    rewrite_key = RewriteStage(run.query, run.llm or "").key
    return [Wording(rewrite_key, position, query_text.method == HYDE) for position in range(query_text.count)]


def _list_searches(run: Configuration, asking: Collection[str | None]) -> list[list[DenseStage | LexicalStage]]:
    """Return the searches of one run, as deep as it would ask for if it were alone: by engine, one for each text."""
    by_vectors = AskStage if run.index in asking else DenseStage
    depth, wordings = run.effective_candidates, _list_wordings(run)
    by_words = wordings if run.rewrites and QueryText.parse(run.query).by_words else [None]
    dense = [_build_stage(by_vectors, run, depth=depth, wording=wording) for wording in wordings]
    lexical = [_build_stage(LexicalStage, run, depth=depth, wording=wording) for wording in by_words]
    searches: list[list[DenseStage | LexicalStage]] = []
    searches += [[*dense]] if run.uses_vectors else []
    searches += [[*lexical]] if run.uses_words else []
    return searches


def _find_exact_depths(runs: Iterable[Configuration], asking: Collection[str | None]) -> dict[str, int]:
    """Return the greatest depth at which a run reads each first-stage list, by key.

    The key of a list that is not shared across depths contains its depth.
    """
    depths: dict[str, int] = {}
    for stage in (stage for run in runs for engine in _list_searches(run, asking) for stage in engine):
        depths[stage.key] = max(stage.depth, depths.get(stage.key, 0))
    return depths


def _bound_pairs(stages: Iterable[Stage]) -> int:
    """Return a bound on the distinct chunks per query that rerankers score, summed over rerankers and indexes.

    The chunks that one reranker sees of one index are no more than the lists it reads hold together, and no more than
    the heads of the first-stage lists that those were made of.
    """
    by_key = {stage.key: stage for stage in stages}
    read: dict[tuple[str, str | None], tuple[Counter[str], Counter[str]]] = {}
    for stage in by_key.values():
        if not isinstance(stage, RerankStage):
            continue
        lists, heads = read.setdefault((stage.reranker, stage.index), (Counter(), Counter()))
        lists |= Counter({stage.source: stage.depth})  # the greater of both
        match by_key.get(stage.source):  # None if it is counted elsewhere
            case FuseStage(dense=dense, lexical=lexical, candidates=candidates):
                heads |= Counter({dense: candidates, lexical: candidates})
            case _:
                heads |= Counter({stage.source: stage.depth})
    return sum(min(lists.total(), heads.total()) for lists, heads in read.values())
