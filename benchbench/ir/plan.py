"""From the runs of a matrix to the distinct stages that they need: what is equal in several runs is done once.

A run's result is a function of its own configuration alone. Exact lists are made once per index, as deep as the deepest
run needs, and each run reads only the first `candidates` entries; approximate lists depend on the depth they are asked
for and are therefore made per depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchbench.ir.matrix import Configuration
from benchbench.ir.ranking import UnitKind


@dataclass(frozen=True, slots=True)
class EncodeStage:
    """The vectors of the query texts, by the encoder of an index."""

    index: str | None

    @property
    def key(self) -> str:
        return f"encode({_name(self.index)})"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class DenseStage:
    """The chunks nearest to each query vector, exact or by the ANN setting `ann`, `depth` of them."""

    index: str | None
    ann: str
    depth: int

    @property
    def key(self) -> str:
        depth = "" if self.ann == "exact" else f", {self.depth}"
        return f"dense({_name(self.index)}, {self.ann}{depth})"

    @property
    def needs(self) -> tuple[str, ...]:
        return (EncodeStage(self.index).key,)


@dataclass(frozen=True, slots=True)
class LexicalStage:
    """The chunks that the lexical engine `engine` scores highest, `depth` of them."""

    index: str | None
    engine: str
    depth: int

    @property
    def key(self) -> str:
        return f"lexical({_name(self.index)}, {self.engine})"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class FuseStage:
    """One list of the first `candidates` entries of a dense and a lexical list, cut to `candidates` again."""

    index: str | None
    dense: str
    lexical: str
    fusion: str
    constant: int
    weights: tuple[float, float] | None
    candidates: int

    @property
    def key(self) -> str:
        how = f"rrf {self.constant}" if self.fusion == "rrf" else f"{self.fusion} {self.weights}"
        return f"fuse({self.dense} + {self.lexical}, {how}, {self.candidates})"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.dense, self.lexical)


@dataclass(frozen=True, slots=True)
class RerankStage:
    """The first `depth` chunks of a list in the order of a reranker's scores; what lies deeper is dropped."""

    index: str | None
    source: str
    reranker: str
    depth: int

    @property
    def key(self) -> str:
        return f"rerank({self.source}, {self.reranker}, {self.depth})"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.source,)


Stage = EncodeStage | DenseStage | LexicalStage | FuseStage | RerankStage


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What one run does with its last stage: first `candidates`, threshold on unit scores, first `top_k`, collapse."""

    run_key: str
    index: str | None
    final: str
    candidates: int
    top_k: int
    threshold: float | None
    unit_kind: UnitKind


@dataclass(frozen=True, slots=True)
class Plan:
    """Distinct stages, each after those that it needs, and the runs that read them."""

    stages: tuple[Stage, ...]
    runs: tuple[RunPlan, ...]

    def stages_of(self, run: RunPlan) -> list[Stage]:
        """The stages that a run would do if it were alone, in order."""
        by_key = {stage.key: stage for stage in self.stages}
        wanted = {run.final}
        for stage in reversed(self.stages):  # each stands after those that it needs
            if stage.key in wanted:
                wanted.update(by_key[stage.key].needs)
        return [stage for stage in self.stages if stage.key in wanted]

    def distinct(self, queries: int) -> dict[str, int]:
        """How often each kind of work is done for `queries` queries.

        The pairs of query and chunk are an upper bound: each is scored once per reranker, and lists overlap by an
        amount that is only known once they exist.
        """
        kinds = {EncodeStage: "encode", DenseStage: "dense", LexicalStage: "lexical", FuseStage: "fuse"}
        counts = dict.fromkeys([*kinds.values(), "rerank_pairs_at_most"], 0)
        for stage in self.stages:
            if isinstance(stage, RerankStage):
                counts["rerank_pairs_at_most"] += stage.depth * queries
            else:
                counts[kinds[type(stage)]] += queries
        return counts

    def explain(self, queries: int) -> str:
        """A few lines: how many runs, and the distinct work that they share."""
        lines = [f"{len(self.runs)} runs over {queries} queries need, once each:"]
        return "\n".join(lines + [f"  {stage.key}" for stage in self.stages])


def plan(runs: Iterable[tuple[str, Configuration]]) -> Plan:
    """The plan of runs, given as (key of the run, its configuration)."""
    given = [(key, configuration.normal()) for key, configuration in runs]
    depths = _exact_depths(configuration for _, configuration in given)
    stages: dict[str, Stage] = {}
    planned = []
    for run_key, configuration in given:
        own = list(_stages(configuration, depths))
        stages.update((stage.key, stage) for stage in own)
        planned.append(_run_plan(run_key, configuration, own[-1]))
    order = (EncodeStage, DenseStage, LexicalStage, FuseStage, RerankStage)
    return Plan(tuple(sorted(stages.values(), key=lambda stage: order.index(type(stage)))), tuple(planned))


def _exact_depths(configurations: Iterable[Configuration]) -> dict[str | None, int]:
    """The depth of the exact lists per index: what the deepest run reads of them."""
    depths: dict[str | None, int] = {}
    for configuration in configurations:
        depths[configuration.index] = max(depths.get(configuration.index, 0), configuration.effective_candidates)
    return depths


def _stages(configuration: Configuration, depths: dict[str | None, int]) -> Iterator[Stage]:
    """The stages of one run, each after those that it needs; the last one's list is the run's."""
    index, candidates = configuration.index, configuration.effective_candidates
    exact = configuration.ann == "exact"
    dense = DenseStage(index, configuration.ann, depths[index] if exact else candidates)
    lexical = LexicalStage(index, configuration.lexical, depths[index])
    last: Stage = lexical
    if configuration.search_mode != "sparse":
        yield EncodeStage(index)
        yield dense
        last = dense
    if configuration.search_mode != "dense":
        yield lexical
    if configuration.search_mode == "hybrid":
        last = FuseStage(
            index, dense.key, lexical.key, configuration.fusion, configuration.rrf_k, configuration.weights, candidates
        )
        yield last
    if configuration.use_reranker:
        depth = min(configuration.effective_rerank_depth, candidates)
        yield RerankStage(index, last.key, configuration.reranker or "", depth)


def _run_plan(run_key: str, configuration: Configuration, last: Stage) -> RunPlan:
    kinds: dict[str, UnitKind] = {"dense": "dense", "sparse": "sparse", "hybrid": "hybrid"}
    return RunPlan(
        run_key=run_key,
        index=configuration.index,
        final=last.key,
        candidates=configuration.effective_candidates,
        top_k=configuration.top_k,
        threshold=configuration.score_threshold,
        unit_kind="cross_encoder" if configuration.use_reranker else kinds[configuration.search_mode],
    )


def _name(index: str | None) -> str:
    return "the index" if index is None else index
