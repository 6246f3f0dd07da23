"""Expected values of runs on a version whose judgments a judging round selected, and their plain means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from apps.records.measuring.selection import Selection, find_selection
from apps.records.models import Run
from apps.verdicts.comparing import RunComparison
from apps.verdicts.configurations import build_labels
from apps.verdicts.ranked_runs import Leaderboard, Row
from benchbench.ir.measures import Measure
from benchbench.ir.statistics.verdict import Standing
from benchbench.reading.strict_json import attributes

Ends = list[float]  # [low, high]


@dataclass(frozen=True)
class ExpectedRun:
    """A run once all documents are judged, by the round's model of relevance; intervals cover what is not judged."""

    run: UUID
    standing: Annotated[Standing, "The likeliest at the end."]
    mean: Annotated[float, "Expected, over the queries that every run of the round answered."]
    interval: Annotated[Ends, "95 % interval of this mean."]
    plain_mean: Annotated[float | None, "Unjudged documents count as not relevant."]
    difference: Annotated[float | None, "Expected, to the best run or the baseline; null for itself."]
    difference_interval: Annotated[Ends | None, "95 % interval of this difference."]
    probability: Annotated[float | None, "Of its standing against that run alone."]


@dataclass(frozen=True)
class RoundVerdictReport:
    """The verdict of the judging round that made the version; plain means on it rest on selected judgments."""

    sentence: str
    round: Annotated[str, "Name of the round."]
    measure: str
    is_settled: Annotated[bool, "Whether it was settled at 95 % when the round was closed."]
    probability: Annotated[float, "Of the verdict on all runs of the round."]
    grades: Annotated[int, "Grades of people that it rests on."]
    judged: Annotated[int, "Pairs of the round's pool with a grade."]
    unjudged: int
    queries: Annotated[int, "Queries that every run of the round answered."]
    evidence: Annotated[str, "What the probability of relevance is based on."]
    caveat: Annotated[str, "What plain means rest on."]
    runs: Annotated[list[ExpectedRun], "Best first."]


def describe_expected(comparison: RunComparison) -> RoundVerdictReport | None:
    """Return the verdict that the version carries for the compared runs; None without one."""
    if comparison.carried is None:
        return None
    statistics = comparison.comparison
    return report_round_verdict(
        comparison.carried, comparison.ids, comparison.labels, statistics.means, baseline=statistics.baseline
    )


def list_expected(comparison: RunComparison) -> list[tuple[Run, str, ExpectedRun]]:
    """Return the rows of the table of expected values, each with its run and label."""
    report = describe_expected(comparison)
    places = map(comparison.ids.index, [row.run for row in report.runs]) if report else []
    return [
        (comparison.runs[run], comparison.labels[run], row)
        for run, row in zip(places, report.runs if report else [], strict=True)
    ]


def report_leaderboard(board: Leaderboard, selection: Selection | None) -> RoundVerdictReport | None:
    """Return the verdict that the version carries for the ranked runs of a leaderboard; None without one."""
    rows = list_ranked(board)
    if selection is None or board.means_name or not selection.settles(board.primary) or len(rows) < 2:
        return None
    runs, means = [row.run for row in rows], [row.values[board.primary] for row in rows]
    return report_round_verdict(selection, [run.pk for run in runs], build_labels(runs), means)


def find_board_selection(board: Leaderboard) -> Selection | None:
    """Return the judging round that selected the judgments behind a leaderboard, if one did."""
    return find_selection(board.version, {row.run.pk for row in list_ranked(board)})


def list_ranked(board: Leaderboard) -> list[Row]:
    return [row for row in board.rows if row.rank and row.final]


def report_round_verdict(
    selection: Selection,
    run_ids: Sequence[UUID],
    labels: Sequence[str],
    plain_means: Sequence[float | None],
    *,
    baseline: int | None = None,
) -> RoundVerdictReport:
    """Return the round's verdict on runs that it covers, in whose order labels and plain means are."""
    verdict, state = selection.judge(run_ids, baseline), selection.round.state
    expected = selection.list_expected(run_ids)
    order = sorted(range(len(run_ids)), key=lambda run: (-expected[run].mean, run))
    rows = []
    for run in order:
        both = run_ids[run], run_ids[verdict.reference]
        pair = None if run == verdict.reference else selection.get_pair(*both)
        rows.append(
            ExpectedRun(
                run=run_ids[run],
                standing=verdict.find_standing(run),
                mean=expected[run].mean,
                interval=[expected[run].low, expected[run].high],
                plain_mean=plain_means[run],
                difference=pair.difference if pair else None,
                difference_interval=[pair.low, pair.high] if pair else None,
                probability=selection.compute_probability(*both) if pair else None,
            )
        )
    return RoundVerdictReport(
        sentence=selection.describe(run_ids, labels, baseline),
        round=selection.round.name,
        measure=Measure.parse(selection.round.measure).wire,
        **attributes(state, "is_settled", "probability", "judged", "unjudged", "queries"),
        **attributes(selection.round, "grades", "evidence"),
        caveat=selection.caveat,
        runs=rows,
    )
