"""A run that lost too many of its queries: its mean is told, and ranks, wins and passes nothing."""

import csv
import io
from typing import Any

import pytest
from django.test import Client

from apps.benchmarks.gates.gating import gate
from apps.benchmarks.gates.rules import read_rules
from apps.benchmarks.models import Benchmark, Evaluation
from apps.results.board_text import text_of
from apps.results.comparison.comparing import ComparingError, compare_runs
from apps.results.comparison.history import history
from apps.results.exporters.results_json import results
from apps.results.exporting import export
from apps.results.leaderboard.runs import leaderboard
from apps.results.leaderboard.start import start_context
from benchbench.ir.gate import Outcome
from benchbench.ir.losses import why_unranked
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.results.test_pages import results_url

LOST = [1] * 8 + [0] * 12  # the best mean of all, over 9 of 21 queries
ONE_LOST = [1] * 11 + [2] * 8 + [0]  # 1 of 21 is less than 5 %
WHY = "Not ranked: 12 of 21 queries have no value, more than 5 %; 12 failed: retry it."


@pytest.mark.parametrize(
    ("counts", "unranked"),
    [((100, 0, 0), False), ((95, 5, 0), False), ((94, 6, 0), True), ((95, 3, 3), True), ((0, 0, 0), False)],
)
def test_at_most_a_twentieth_may_be_lost_whichever_way(counts: tuple[int, int, int], unranked: bool) -> None:
    counted, failed, unsearched = counts
    assert bool(why_unranked(counted=counted, failed=failed, unsearched=unsearched)) == unranked


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return search(make_gated(), LOST, ONE_LOST, POOR, GOOD)


def test_the_database_says_the_same(benchmark: Benchmark) -> None:
    for counted in (18, 19, 20):
        Evaluation.objects.update(query_count=counted, failed_queries=1, unsearched_queries=0)
        row = Evaluation.objects.first()
        assert row is not None
        assert Evaluation.objects.filter(Evaluation.ranked()).exists() == (not row.unranked)


def test_it_stands_below_the_others_without_a_rank(benchmark: Benchmark) -> None:
    board = leaderboard(benchmark)
    assert [(row.run.run_order, row.rank) for row in board.rows] == [(2, 1), (4, 2), (3, 3), (1, None)]
    assert board.rows[-1].unranked == WHY
    assert board.rows[-1].values["nDCG@10"] == pytest.approx(8 / 9)
    assert board.best is not None
    assert board.best.run.run_order == 2


def test_so_it_does_wherever_runs_are_told(benchmark: Benchmark, admin_client: Client) -> None:
    lines = text_of(benchmark).splitlines()
    assert [line.split()[:2] for line in lines[2:] if line.split()[1].isdigit()] == [
        *(["1", "2"], ["2", "4"], ["3", "3"], ["–", "1"])
    ]
    assert WHY in text_of(benchmark)
    assert WHY in admin_client.get(results_url(benchmark)).text
    told = results(benchmark)
    assert [run.unranked for run in told.runs] == [WHY, None, None, None]
    assert told.summary.best_run == benchmark.runs.get(run_order=2).pk
    for format in ("markdown", "html", "latex", "csv"):
        written = "".join(map(str, export(benchmark, format)))
        assert WHY.replace("%", "\\%" if format == "latex" else "%") in written.replace("&nbsp;", " "), format
    rows = list(csv.DictReader(io.StringIO("".join(map(str, export(benchmark, "csv"))))))
    assert [row["unranked"] for row in rows] == [WHY, "", "", ""]
    [(_, best, value)] = start_context(admin(admin_client))["benchmarks"]
    assert best is not None
    assert (best.run.run_order, value) == (2, best.values["nDCG@10"])
    [point] = history(benchmark.mapping.dataset, admin(admin_client)).points
    assert point.run.run_order == 2


def admin(client: Client) -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(is_superuser=True)


def test_it_is_in_no_family_that_is_tested(benchmark: Benchmark) -> None:
    lost, *others = benchmark.runs.order_by("run_order")
    comparison = compare_runs([lost, *others])
    assert list(comparison.runs) == others
    assert comparison.comparison.n == 20  # not the 9 that it answered
    assert [warning for warning in comparison.comparability.warnings if WHY in warning]
    for runs, baseline in (([lost, others[0]], None), ([lost, *others], lost)):
        with pytest.raises(ComparingError, match="12 of 21 queries have no value"):
            compare_runs(runs, baseline=baseline)


RULES = "floors: {mrr: 0.1}\ncoverage: {failed_queries: 15}\n"


def test_a_gate_on_it_cannot_be_decided_whatever_is_allowed(benchmark: Benchmark) -> None:
    result = gate(benchmark.runs.get(run_order=1), rules=read_rules(RULES))
    assert result.outcome == Outcome.UNDECIDED
    [check] = [check for check in result.verdicts[0].checks if check.outcome == Outcome.UNDECIDED]
    assert (check.name, check.wanted, check.found, check.note) == ("queries with a value", "≥ 95 %", "9 of 21", WHY)


def test_the_best_of_a_benchmark_may_have_been_it(benchmark: Benchmark) -> None:
    result = gate(benchmark, rules=read_rules(RULES))
    assert (result.verdicts[0].run.run_order, result.outcome) == (2, Outcome.UNDECIDED)
    allowed = gate(benchmark, rules=read_rules(RULES + "runs_may_fail: true\n"))
    assert (allowed.verdicts[0].run.run_order, allowed.outcome) == (2, Outcome.PASSED)
    assert allowed.chosen == "the best of 3 completed runs by nDCG@10"


def test_nothing_is_held_against_it_as_a_baseline(benchmark: Benchmark) -> None:
    baseline = pinned(benchmark.runs.get(run_order=1))
    rules = read_rules("against_baseline: {mrr: {may_lose: 0.9}}\n")
    result = gate(benchmark.runs.get(run_order=4), rules=rules, baseline=baseline)
    assert result.outcome == Outcome.UNDECIDED
    assert WHY in result.verdicts[0].checks[0].note
