"""Running of the stages of a plan for some queries: each distinct stage once, with its outcomes kept for the runs."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.datasets.models import Query
from apps.execution.running.excluding import NO_EXCLUSION, Exclusion
from apps.execution.running.open_indexes import find_unread, prepare_index, time_encoding_afresh
from apps.execution.running.outcomes import (
    DOWN,
    QUERY_ERRORS,
    BatchNotes,
    Outcome,
    build_outcome,
    check_lists,
    combine,
    find_earlier_hang,
    note,
    settle,
)
from apps.execution.running.pairs import Pairs, PinnedRerankers
from apps.operations.handlers import Faults
from apps.operations.leasing import Stopped
from apps.operations.metrics import count_vectors
from apps.operations.workers.watchdog import about
from apps.retrieval.encoders.base import CUT, Kind
from apps.retrieval.encoders.encoding import TextVector, compute_query_vectors
from apps.retrieval.filters import Filter, add_share
from apps.retrieval.llms.asking import rewrite_query
from apps.retrieval.search.open_indexes import OpenIndex
from apps.retrieval.strategies.base import Answer
from benchbench.database.tables import closing_cursors
from benchbench.errors import BenchbenchError, UnfitWorkerError, error_text
from benchbench.ir.planning import stages as planned
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.lexical import FULL_TEXT
from benchbench.ir.planning.plan import Plan
from benchbench.ir.records import Calls, ScoredList

Search = Callable[[OpenIndex, list[int]], list[Answer]]
Outcomes = list[Outcome]
Work = Callable[[list[int]], Outcomes]  # of the numbers of queries
FirstStage = planned.DenseStage | planned.LexicalStage


@dataclass(eq=False)
class Stages:
    """A runner of the stages of a plan for `queries`.

    If `tolerant`, temporary errors (out of memory, a broken connection) are recorded with the query and not raised.
    BenchbenchError is always recorded, but UnfitWorkerError is always raised. `pairs` stores the scores of reranked
    pairs; by default they are in memory only. `encode_afresh` encodes again for the time, even if vectors are stored.
    `on_part` is called between parts and may raise. `faults` collects the tracebacks of recorded errors. `hung` has, by
    stage key and query, the sentence about a model that did not answer before; the query "" is that of several ones.
    `stored` has the stored vectors of the queries, by stage key, that are not read again. `ask_engine` is
    `EngineSearch.ask` with the notes of the batch. `exclusion` drops documents from the lists of first stages.
    """

    queries: Sequence[Query]
    indexes: Mapping[str | None, OpenIndex]
    rerankers: PinnedRerankers
    tolerant: bool
    pairs: Pairs = field(default_factory=Pairs)
    encode_afresh: bool = False
    on_part: Callable[[], None] = lambda: None
    faults: Faults = field(default_factory=Faults)
    hung: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ask_engine: Callable[..., Outcomes] | None = None
    stored: Mapping[str, Sequence[TextVector]] = field(default_factory=dict)
    exclusion: Exclusion = NO_EXCLUSION
    outcomes: dict[str, Outcomes] = field(init=False, default_factory=dict)
    notes: BatchNotes = field(init=False, default_factory=dict)

    def run(self, plan: Plan, *, on_stage: Callable[[planned.Stage], None] = lambda stage: None) -> dict[str, Outcomes]:
        """Run the stages in the plan's order and return their outcomes: {stage key: [outcome per query]}.

        `on_stage` is called with each stage after it ends.
        """
        for stage in plan.stages:
            self.outcomes[stage.key] = self._run_each(stage, self._choose_work(stage))
            on_stage(stage)
        settle(plan.runs, self.outcomes, self.notes, attempt=self._attempt)
        return self.outcomes

    def _choose_work(self, stage: planned.Stage) -> Work:
        match stage:
            case planned.RewriteStage():
                return lambda numbers: [self._attempt(partial(self._rewrite, stage, number)) for number in numbers]
            case planned.EncodeStage():
                return partial(self._encode, stage)
            case planned.AskStage():
                return lambda numbers: [self._attempt(partial(self._ask, stage, number)) for number in numbers]
            case planned.DenseStage(ann="exact"):
                return partial(self._time_search, stage, partial(self._search_index, stage))
            case planned.DenseStage():
                return partial(self._approximate, stage)
            case planned.LexicalStage():
                return partial(self._search_lexical, stage)
            case planned.EngineStage():
                return partial(self._ask_engine, stage)
            case planned.MergeStage() | planned.LocateStage() | planned.FuseStage():
                return lambda numbers: [
                    self._attempt(partial(combine, stage, self.get_values(stage, number), self.indexes[stage.index]))
                    for number in numbers
                ]
            case planned.RerankStage():
                return lambda numbers: [self._rerank(stage, number) for number in numbers]
        raise TypeError(f"No engine can run the stage {stage!r}.")

    def _run_each(self, stage: planned.Stage, work: Work) -> Outcomes:
        """Call `work` for all queries whose earlier stages succeeded, or for one at a time if that fails."""
        hung = self.hung.get(stage.key, {})
        keys = [query.pk for query in self.queries]
        outcomes = [
            self._inherit_error(stage, number) or find_earlier_hang(hung, key) for number, key in enumerate(keys)
        ]
        ready = [number for number, outcome in enumerate(outcomes) if outcome is None]

        def run_checked(numbers: list[int]) -> Outcomes:
            with about(stage.key, [keys[number] for number in numbers]), closing_cursors():
                results = work(numbers)
            if isinstance(stage, planned.DenseStage | planned.LexicalStage | planned.EngineStage):
                index = None if isinstance(stage, planned.EngineStage) else self.indexes[stage.index]
                results = self.exclusion.drop(results, [self.queries[n] for n in numbers], stage.depth, index)
            lists = [outcome.value for outcome in results if isinstance(outcome.value, ScoredList)]
            if lists and not isinstance(stage, planned.RewriteStage | planned.EngineStage):
                check_lists(stage, self.indexes[stage.index], lists)
            return results

        try:
            if hung:
                results = [self._run_alone(run_checked, number) for number in ready]
            else:
                results = run_checked(ready) if ready else []
        except Exception as error:
            self._raise_if_passing(error)
            results = self._run_apart(stage.key, run_checked, ready, error)
        for number, outcome in zip(ready, results, strict=True):
            outcomes[number] = outcome
        self.on_part()
        return [outcome for outcome in outcomes if outcome is not None]

    def _inherit_error(self, stage: planned.Stage, number: int) -> Outcome | None:
        errors = [self.outcomes[key][number].error for key in stage.needs]
        return next((Outcome(error=error) for error in errors if error), None)

    def _run_apart(self, stage: str, work: Work, ready: list[int], error: Exception) -> Outcomes:
        """Run the queries one by one to find those that fail, unless the error must affect all of them.

        Then the stage is down: means over the other batches would be those of no sample that was drawn.
        """
        if isinstance(error, BenchbenchError) and not isinstance(error, QUERY_ERRORS):
            self.faults.add(str(error), error)
            note(self.notes, stage, DOWN, [str(error)])  # a missing model or index; a full disk is named by its folder
            return [Outcome(error=str(error))] * len(ready)
        return [self._run_alone(work, number) for number in ready]

    def _run_alone(self, work: Work, number: int) -> Outcome:
        return self._attempt(lambda: work([number])[0])

    def _attempt(self, work: Callable[[], Outcome]) -> Outcome:
        """Call `work` and convert an error into an outcome, unless it must be raised."""
        try:
            self.on_part()
            return work()
        except Exception as error:
            self._raise_if_passing(error)
            message = error_text(error)
            self.faults.add(message, error)
            return Outcome(error=message)

    def _raise_if_passing(self, error: Exception) -> None:
        if isinstance(error, (Stopped, UnfitWorkerError)) or not (self.tolerant or isinstance(error, BenchbenchError)):
            raise error

    def get_values(self, stage: planned.Stage, number: int) -> list[Any]:
        """Return the values of one query that a stage combines."""
        return [self.outcomes[key][number].value for key in stage.needs]

    def _get_texts(self, wording: planned.Wording | None, numbers: list[int]) -> list[str]:
        if wording is None:
            return [self.queries[number].text for number in numbers]
        return [self.outcomes[wording.stage][number].value[wording.position] for number in numbers]

    def _get_questions(self, stage: planned.DenseStage, numbers: list[int]) -> list[str]:
        """Return the texts of the queries for a strategy; instead of a generated passage, the query itself."""
        is_passage = stage.wording is not None and stage.wording.is_passage
        return self._get_texts(None if is_passage else stage.wording, numbers)

    def _get_filters(self, stage: FirstStage, numbers: list[int]) -> list[Filter]:
        return [add_share(self.queries[number].filters, stage.filter_share) for number in numbers]

    def _rewrite(self, stage: planned.RewriteStage, number: int) -> Outcome:
        """Ask a language model for the texts of one query. A cached answer counts with its original time."""
        with about(stage.key, [self.queries[number].pk]):
            texts, reply = rewrite_query(stage.method, stage.llm, self.queries[number].text)
        return Outcome(texts, reply.ms, calls=Calls(llm=1, llm_cached=int(reply.is_cached)))

    def _encode(self, stage: planned.EncodeStage, numbers: list[int]) -> Outcomes:
        index, texts = self.indexes[stage.index], self._get_texts(stage.wording, numbers)
        kind: Kind = "document" if stage.wording and stage.wording.is_passage else "query"
        if (vectors := self.stored.get(stage.key)) is None:
            vectors = compute_query_vectors(index.index, texts, kind=kind)
            new = {text for text, one in zip(texts, vectors, strict=True) if one.is_new}
            count_vectors("queries", cached=len(set(texts)) - len(new), encoded=len(new))
        self._note(stage, CUT, [number for number, one in zip(numbers, vectors, strict=True) if one.is_cut])
        if self.encode_afresh and index.index.encoder:  # without an encoder the vectors were imported
            ms = time_encoding_afresh(index, texts, np.stack([encoded.vector for encoded in vectors]), kind)
            return [Outcome(encoded.vector, ms) for encoded in vectors]
        return [build_outcome(index.index, text, one, kind) for text, one in zip(texts, vectors, strict=True)]

    def _note(self, stage: planned.Stage, name: str, numbers: Sequence[int]) -> None:
        if numbers:
            note(self.notes, stage.key, name, [self.queries[number].pk for number in numbers])

    def _approximate(self, stage: planned.DenseStage, numbers: list[int]) -> Outcomes:
        index, texts = prepare_index(stage, self.indexes), self._get_questions(stage, numbers)
        depth, filters = stage.depth + self.exclusion.count_more(index), self._get_filters(stage, numbers)
        result = index.approximate(
            self._stack_vectors(stage, numbers), depth, Ann.parse(stage.ann), filters, texts=texts
        )
        for name, positions in result.notes.items():
            self._note(stage, name, [numbers[position] for position in positions])
        return [Outcome(one.ranked, ms, calls=one.calls) for one, ms in zip(result.answers, result.costs, strict=True)]

    def _search_index(self, stage: planned.DenseStage, index: OpenIndex, numbers: list[int]) -> list[Answer]:
        depth, texts = stage.depth + self.exclusion.count_more(index), self._get_questions(stage, numbers)
        vectors, filters = self._stack_vectors(stage, numbers), self._get_filters(stage, numbers)
        return index.find_answers(vectors, depth, filters, texts=texts, dimensions=stage.dimensions)

    def _stack_vectors(self, stage: planned.DenseStage, numbers: list[int]) -> NDArray[np.float32]:
        return np.stack([self.outcomes[stage.needs[0]][number].value for number in numbers])

    def _ask(self, stage: planned.AskStage, number: int) -> Outcome:
        """Search for one query by a strategy that asks a language model; an error affects this query only."""
        with about(stage.key, [self.queries[number].pk]):
            if stage.ann != "exact":
                return self._approximate(stage, [number])[0]
            index = prepare_index(stage, self.indexes)
            started = time.perf_counter()
            (answer,) = self._search_index(stage, index, [number])
        ms = (time.perf_counter() - started) * 1000 if answer.ms is None else answer.ms
        return Outcome(answer.ranked, ms, calls=answer.calls)

    def _search_lexical(self, stage: planned.LexicalStage, numbers: list[int]) -> Outcomes:
        def search(index: OpenIndex, some: list[int]) -> list[Answer]:
            texts, filters = self._get_texts(stage.wording, some), self._get_filters(stage, some)
            depth = stage.depth + self.exclusion.count_more(index)
            return [*map(Answer, index.search_words(texts, depth, filters, lexical=stage.lexical))]

        outcomes = self._time_search(stage, search, numbers, apart=stage.lexical.startswith(FULL_TEXT))
        lists = [outcome.value for outcome in outcomes]
        unread = find_unread(self.indexes[stage.index], stage, self._get_texts(stage.wording, numbers), lists)
        for name, positions in unread.items():
            self._note(stage, name, [numbers[position] for position in positions])
        return outcomes

    def _time_search(self, stage: FirstStage, search: Search, numbers: list[int], *, apart: bool = False) -> Outcomes:
        """Search for queries together, each with an equal share of the time, or `apart`, each with its own time."""
        if apart and len(numbers) > 1:
            alone = []
            for number in numbers:
                self.on_part()
                alone += self._time_search(stage, search, [number])
            return alone
        index, started = prepare_index(stage, self.indexes), time.perf_counter()
        answers = search(index, numbers)
        ms = (time.perf_counter() - started) * 1000
        outcomes = [Outcome(answer.ranked, ms / len(numbers), calls=answer.calls) for answer in answers]
        if len(numbers) == 1:
            return outcomes
        return [  # lists are bit-identical in any batch, so a search that is repeated finds the same list
            replace(outcome, together_ms=ms, time=partial(self._time_alone, stage, search, number))
            for number, outcome in zip(numbers, outcomes, strict=True)
        ]

    def _time_alone(self, stage: FirstStage, search: Search, number: int) -> float:
        return self._time_search(stage, search, [number])[0].ms or 0.0

    def _ask_engine(self, stage: planned.EngineStage, numbers: list[int]) -> Outcomes:
        assert self.ask_engine is not None
        return self.ask_engine(stage, [self.queries[number] for number in numbers], afresh=self.encode_afresh)

    def _rerank(self, stage: planned.RerankStage, number: int) -> Outcome:
        source = self.outcomes[stage.needs[0]][number].value.head(stage.depth)
        index, query = self.indexes[stage.index], self.queries[number]
        reranker = self.rerankers.load(stage.reranker, index.index)
        with about(stage.key, [query.pk]):
            outcome = self.pairs.rerank(reranker, index, query, source, on_part=self.on_part)
        self._note(stage, CUT, [number] if self.pairs.is_any_cut(reranker, index, query, source.ids) else [])
        return outcome
