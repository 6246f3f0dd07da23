"""Configurations over several datasets: those that a benchmark of every dataset ran, ranked by mean rank and wins."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.records.comparability import POLICIES
from apps.records.models import Benchmark, Run
from apps.verdicts.configurations import build_labels
from apps.verdicts.ranked_runs import Leaderboard, load_leaderboard
from benchbench.errors import ConflictError
from benchbench.ir.measures import Measure, Values
from benchbench.ir.statistics.across import Standings, describe_support, rank_across


class AcrossError(ConflictError):
    """Benchmarks cannot be compared over their datasets."""

    code = "incomparable"


@dataclass(frozen=True, slots=True, eq=False)
class AcrossDatasets:
    """The results of `benchmarks`, one of each dataset, for the configurations that all of them ran.

    `values` are means of `measure`, (datasets, configurations); `labels` name the configurations.
    """

    benchmarks: Sequence[Benchmark]
    measure: str
    labels: Sequence[str]
    values: Values
    standings: Standings
    left_out: int  # configurations that some benchmark lacks, or did not rank

    @property
    def sentence(self) -> str:
        return describe_support(self.standings, self.labels)

    @property
    def rows(self) -> list[tuple[str, float, list[tuple[float, bool]]]]:
        """Each configuration, best first: its label, mean rank, and values with whether each is the dataset's best."""
        best = self.values.max(axis=1)
        order = sorted(range(len(self.labels)), key=lambda number: self.standings.mean_ranks[number])
        return [
            (
                self.labels[number],
                self.standings.mean_ranks[number],
                [(float(value), bool(value == top)) for value, top in zip(self.values[:, number], best, strict=True)],
            )
            for number in order
        ]


def compare_over_datasets(benchmarks: Sequence[Benchmark]) -> AcrossDatasets:
    """Rank the configurations that all benchmarks ran, by the mean of their primary measure on each dataset.

    Raises AcrossError unless there are two datasets, each with one benchmark, measured alike, and two such
    configurations with a rank on each.
    """
    boards = [load_leaderboard(benchmark) for benchmark in benchmarks]
    _require_alike(benchmarks, boards)
    ranked = [_key_rows(board) for board in boards]
    every = dict.fromkeys(key for rows in ranked for key in rows)
    common = [key for key in every if all(key in rows for rows in ranked)]
    if len(common) < 2:
        raise AcrossError(
            "Fewer than two configurations have a rank in every benchmark: run the same matrix on each dataset."
        )
    values = np.array([[rows[key][1] for key in common] for rows in ranked])
    return AcrossDatasets(
        benchmarks=benchmarks,
        measure=boards[0].title,
        labels=build_labels([ranked[0][key][0] for key in common]),
        values=values,
        standings=rank_across(values),
        left_out=len(every) - len(common),
    )


def _require_alike(benchmarks: Sequence[Benchmark], boards: Sequence[Leaderboard]) -> None:
    """Check that the benchmarks are of different datasets and measured alike. Raises AcrossError."""
    if len({benchmark.mapping.dataset_id for benchmark in benchmarks}) < max(2, len(benchmarks)):
        raise AcrossError("Choose at least two benchmarks, each of another dataset: a dataset counts once.")
    if len(measures := sorted({board.primary for board in boards})) > 1:
        raise AcrossError(f"Their primary measures differ: {', '.join(measures)}. Choose benchmarks with one measure.")
    if Measure.parse(boards[0].primary).definition.better == "lower":
        raise AcrossError(f"Of {measures[0]} less is better: choose benchmarks with another primary measure.")
    for policy, subject in POLICIES.items():
        if len({getattr(benchmark, policy) for benchmark in benchmarks}) > 1:
            raise AcrossError(f"They treat {subject} differently: run one again under the other's policy.")


def _key_rows(board: Leaderboard) -> dict[str, tuple[Run, float]]:
    """Return the ranked runs and their final means by configuration. Raises AcrossError if two runs have the same."""
    rows: dict[str, tuple[Run, float]] = {}
    for row in board.rows:
        value = row.final.get(board.primary)
        if row.rank is None or value is None:
            continue
        key = _name_configuration(row.run)
        if key in rows:
            raise AcrossError(
                f'Runs {rows[key][0].run_order} and {row.run.run_order} of "{row.run.benchmark}" differ only in '
                "their indexes: choose a benchmark with one of them."
            )
        rows[key] = row.run, value
    return rows


def _name_configuration(run: Run) -> str:
    """Return what a configuration is on any collection: the settings, and how its index was made, not its name."""
    settings = {name: value for name, value in run.config.items() if name != "index"}
    index = run.index
    ingredients = [index.strategy, index.chunk_parameters, index.encoder, index.llm] if index else []
    return json.dumps([settings or run.label, ingredients], sort_keys=True)
