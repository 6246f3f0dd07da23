"""A run that lost too many of its queries: its mean is informed, and ranks, wins and passes nothing."""

import csv
import io
import zipfile

import pytest
from django.contrib.auth.models import User

from apps.demo.management.commands.demo import describe_reranking
from apps.judging.judges import RoundError
from apps.judging.opening import RoundOptions, open_round
from apps.records.models import Baseline, Benchmark, Evaluation, Run
from apps.results.comparison.history import load_history
from apps.results.dashboard import list_latest
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import build_results
from apps.results.exporting import EXPORTERS, describe_failures, export
from apps.verdicts.comparing import ComparingError, compare_runs
from apps.verdicts.gates.baselines import BaselineError, approve
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.ranked_runs import load_leaderboard
from benchbench.ir.gate import Outcome
from benchbench.ir.measures.means import unranked_reason
from benchbench.site.panels import change_url
from tests.api.callers import Caller
from tests.benchmarks.gated import GOOD, POOR, make_gated, search
from tests.commands import json_of, output_of
from tests.site import results_url

LOST = [1] * 8 + [0] * 12  # the best mean of all, over 9 of 21 queries
ONE_LOST = [1] * 11 + [2] * 8 + [0]  # 1 of 21 is less than 5 %
REASON = "Not ranked: 12 of 21 queries have no value, more than 5 %; 12 failed: retry the run."


@pytest.mark.parametrize(
    ("counts", "unranked"),
    [((100, 0, 0), False), ((95, 5, 0), False), ((94, 6, 0), True), ((95, 3, 3), True), ((0, 0, 0), False)],
)
def test_at_most_a_twentieth_may_be_lost_whichever_way(counts, unranked):
    counted, failed, unsearched = counts
    assert bool(unranked_reason(counted=counted, failed=failed, unsearched=unsearched)) == unranked


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return search(make_gated(), LOST, ONE_LOST, POOR, GOOD)


def test_the_database_says_the_same(benchmark):
    for counted in (18, 19, 20):
        Evaluation.objects.update(query_count=counted, failed_queries=1, unsearched_queries=0)
        row = Evaluation.objects.first()
        assert Evaluation.objects.filter(Evaluation.filter_ranked()).exists() == (not row.unranked)


def test_unranked_run_is_listed_last_without_a_rank(benchmark):
    board = load_leaderboard(benchmark)
    assert [(row.run.run_order, row.rank) for row in board.rows] == [(2, 1), (4, 2), (3, 3), (1, None)]
    assert board.rows[-1].unranked == REASON
    assert board.rows[-1].values["nDCG@10"] == pytest.approx(8 / 9)
    assert board.best.run.run_order == 2


def test_every_view_shows_the_unranked_reason(benchmark, admin_client, admin_user):
    lines = render_text(benchmark).splitlines()
    assert [line.split()[:2] for line in lines[2:] if line.split()[1].isdigit()] == [
        *(["1", "2"], ["2", "4"], ["3", "3"], ["–", "1"])
    ]
    assert REASON in render_text(benchmark)
    assert REASON in admin_client.get(results_url(benchmark)).text
    assert REASON in admin_client.get(change_url(benchmark.runs.get(run_order=1))).text
    results = build_results(benchmark)
    assert [run.unranked for run in results.runs] == [REASON, None, None, None]
    assert results.summary.best_run == benchmark.runs.get(run_order=2).pk
    rows = list(csv.DictReader(io.StringIO("".join(map(str, export(benchmark, "csv"))))))
    assert [row["unranked"] for row in rows] == [REASON, "", "", ""]
    [latest] = list_latest(admin_user)
    best = load_leaderboard(benchmark).best
    assert (latest.facts["run"], latest.facts["value"]) == (str(best.run.pk), best.values["nDCG@10"])
    [point] = load_history(benchmark.mapping.dataset, admin_user).points
    assert point.run.run_order == 2


def test_it_is_in_no_family_that_is_tested(benchmark):
    lost, *remaining = benchmark.runs.order_by("run_order")
    comparison = compare_runs([lost, *remaining])
    assert list(comparison.runs) == remaining
    assert comparison.comparison.n == 20  # not the 9 that it answered
    assert [warning for warning in comparison.comparability.warnings if REASON in warning]
    for runs, baseline in (([lost, remaining[0]], None), ([lost, *remaining], lost)):
        with pytest.raises(ComparingError, match="12 of 21 queries have no value"):
            compare_runs(runs, baseline=baseline)


RULES = "floors: {mrr: 0.1}\ncoverage: {failed_queries: 15}\n"


def test_gate_on_an_unranked_run_is_always_undecided(benchmark):
    result = gate(benchmark.runs.get(run_order=1), rules=read_rules(RULES))
    assert result.outcome == Outcome.UNDECIDED
    [check] = [check for check in result.verdicts[0].checks if check.outcome == Outcome.UNDECIDED]
    assert (check.name, check.required, check.observed, check.note) == (
        "queries with a value",
        "≥ 95 %",
        "9 of 21",
        REASON,
    )


def test_the_best_of_a_benchmark_may_have_been_it(benchmark):
    result = gate(benchmark, rules=read_rules(RULES))
    assert (result.verdicts[0].run.run_order, result.outcome) == (2, Outcome.UNDECIDED)
    allowed = gate(benchmark, rules=read_rules(RULES + "runs_may_fail: true\n"))
    assert (allowed.verdicts[0].run.run_order, allowed.outcome) == (2, Outcome.PASSED)
    assert allowed.run_selection == "the best of 3 completed runs by nDCG@10"


