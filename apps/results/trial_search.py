"""The search for a tried query, in a worker: as a benchmark searches, with an explanation of each score."""

from collections.abc import Mapping, Sequence

import numpy as np

from apps.datasets.models import Query
from apps.engines.declarations import load_engine
from apps.execution.running.engine_trials import ask_engine, render_trial
from apps.execution.running.open_indexes import OpenIndexes
from apps.execution.running.outcomes import Outcome
from apps.execution.running.pairs import PinnedRerankers
from apps.execution.running.rankings import build_final_lists
from apps.execution.running.stages import Stages
from apps.records.planning import SharedList, list_llm_indexes
from apps.results.trying import MAX_HITS, Answer, EngineTrial, Step, Terms, Trial, TrialError, TrialHit
from apps.retrieval.models import Index
from benchbench.ir.planning.lexical import BM25, FULL_TEXT, Lexical
from benchbench.ir.planning.plan import RunPlan, plan
from benchbench.ir.planning.stages import DenseStage, FuseStage, LexicalStage, RerankStage, Searching
from benchbench.ir.ranking import scale_shares
from benchbench.ir.records import ScoredList

MAX_TERMS = 100  # of a document that are shown


def search_engine(trial: EngineTrial) -> Answer:
    """Ask an engine as a benchmark does; `text` shows the request, the answer and its hits, or what it lacks."""
    engine = load_engine(trial.alias)
    outcome = ask_engine(engine, trial.text, {}, trial.depth)
    error = outcome.error.message if outcome.error else ""
    return Answer(error, text=render_trial(outcome, engine, trial.depth))


def search(trial: Trial) -> Answer:
    """Search as a benchmark of the trial's configuration does, and explain each score. Raises TrialError."""
    index = Index.objects.select_related("chunk_set", "lexical_index", "collection").filter(pk=trial.index_id).first()
    if index is None or list_llm_indexes({None: index}):
        raise TrialError("The index was deleted, or its strategy asks a language model: choose another index.")
    planned = plan([("", trial.configuration)])
    indexes = OpenIndexes({None: index})
    stages = Stages([Query(pk=0, text=trial.text)], indexes, PinnedRerankers(), tolerant=True)
    outcomes = stages.run(planned)
    (run,) = planned.runs
    (final,) = build_final_lists([SharedList(0, (run,))], outcomes, [0], indexes, max_k=1)
    count = min(final.lengths[0], MAX_HITS)
    is_lexical = not final.facts.error and any(isinstance(stage, LexicalStage) for stage in run.stages)
    setting = Lexical.parse(trial.lexical)
    bm25 = indexes[None].words.load_bm25(setting) if is_lexical and setting.engine == BM25 else None
    analyze = bm25.analyzer.analyze if bm25 else None
    terms = analyze(trial.text) if analyze else None
    if final.facts.error or final.chunk_ids is None or not count:
        return Answer(final.facts.error, terms=terms)
    first = np.arange(count) if final.chunk_ranks is None else final.chunk_ranks[:count] - 1
    lists = _read_lists(run, outcomes)
    positions = lists[run.final].ids[first].tolist()
    words = bm25.explain(trial.text, positions) if bm25 else [[] for _ in positions]
    explained = explain(run, lists, words, positions)
    texts = indexes[None].load_texts(positions)
    document_terms = [analyze(text)[:MAX_TERMS] if analyze else [] for text in texts]
    columns = final.document_ids[:count].tolist(), final.chunk_ids[first].tolist(), final.scores[first].tolist()
    hits = [TrialHit(*row) for row in zip(*columns, explained, document_terms, strict=True)]
    return Answer("", hits, final.lengths[0], final.facts.timings.get("total_ms"), terms)


def _read_lists(run: RunPlan, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, ScoredList]:
    """Return the part of each stage's list that the run reads."""
    return {
        stage.key: outcomes[stage.key][0].value.head(run.candidates)
        for stage in run.stages
        if isinstance(stage, Searching)
    }


def explain(
    run: RunPlan, lists: Mapping[str, ScoredList], words: Sequence[Terms], positions: Sequence[int]
) -> list[list[Step]]:
    """Return for each chunk of `positions` its steps, one a stage. `words` has the matching words of each chunk."""
    ranks = {key: {chunk: rank for rank, chunk in enumerate(ranked.ids.tolist(), 1)} for key, ranked in lists.items()}
    names = {stage.key: stage.name for stage in run.stages}

    def build_step(stage: Searching, position: int, matches: Terms) -> Step:
        rank = ranks[stage.key].get(position)
        kind, terms = KINDS.get(type(stage), ""), []
        if rank is None:
            return Step(stage.name, None, kind)
        if isinstance(stage, LexicalStage):
            kind, terms = "ts_rank" if stage.lexical.startswith(FULL_TEXT) else "BM25", matches
        elif isinstance(stage, FuseStage):
            terms = explain_fusion(stage, {names[key]: (lists[key], ranks[key].get(position)) for key in stage.needs})
        return Step(stage.name, rank, kind, terms, float(lists[stage.key].scores[rank - 1]))

    return [
        [build_step(stage, position, matches) for stage in run.stages if isinstance(stage, Searching)]
        for position, matches in zip(positions, words, strict=True)
    ]


KINDS: dict[type, str] = {
    DenseStage: "similarity",
    RerankStage: "late interaction",
}


def explain_fusion(stage: FuseStage, listed: Mapping[str, tuple[ScoredList, int | None]]) -> Terms:
    """Return what each list, with the rank in it, adds to a fused score, as `rrf` and `weighted` compute it."""
    if stage.weights:
        return [
            (f"{weight:g} of {name} rank {rank}", weight * scale_shares(ranked.scores)[rank - 1] / sum(stage.weights))
            for (name, (ranked, rank)), weight in zip(listed.items(), stage.weights, strict=True)
            if rank and weight
        ]
    maximum, ranks = len(listed) / (stage.rrf_k + 1), {name: rank for name, (_, rank) in listed.items()}
    return [(f"{name} rank {rank}", 1 / (stage.rrf_k + rank) / maximum) for name, rank in ranks.items() if rank]
