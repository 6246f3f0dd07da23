"""The question of a round: the pool of its runs' first documents, its measure, and the existing judgments.

A packed question has a few hundred kilobytes and is read by one statement. Reading the rankings of 16 runs and the
judgments of their queries from the tables takes seconds.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.collections.duplicates import find_duplicates
from apps.datasets.models import DatasetVersion
from apps.judging.judges import RoundError
from apps.judging.models import Round
from apps.judging.scales import list_grades
from apps.mappings import models as mappings
from apps.mappings.truth import Unresolved, read_truth
from apps.records.lists.reading import require_rankings
from apps.records.models import QueryResult, Run
from benchbench.database.binary import read_rows
from benchbench.ir.judging import orders
from benchbench.ir.judging.evidence import AXES, Axes
from benchbench.ir.judging.fillings import require_measure
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import JudgingError, Pool
from benchbench.ir.measures import Measure, SharedGrades

Numbers = NDArray[np.int64]
# The first documents of each query that a run answered: {query id: (document ids, chunk ids)}, best first. The chunks
# are those that brought the documents; an external run has an empty array instead.
Rankings = dict[int, tuple[Numbers, Numbers]]
Truths = Sequence[Mapping[Any, float]]
UNRANKED = 0  # instead of a rank


def read_rankings(runs: Sequence[Run], depth: int) -> list[Rankings]:
    """Return the first `depth` documents of each ranking of each run; with several repetitions, of the first."""
    return [_load_rankings(run, depth) for run in runs]


def _load_rankings(run: Run, depth: int) -> Rankings:
    require_rankings(run.benchmark)
    rows = QueryResult.objects.filter(run=run, error="").order_by("query_id", "repetition")
    heads = (f"document_ids__0_{depth}", f"chunk_ids__0_{depth}")
    first: Rankings = {}
    for query_id, documents, chunks in read_rows(rows.values_list("query_id", *heads)):
        if query_id not in first:
            first[query_id] = np.array(documents, np.int64), np.array(chunks or [], np.int64)
    return first


def build_pool(rankings: Sequence[Rankings], query_ids: Sequence[int], depth: int) -> Pool:
    """Return the pool of the first `depth` documents of each ranking; its queries are `query_ids`, in their order.

    It is empty without rankings, for example if the runs of the round were deleted.
    """
    by_run = [[run[query][0].tolist() if query in run else None for query in query_ids] for run in rankings]
    return Pool.from_rankings(by_run or [[None] * len(query_ids)], depth=depth)


def find_passages(rankings: Sequence[Rankings]) -> dict[tuple[int, int], int]:
    """Return the chunk that brought each document of each query, from the ranking with the document's best rank.

    {(query id, document id): chunk id}, without documents that no chunk brought, as in external runs.
    """
    best: dict[tuple[int, int], tuple[int, int]] = {}
    for run in rankings:
        for query_id, (documents, chunks) in run.items():
            for rank, (document, chunk) in enumerate(zip(documents.tolist(), chunks.tolist(), strict=False)):
                pair = query_id, document
                if pair not in best or rank < best[pair][0]:
                    best[pair] = rank, chunk
    return {pair: chunk for pair, (_, chunk) in best.items()}


def describe_weighting(round: Round) -> str:
    """Return a sentence if a benchmark weights the means of the round's runs, which a round does not; else ""."""
    weighted = round.round_runs.filter(run__benchmark__weighting="demand").exists()
    return "Here every query counts alike; the benchmark's means are weighted by demand." if weighted else ""


