"""Board of a round: its rankings, the grades of people and of a model, and the values of its runs by these grades."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from apps.judging.models import Grade, LLMJudge, Round, RoundItem
from apps.judging.question import Rankings, build_pool, load_basis
from apps.judging.settling.consensus import load_human_grades
from apps.records.models import Run
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Measure, Truths, Values, evaluate

FULL_DEPTH = 1000  # documents of a ranking that a measure without a cutoff reads

Grades = dict[int, dict[int, int]]  # {query id: {document id: grade}}


@dataclass(frozen=True, eq=False)
class Board:
    """A round with its grades. Every list of queries is in the order of `query_ids`."""

    round: Round
    runs: Sequence[Run]
    measure: Measure
    query_ids: Sequence[int]
    rankings: Sequence[Rankings]
    prior_grades: Grades  # the judgments of the version on which the round began
    people: Grades  # the grades on which people agreed in the round
    model: Grades  # the model's grades in the round
    # The pairs that the model was unsure of, as 0: not relevant, like pairs without a judgment.
    unsure: Grades = field(default_factory=dict)
    unsure_people: Grades = field(default_factory=dict)  # the pairs that people are done with and unsure of, as 0

    @cached_property
    def pool(self) -> Pool:
        """The pool of the round, to its depth."""
        return build_pool(self.rankings, self.query_ids, self.round.depth)

    @property
    def draw(self) -> int:
        """Seed of the random draws that compare its runs."""
        return self.round.seed & 0xFFFF_FFFF

    def build_truths(self, *grades: Grades) -> list[dict[int, int]]:
        """Return a truth for each query; if several `grades` have a pair, the first counts."""
        return [
            {document: grade for by_query in reversed(grades) for document, grade in by_query.get(query, {}).items()}
            for query in self.query_ids
        ]

    def compute_values(self, truths: Sequence[Mapping[int, float]]) -> Values:
        """Return the values of the measure, (runs, queries): NaN where a run did not answer."""
        prepared = Truths.from_grades(truths)
        rows = []
        for run in self.rankings:
            lists = [run[query][0] if query in run else None for query in self.query_ids]
            graded = prepared.grade_arrays([np.empty(0, np.int64) if ids is None else ids for ids in lists])
            answered = np.array([ids is not None for ids in lists])
            rows.append(np.where(answered, evaluate([self.measure], graded)[0], np.nan))
        return np.array(rows, np.float64).reshape(len(rows), len(self.query_ids))  # keeps the shape without runs


def load_board(round: Round, judge: LLMJudge | None) -> Board:
    """Return the board of a round and a model. Reads rankings to the measure's cutoff and the round's depth."""
    measure = Measure.parse(round.measure)
    runs = list(round.runs.select_related("benchmark").order_by("-benchmark__created_at", "run_order"))
    basis = load_basis(round.mapping, round.dataset_version, runs, max(measure.cutoff or FULL_DEPTH, round.depth))
    rows = RoundItem.objects.filter(round=round).values_list("pk", "query_id", "document_id")
    pairs = {pk: (query, document) for pk, query, document in rows}
    model_rows = Grade.objects.filter(
        item__round=round, source=Grade.Source.LLM, judge_name=judge.name if judge else ""
    )
    model_grades = dict(model_rows.values_list("item_id", "grade"))
    human_grades = load_human_grades(round)
    return Board(
        round,
        runs,
        measure,
        sorted(basis.grades),
        basis.rankings,
        basis.grades,
        _group_by_query(pairs, human_grades.grades),
        _group_by_query(pairs, model_grades),
        _group_by_query(pairs, {item: 0 for item, grade in model_grades.items() if grade is None}),
        _group_by_query(pairs, dict.fromkeys(human_grades.unsure, 0)),
    )


def _group_by_query(pairs: Mapping[int, tuple[int, int]], grades: Mapping[int, Any]) -> Grades:
    by_query: Grades = {}
    for item, grade in grades.items():
        if grade is not None:
            query, document = pairs[item]
            by_query.setdefault(query, {})[document] = grade
    return by_query