def test_nothing_is_held_against_it_as_a_baseline(benchmark):
    run, by = benchmark.runs.get(run_order=1), User.objects.create_superuser("ada")
    with pytest.raises(BaselineError, match="12 of 21 queries have no value"):
        approve(run, name="main", reason="Because.", by=by)
    baseline = Baseline.objects.create(  # as one that lost them on a version that came later
        dataset=benchmark.mapping.dataset, run=run, name="main", reason="Because.", approved_by=by
    )
    assert not load_history(benchmark.mapping.dataset, by).lines, "no line to be above or below of"
    rules = read_rules("against_baseline: {mrr: {may_lose: 0.9}}\n")
    result = gate(benchmark.runs.get(run_order=4), rules=rules, baseline=baseline)
    assert result.outcome == Outcome.UNDECIDED
    assert REASON in result.verdicts[0].checks[0].note


RANKS = ("json", "csv", "xlsx", "markdown", "latex", "html")  # formats that hold runs against each other
NO_RUNS = ("trec-qrels",)


@pytest.mark.parametrize("format", EXPORTERS)
def test_each_format_says_why_or_which_queries_failed(benchmark, format):
    exporter, run = EXPORTERS[format], benchmark.runs.get(run_order=1)
    subject = benchmark if exporter.exports == "benchmark" else run
    pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in export(subject, format)]
    written = unzipped(b"".join(pieces)) if exporter.extension.endswith(("zip", "xlsx")) else b"".join(pieces).decode()
    if format in RANKS:
        assert REASON.replace("%", "\\%" if format == "latex" else "%") in written.replace("&nbsp;", " ")
    elif not exporter.marks_failures:
        assert describe_failures(subject, exporter).startswith(
            "12 queries of the run failed and are missing from this file"
        )
    elif format not in NO_RUNS:
        assert "The index was away." in written or '"failed_queries": 12' in written


def unzipped(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


def test_the_api_ranks_it_nowhere(benchmark, admin_user):
    caller, (lost, *remaining) = Caller(admin_user), benchmark.runs.order_by("run_order")
    path = f"/benchmarks/{benchmark.pk}"
    answer = caller.get(f"{path}/results").json()
    assert answer["summary"]["best_run"] == str(remaining[0].pk)
    assert answer["runs"][0]["unranked"] == caller.get(f"{path}/runs/{lost.pk}").json()["unranked"] == REASON
    for kind in ("", "/queries"):
        pair = caller.get(f"/comparison{kind}", run=str(lost.pk), baseline=str(remaining[0].pk))
        assert (pair.status_code, REASON in pair.json()["detail"]) == (400, True)
    every = caller.get("/comparison", run=[str(run.pk) for run in (lost, *remaining)]).json()
    assert [run["id"] for run in every["runs"]] == [str(remaining[position].pk) for position in (0, 2, 1)]
    assert [warning for warning in every["warnings"] if REASON in warning]
    assert caller.post(f"/runs/{lost.pk}/gate", {"rules": {"floors": {"mrr": 0.1}}}).json()["outcome"] == "undecided"
    dataset = benchmark.mapping.dataset_id
    fields = {"run_id": str(lost.pk), "name": "main", "reason": "Because."}
    approved = caller.post(f"/benchmark-datasets/{dataset}/baselines", fields)
    assert (approved.status_code, REASON in approved.json()["detail"]) == (409, True)


def test_rescoring_lists_it_last_and_says_why(benchmark):
    lines = output_of("rescore", benchmark.pk).splitlines()
    assert lines[-1].endswith(REASON)
    assert f" {8 / 9:.4f} " in lines[-2]
    assert [run["unranked"] for run in json_of("rescore", benchmark.pk)["runs"]] == [REASON, None, None, None]


def test_no_round_asks_whether_it_is_better(benchmark, admin_user):
    lost, second, *_ = benchmark.runs.order_by("run_order")
    with pytest.raises(RoundError, match="12 of 21 queries have no value"):
        open_round([lost, second], RoundOptions("which"), judges=[admin_user])
    assert open_round([lost], RoundOptions("holes", order="depth"), judges=[admin_user]).item_count


def test_demo_reports_no_gain_for_an_unranked_run(benchmark):
    first, second = benchmark.runs.order_by("run_order")[:2]
    benchmark.runs.exclude(pk__in=[first.pk, second.pk]).delete()
    for run, reranks in ((first, True), (second, False)):
        Run.objects.filter(pk=run.pk).update(config=first.config | {"use_reranker": reranks})
    reranking = describe_reranking(benchmark)
    assert REASON in reranking
    assert "→" not in reranking


HALF_A_SLICE = [0, 1, *[1] * 18]  # the best mean of all; of the two hard queries, one is lost


def test_run_missing_half_a_slice_is_unranked_only_there(db):
    benchmark = search(make_gated(), HALF_A_SLICE, GOOD, POOR)
    assert [(row.run.run_order, row.rank) for row in load_leaderboard(benchmark).rows] == [(1, 1), (2, 2), (3, 3)]
    (hard,) = (name for name in ("slice: hard", "slices: hard") if load_leaderboard(benchmark, within=name).slice)
    board = load_leaderboard(benchmark, within=hard)
    assert [(row.run.run_order, row.rank) for row in board.rows] == [(2, 1), (3, 1), (1, None)]
    assert board.rows[-1].unranked == (
        "In this slice: Not ranked: 1 of 2 queries has no value, more than 5 %; 1 failed: retry the run."
    )


def test_gate_on_a_half_missing_slice_is_undecided(db):
    benchmark = search(make_gated(), HALF_A_SLICE)
    rules = read_rules("slices: {hard: {minimum_queries: 1, mrr: 0.1}}\ncoverage: {failed_queries: 1}\n")
    result = gate(benchmark.runs.get(), rules=rules)
    assert result.outcome == Outcome.UNDECIDED
    assert result.verdicts[0].checks[0].note == "1 of 2 queries of the slice have no value, more than 5 %."