@dataclass(frozen=True, slots=True)
class OrderedItems:
    """The items of a round as numbers of pairs of its pool, in the round's order, and those in the uniform sample.

    `probability` is the inclusion probability of an unjudged pair, sample size / pairs, once all these items are
    judged. A round that stops earlier has a smaller sample (`RoundState`).
    """

    numbers: list[int]
    sample: frozenset[int]
    probability: float


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a round: which of these runs is better by a measure, given the existing judgments."""

    pool: Pool
    measure: Measure
    scale: Sequence[int]
    truths: Truths
    seed: int
    is_fair: bool  # whether the dataset has judgments of documents that are not relevant
    # Coordinates of the pairs' texts (`benchbench.ir.judging.evidence`); None without vectors and before opening.
    axes: Axes | None = None

    def check(self, order: str) -> None:
        """Raise RoundError for a measure that a round cannot decide, or runs that the decisive order cannot weigh."""
        try:
            require_measure(self.measure)
            if order == Round.Order.DECISIVE:
                self.build_judging()
        except JudgingError as error:
            raise RoundError(error.message, field=error.field or "order") from error

    def build_judging(self) -> Judging:
        """Return the initial judging of the pool. Raises JudgingError if the runs cannot be compared.

        If the dataset has relevant documents only, relevance is learnt from the round's own grades alone: those
        judgments would make every document relevant.
        """
        inputs = self.pool, self.measure, self.scale, self.truths
        return Judging(*inputs, seed=self.seed, truths_teach=self.is_fair, axes=self.axes)

    def find_holes(self) -> NDArray[np.bool_]:
        """Return a mask, (size,), of the pairs without a judgment: those that a round grades."""
        return np.isnan(self.pool.get_grades(self.truths))[tuple(self.pool.cells.T)]

    def sample_order(self, holes: NDArray[np.bool_]) -> Numbers:
        """Return the pairs without a judgment in the order of the uniform sample."""
        order = orders.order_randomly(self.pool, seed=self.seed)
        return order[holes[order]]


def order_items(question: Question, *, order: str, budget: int | None, uniform_share: float) -> OrderedItems:
    """Return the items of a round in their order.

    A budget ends every order but the decisive one, in which grades determine the next items. There every pair is an
    item, and the budget limits the items handed out.
    """
    holes = question.find_holes()
    sample = question.sample_order(holes)
    share = 1.0 if order == Round.Order.RANDOM else uniform_share
    sequence = list(orders.upcoming(_order_primary(question, order, holes, sample), sample, (), share=share))
    judged = len(sequence) if budget is None else min(budget, len(sequence))
    drawn = orders.sample_size(judged, share, len(sample))
    return OrderedItems(
        sequence if order == Round.Order.DECISIVE else sequence[:judged],
        frozenset(sample[:drawn].tolist()),
        drawn / max(len(sample), 1),
    )


def _order_primary(question: Question, order: str, holes: NDArray[np.bool_], sample: Numbers) -> Numbers:
    if order == Round.Order.RANDOM:
        return sample
    if order == Round.Order.DEPTH:
        primary = orders.order_by_depth(question.pool)
    elif order == Round.Order.QUERIES:
        primary = orders.order_by_query(question.pool, orders.query_order(question.pool, seed=question.seed))
    else:
        primary = orders.order_by_weight(question.build_judging().compute_weights())
    return primary[holes[primary]]


def load_prior_grades(
    mapping: mappings.Mapping, version: DatasetVersion, runs: Iterable[Run]
) -> dict[int, dict[int, int]]:
    """Return the grades of `version` by query and document, among the documents that any of the runs searched.

    If runs searched several states of the collection, a judgment without a document in one may have one in another.
    """
    states = {run.benchmark.state for run in runs} or {None}
    truths = [read_truth(mapping, version, state=state).grades for state in states]
    merged: dict[int, dict[int, int]] = {query: {} for query in truths[0]}
    for query, graded in merged.items():
        for key, grade in (pair for truth in truths for pair in truth[query].items()):
            if not isinstance(key, Unresolved) or all(key in truth[query] for truth in truths):
                graded[key] = max(grade, graded.get(key, grade))
    return merged


@dataclass(frozen=True, slots=True)
class Basis:
    """The rankings of runs and the existing grades of the version, by query and document, that a round begins with.

    If the runs' benchmarks judge identical texts alike, both have each text once: the first document of a text in a
    ranking has the id of the judged one, or of the first in the collection, and each further one has grade 0, as in
    `SharedGrades`. So a round asks for a text once, and for none that is judged.
    """

    rankings: list[Rankings]
    grades: dict[int, dict[int, int]]
    is_fair: bool


def load_basis(mapping: mappings.Mapping, version: DatasetVersion, runs: Sequence[Run], depth: int) -> Basis:
    grades, rankings = load_prior_grades(mapping, version, runs), read_rankings(runs, depth)
    is_fair = any(grade <= 0 for graded in grades.values() for grade in graded.values())
    if any(run.benchmark.identical_texts == "judged" for run in runs):
        pooled = {pk for run in rankings for ids, _ in run.values() for pk in ids.tolist()}
        documents = pooled | {key for graded in grades.values() for key in graded if not isinstance(key, Unresolved)}
        states = {run.benchmark.state for run in runs}
        groups = [group for one in states for group in find_duplicates(mapping.collection, documents, state=one)]
        by_document = {key: group for group in groups for key in group}
        ranked = {query: [pk for one in rankings if query in one for pk in one[query][0].tolist()] for query in grades}
        shared = {
            query: _share_grades(graded, [by_document[key] for key in {*graded, *ranked[query]} if key in by_document])
            for query, graded in grades.items()
        }
        rankings = [{query: _rename(shared[query], *one) for query, one in run.items()} for run in rankings]
        grades = {query: dict(graded) for query, graded in shared.items()}
    return Basis(rankings, grades, is_fair)


def _share_grades(graded: Mapping[int, int], groups: Iterable[Mapping[int, str]]) -> SharedGrades:
    """Return grades by which the judged document stands for each text, and further ones have grade 0."""
    grades, originals = dict(graded), dict[int, int]()
    for group in groups:
        judged = [key for key in group if key in graded]
        original = max(judged, key=lambda key: graded[key], default=min(group))
        originals |= {key: original for key in group if key != original}
        grades |= {key: min(0, graded.get(original, 0)) for key in group if key != original}
    return SharedGrades(grades, originals)


def _rename(shared: SharedGrades, documents: Numbers, chunks: Numbers) -> tuple[Numbers, Numbers]:
    return np.array(shared.rename(documents.tolist()), np.int64), chunks


def load_question(round: Round, runs: Sequence[Run]) -> tuple[Question, list[int]]:
    """Return the question of a round as it began, and the ids of the queries of its pool."""
    basis = load_basis(round.mapping, round.dataset_version, runs, round.depth)
    query_ids = sorted(basis.grades)
    pool = build_pool(basis.rankings, query_ids, round.depth)
    truths = [basis.grades[query] for query in query_ids]
    measure, scale = Measure.parse(round.measure), list_grades(round.scale)
    return Question(pool, measure, scale, truths, round.seed, basis.is_fair), query_ids


def pack(question: Question, items: Numbers) -> bytes:
    """Return a question and `items` as bytes. `items`, (size,): the item id of each pair of its pool, 0 without one."""
    pool = question.pool
    ranks = pool.ranks[(slice(None), *pool.cells.T)]
    arrays = {
        "lengths": np.array([len(ids) for ids in pool.documents], np.int64),
        "documents": np.array([document for ids in pool.documents for document in ids], np.int64),
        "ranks": np.where(np.isfinite(ranks), ranks, UNRANKED).astype(np.uint16),
        "answered": pool.answered,
        "judged": np.array([len(truth) for truth in question.truths], np.int64),
        "known": np.array([pair for truth in question.truths for pair in truth.items()], np.int64).reshape(-1, 2),
        "items": items,
        "is_fair": np.array(question.is_fair),
        "axes": np.empty((0, AXES), np.float16) if question.axes is None else question.axes,
    }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack(packed: bytes, round: Round) -> tuple[Question, Numbers]:
    """Return the question and items of a round from the bytes of `pack`."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as file:
        arrays: dict[str, NDArray[Any]] = dict(file)
    documents = tuple(map(tuple, _cut(arrays["documents"].tolist(), arrays["lengths"])))
    truths: Truths = [dict(pairs) for pairs in _cut(arrays["known"].tolist(), arrays["judged"])]
    pool = Pool(documents, _unpack_ranks(arrays), arrays["answered"], round.depth)
    axes = arrays["axes"] if len(arrays["axes"]) else None
    lowest = min((grade for truth in truths for grade in truth.values()), default=1)
    is_fair = bool(arrays.get("is_fair", lowest <= 0))  # packed by an earlier version without it
    measure, scale = Measure.parse(round.measure), list_grades(round.scale)
    question = Question(pool, measure, scale, truths, round.seed, is_fair, axes)
    return question, arrays["items"]


def _unpack_ranks(arrays: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return the ranks of a pool, (R, Q, width): infinite if a run does not rank the document."""
    lengths, ranks = arrays["lengths"], arrays["ranks"].astype(np.float64)
    width = max(int(lengths.max(initial=0)), 1)
    cells = np.full((len(ranks), len(lengths), width), np.inf)
    ranks[ranks == UNRANKED] = np.inf
    cells[:, np.arange(width) < lengths[:, None]] = ranks
    return cells


def _cut(sequence: Sequence[object], lengths: NDArray[Any]) -> list[Sequence[Any]]:
    return [sequence[start:stop] for start, stop in pairwise(accumulate(lengths.tolist(), initial=0))]
