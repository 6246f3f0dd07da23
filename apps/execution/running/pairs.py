"""Pairs of a query and a chunk, each scored once by a reranker in the revision of the benchmark's first worker."""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from uuid import UUID

import numpy as np
from django.db.models import QuerySet

from apps.datasets.models import Query
from apps.execution.running.outcomes import Outcome
from apps.records.models import Benchmark, PairList, RerankerRevision
from apps.retrieval.models import Index
from apps.retrieval.rerankers import PairScores, Reranker, load_reranker
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.errors import UnfitWorkerError
from benchbench.ir.ranking import RankingError, top
from benchbench.ir.records import Positions, ScoredList
from benchbench.process import calling

Key = tuple[str, str, UUID, int]


class Scored(NamedTuple):
    """A pair's raw scores, and the milliseconds of scoring it."""

    score: float
    threshold_score: float
    ms: float


class Pairs:
    """The scores of pairs. With a benchmark, includes the scores that any of its batches stored.

    New scores are stored at once, outside the transaction that ends a batch, so that a failed batch does not lose them.
    """

    def __init__(self, benchmark: Benchmark | None = None) -> None:
        self._benchmark = benchmark
        self._pairs_by_key: dict[Key, dict[int, Scored]] = {}
        self._stored_before: set[Key] = set()
        self._cut: defaultdict[Key, set[int]] = defaultdict(set)

    def rerank(
        self,
        reranker: Reranker,
        index: OpenIndex,
        query: Query,
        source: ScoredList,
        *,
        on_part: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Return the list of a query in the order of a reranker's scores."""
        order = np.argsort(source.ids)  # ascending positions fix the order of ties and of sums
        positions = source.ids[order]
        pairs, ms = self.score(reranker, index, query, positions, on_part=on_part)
        best = top(reranker.combine(source.scores[order], pairs.scores), len(source))
        ranked = ScoredList(positions[best.ids], best.scores, pairs.threshold_scores[best.ids])
        is_stored = _build_key(reranker, index, query) in self._stored_before
        again = partial(self.time, reranker, index, query, positions) if is_stored else None
        return Outcome(ranked, ms, time=again)

    def score(
        self,
        reranker: Reranker,
        index: OpenIndex,
        query: Query,
        positions: Positions,
        *,
        on_part: Callable[[], None] = lambda: None,
    ) -> tuple[PairScores, float]:
        """Return the scores of chunks for a query, in the order of `positions`, and the cost of scoring them in ms."""
        key = _build_key(reranker, index, query)
        if key not in self._pairs_by_key:
            self._pairs_by_key[key] = self._load_pairs(key)
            self._stored_before |= {key} if self._pairs_by_key[key] else set()
        pairs = self._pairs_by_key[key]
        if missing := [position for position in positions.tolist() if position not in pairs]:
            pairs |= self._score(key, reranker, index, query, missing, on_part)
        chosen = [pairs[position] for position in positions.tolist()]
        scores = PairScores(
            np.array([pair.score for pair in chosen], np.float64),
            np.array([pair.threshold_score for pair in chosen], np.float64),
        )
        return scores, sum(pair.ms for pair in chosen)

    def is_any_cut(self, reranker: Reranker, index: OpenIndex, query: Query, positions: Positions) -> bool:
        """Return whether the reranker did not read the end of some of a query's pairs, which were scored before."""
        return not self._cut[_build_key(reranker, index, query)].isdisjoint(positions.tolist())

    def time(self, reranker: Reranker, index: OpenIndex, query: Query, positions: Positions) -> float:
        """Score pairs again, store the time as their cost, and return it in milliseconds. The old scores stay."""
        key = _build_key(reranker, index, query)
        texts = index.load_texts(positions.tolist())
        reranker.prepare(texts)
        with calling(f"The reranker {reranker.name}"):
            started = time.perf_counter()
            reranker.score(query.text, texts)
        ms = (time.perf_counter() - started) * 1000
        pairs = self._pairs_by_key[key]
        pairs |= {position: pairs[position]._replace(ms=ms / len(texts)) for position in positions.tolist()}
        for scored in self._select_lists(key):
            scored.duration_ms = sum(pairs[position].ms for position in scored.positions if position in pairs)
            scored.save(update_fields=["duration_ms"])
        return ms

    def _score(
        self,
        key: Key,
        reranker: Reranker,
        index: OpenIndex,
        query: Query,
        positions: list[int],
        on_part: Callable[[], None],
    ) -> dict[int, Scored]:
        texts = index.load_texts(positions)
        reranker.prepare(texts, on_part=on_part)
        with calling(f"The reranker {reranker.name}"):
            started = time.perf_counter()
            pair_scores = reranker.score(query.text, texts)
            ms = (time.perf_counter() - started) * 1000
        _check(reranker, pair_scores, len(positions))
        cut = [positions[number] for number in reranker.find_cut(query.text, texts)]
        self._cut[key].update(cut)
        on_part()
        if self._benchmark is not None:
            name, revision, chunk_set_id, query_id = key
            PairList.objects.create(
                benchmark=self._benchmark,
                reranker=name,
                revision=revision,
                chunk_set_id=chunk_set_id,
                query_id=query_id,
                positions=positions,
                scores=pair_scores.scores.tolist(),
                threshold_scores=pair_scores.threshold_scores.tolist(),
                cut=cut,
                duration_ms=ms,
            )
        return _build_pairs(positions, pair_scores.scores.tolist(), pair_scores.threshold_scores.tolist(), ms)

    def _load_pairs(self, key: Key) -> dict[int, Scored]:
        by_position: dict[int, Scored] = {}
        for scored in self._select_lists(key).order_by("-pk"):  # if two workers scored a pair, the first one counts
            pairs = _build_pairs(scored.positions, scored.scores, scored.threshold_scores, scored.duration_ms)
            by_position |= {position: pair for position, pair in pairs.items() if np.isfinite(pair).all()}
            self._cut[key].update(scored.cut or ())
        return by_position

    def _select_lists(self, key: Key) -> QuerySet[PairList]:
        if self._benchmark is None:
            return PairList.objects.none()
        name, revision, chunk_set_id, query_id = key
        return PairList.objects.filter(
            benchmark=self._benchmark, query=query_id, reranker=name, revision=revision, chunk_set=chunk_set_id
        )


def _build_key(reranker: Reranker, index: OpenIndex, query: Query) -> Key:
    return reranker.name, reranker.revision, index.chunk_set_id, query.pk


def _check(reranker: Reranker, pair_scores: PairScores, count: int) -> None:
    """Raise RankingError for invalid scores, before they are stored for the whole benchmark."""
    for scores in (pair_scores.scores, pair_scores.threshold_scores):
        if scores.shape != (count,) or not np.isfinite(scores).all():
            raise RankingError(
                f"The reranker {reranker.name} did not give a finite number for each of {count:,} chunks: check the "
                "model's files, its precision and its device."
            )


def _build_pairs(
    positions: list[int], scores: list[float], threshold_scores: list[float], total_ms: float
) -> dict[int, Scored]:
    ms = total_ms / len(positions)
    return {
        position: Scored(score, threshold_score, ms)
        for position, score, threshold_score in zip(positions, scores, threshold_scores, strict=True)
    }


class RerankerRevisionError(UnfitWorkerError):
    """The reranker on this worker has another revision than on the benchmark's first worker."""

    code = "reranker"


class PinnedRerankers:
    """A loader of rerankers that requires the revision of the benchmark's first worker; without one, any revision."""

    def __init__(self, benchmark: Benchmark | None = None) -> None:
        self._benchmark = benchmark
        self._pinned: dict[str, str] = {}

    def load(self, name: str, index: Index) -> Reranker:
        """Load the reranker called `name` for an index. Raises RerankerRevisionError and errors of `load_reranker`."""
        reranker = load_reranker(name, index)
        model, revision = reranker.model_name, reranker.revision
        if self._benchmark is not None and self._pinned.get(model) != revision:
            # The revision of the first worker, which may be this one.
            pinned, _ = RerankerRevision.objects.get_or_create(
                benchmark=self._benchmark, model=model, defaults={"revision": revision}
            )
            self._pinned[model] = pinned.revision
            if pinned.revision != revision:
                raise RerankerRevisionError(
                    f'"{self._benchmark}" is reranked by {model} in revision {pinned.revision}, but revision '
                    f"{revision} is installed. Install that revision on a worker, or clone the benchmark to measure "
                    "with another."
                )
        return reranker
